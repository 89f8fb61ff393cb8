"""A look at the metrics of a running program, renewed until somebody has seen enough."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final

from skyfarer.base.errors import RetryableError
from skyfarer.cli.samples import Samples, fetch

CLEAR: Final = "\x1b[H\x1b[J"

View = Callable[[Samples, Samples | None, float], list[str]]
"""The lines for this scrape, the one before it if there was one, and the seconds between them."""


def watch(url: str, who: str, view: View, once: bool, interval_s: float) -> int:
    """Blocks until interrupted, or with `once` for one look. A program that is away later, for a
    restart say, is waited for; RetryableError if it is away at first."""
    before: Samples | None = None
    looked_s = 0.0
    clear = CLEAR if sys.stdout.isatty() and not once else ""
    while True:
        now_s = time.monotonic()
        try:
            now = fetch(url, who)
        except RetryableError as error:
            if before is None:
                raise
            print(f"{clear}{error}", flush=True)
        else:
            print(clear + "\n".join(view(now, before, now_s - looked_s)), flush=True)
            before, looked_s = now, now_s
        if once:
            return 0
        time.sleep(interval_s)


def rate(now: float, before: float | None, elapsed_s: float) -> str:
    """Of a count, a second; one that went back (a program begun anew) has not grown."""
    if before is None or elapsed_s <= 0:
        return "-"
    return f"{max(0.0, now - before) / elapsed_s:.1f}"
