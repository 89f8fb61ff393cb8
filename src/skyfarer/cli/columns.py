"""A table for people: equal columns, some of them to the left."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def columns(lines: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> list[str]:
    """Numbers stand to the right; `left` are the positions of what is text. All lines are of one
    length, and the first says what the others are."""
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    return ["  ".join(_cells(line, widths, left)).rstrip() for line in lines]


def _cells(line: Sequence[str], widths: Sequence[int], left: Collection[int]) -> list[str]:
    return [
        cell.ljust(width) if at in left else cell.rjust(width)
        for at, (cell, width) in enumerate(zip(line, widths, strict=True))
    ]
