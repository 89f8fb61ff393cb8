"""The arguments of a live view."""

from __future__ import annotations

import argparse
from typing import Final

INTERVAL_S_MAX: Final = 3600.0


def add_looks(part: argparse.ArgumentParser) -> None:
    part.add_argument("--url", help="of its metrics (default: where the configuration says)")
    part.add_argument("--once", action="store_true", help="print it once and end")
    part.add_argument(
        "--interval",
        metavar="SECONDS",
        type=_interval,
        default=1.0,
        help="between two looks (default: %(default)g)",
    )


def number(text: str, most: float, what: str) -> float:
    """Of an argument: above 0 and at most `most`, or argparse says `what` it is not."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= most:
        raise argparse.ArgumentTypeError(f"'{text}' {what} above 0 and at most {most:g}")
    return value


def _interval(text: str) -> float:
    return number(text, INTERVAL_S_MAX, "is no number of seconds")
