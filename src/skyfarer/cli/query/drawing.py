"""Text for a terminal: sparklines, figures, and names that nobody should trust."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite, isnan
from typing import Final

from skyfarer.cli.columns import columns

BARS: Final = "▁▂▃▄▅▆▇█"
NOTHING: Final = "-"
ENDLESS: Final = "∞"
WIDTH_MAX: Final = 60
TEXT_MAX: Final = 120


def sparkline(values: Sequence[float | None], width: int = WIDTH_MAX) -> str:
    """A bar a point, from zero to the largest; a blank where there is no value. What is longer than
    `width` is drawn by the average of neighbours. What has no end reaches the top."""
    drawn = _squeezed(values, width)
    most = max((value for value in drawn if value is not None and isfinite(value)), default=0)
    return "".join(" " if value is None or isnan(value) else _bar(value, most) for value in drawn)


def _bar(value: float, most: float) -> str:
    if value == inf:
        return BARS[-1]
    if most <= 0:
        return BARS[0]
    return BARS[min(int(max(value, 0) / most * len(BARS)), len(BARS) - 1)]


def _squeezed(values: Sequence[float | None], width: int) -> list[float | None]:
    group = -(-len(values) // width) or 1
    return [average(values[at : at + group]) for at in range(0, len(values), group)]


def number(written: str | None) -> float | None:
    """Of a value as the server writes it."""
    return None if written is None else float(written.replace(ENDLESS, "inf"))


def average(values: Sequence[float | None]) -> float | None:
    """Of those that are there."""
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else None


def figure(value: float | None, divisor: float = 1, unit: str = "") -> str:
    """Up to two decimals, none where they say nothing."""
    if value is None:
        return NOTHING
    if not isfinite(value):
        return "NaN" if isnan(value) else ENDLESS if value > 0 else f"-{ENDLESS}"
    text = f"{value / divisor:,.2f}".rstrip("0").rstrip(".")
    return f"{text}{unit}"


def plain(text: object, most: int = TEXT_MAX) -> str:
    """In one line, without control characters, and no longer than `most`."""
    line = "".join(c if c.isprintable() else " " for c in str(text if text is not None else ""))
    return line if len(line) <= most else f"{line[: most - 1]}…"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int]) -> str:
    """`left` are the positions of what is text."""
    clean = [[plain(cell) for cell in row] for row in rows]
    return "\n".join(columns([list(heads), *clean], left))
