"""How far long work is, on standard error, so that standard output stays what was asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TextIO

from skyfarer.base.clock import Clock, SystemClock

DRAW_EVERY_S: Final = 0.2
LINE_EVERY_S: Final = 5.0
BAR_CELLS: Final = 30


class Progress:
    """A bar where somebody looks (a terminal), otherwise a line every few seconds. Work that is
    done before the first of these shows nothing. `close` leaves a terminal's line empty."""

    def __init__(self, doing: str, total: int, stream: TextIO, clock: Clock) -> None:
        self._doing = doing
        self._total = total
        self._stream = stream
        self._clock = clock
        self._is_terminal = stream.isatty()
        self._every_s = DRAW_EVERY_S if self._is_terminal else LINE_EVERY_S
        self._shown_s = clock.monotonic_s()
        self._width = 0

    def update(self, done: int) -> None:
        now_s = self._clock.monotonic_s()
        if now_s - self._shown_s < self._every_s:
            return
        self._shown_s = now_s
        if self._is_terminal:
            self._draw(self._bar(done) + self._words(done))
        else:
            print(self._words(done), file=self._stream, flush=True)

    def close(self) -> None:
        if self._width:
            self._draw("")

    def _draw(self, text: str) -> None:
        """Over the text before, blanks included; the cursor goes back to the margin."""
        print(f"\r{text:<{self._width}}\r", end="", file=self._stream, flush=True)
        self._width = len(text)

    def _bar(self, done: int) -> str:
        filled = BAR_CELLS * done // max(1, self._total)
        return f"[{'#' * filled:<{BAR_CELLS}}] "

    def _words(self, done: int) -> str:
        percent = 100 * done // max(1, self._total)
        return f"{self._doing} {done} of {self._total} records, {percent} %"


@contextmanager
def shown(doing: str, total: int) -> Iterator[Progress]:
    progress = Progress(doing, total, sys.stderr, SystemClock())
    try:
        yield progress
    finally:
        progress.close()
