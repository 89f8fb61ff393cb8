"""A block of a file, cut into the texts of records.

A block begins where an event begins, or is taken to: whoever was cut off before goes on there. So
what comes out depends on the bytes alone, and a block read again after a crash is cut the same way.

Nothing here runs per line in Python: one line per record is one `split`, several lines per record
are one search for the newlines before an event's first line. Only what breaks a bound is gone
through by hand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from itertools import accumulate, compress, count, pairwise
from operator import add
from typing import Final, NamedTuple

NEWLINE: Final = b"\n"


class Flush(IntEnum):
    """How much of the rest of a block is taken, though more may follow it."""

    NOTHING = 0
    LINES = 1  # an event that may still grow, up to its last whole line
    ALL = 2  # a line without its newline as well


class Cut(NamedTuple):
    """`texts[i]`, UTF-8 without its newline, is done with when the block is, up to `ends[i]`.

    `used` is the last of `ends`; without any texts it is how many bytes of blank lines there were.
    """

    texts: list[bytes]
    ends: list[int]
    used: int
    cuts: int = 0
    undecodable: int = 0


NO_TEXTS: Final = Cut([], [], 0)


@dataclass(frozen=True, slots=True)
class Bounds:
    bytes_max: int
    lines_max: int = 1


class Splitter:
    """For UTF-8. `boundary` matches the newline before an event; without it each line is one."""

    def __init__(self, bounds: Bounds, boundary: re.Pattern[bytes] | None = None) -> None:
        self._bounds = bounds
        self._boundary = boundary

    def split(self, block: bytes, flush: Flush) -> Cut:
        """Cuts at least one text from every block of more than `bytes_max` bytes that are not blank
        lines. A line above that bound becomes several texts, an event too."""
        texts, ends = self._events(block, flush)
        cuts = 0
        if self._out_of_bounds(block, texts, ends):
            ends, cuts = self._bounded(block, ends)
            texts = [block[start:end] for start, end in pairwise((0, *ends))]
            texts = [text.removesuffix(NEWLINE) for text in texts]
        if not ends:
            return NO_TEXTS
        used = ends[-1]
        if self._boundary is not None and (flush or b"\r" in block or b"\n\n" in block):
            texts = [text.rstrip(b"\r\n") for text in texts]
        elif b"\r" in block:
            texts = [text.removesuffix(b"\r") for text in texts]
        if not all(texts):
            ends = list(compress(ends, texts))
            texts = list(filter(None, texts))
            ends[-1:] = [used] if ends else []
        undecodable = 0
        if not block.isascii():
            texts, undecodable = _decodable(texts, block[:used])
        return Cut(texts, ends, used, cuts, undecodable)

    def _events(self, block: bytes, flush: Flush) -> tuple[list[bytes], list[int]]:
        whole = block.rfind(NEWLINE) + 1
        end = len(block) if flush is Flush.ALL else whole
        if not end:
            return [], []
        if self._boundary is None:
            texts = block[: end - 1 if end == whole else end].split(NEWLINE)
        else:
            # Groups of the pattern stand between the parts.
            texts = self._boundary.split(block[:end])[:: self._boundary.groups + 1]
            if not texts[-1]:
                # The last newline: what follows it is not known, so it is no boundary.
                texts.pop()
        ends = list(map(add, accumulate(map(len, texts)), count(1)))
        ends[-1] = end
        if self._boundary is not None and flush is Flush.NOTHING:
            del texts[-1], ends[-1]
        return texts, ends

    def _out_of_bounds(self, block: bytes, texts: list[bytes], ends: list[int]) -> bool:
        bytes_max, lines_max = self._bounds.bytes_max, self._bounds.lines_max
        open_from = ends[-1] if ends else 0
        longest = max(map(len, texts), default=0)
        if longest > bytes_max or len(block) - open_from > bytes_max:
            return True
        if self._boundary is None:
            return False
        if block.count(NEWLINE, open_from) > lines_max:
            return True
        return longest >= lines_max and any(
            text.count(NEWLINE) >= lines_max for text in texts if len(text) >= lines_max
        )

    def _bounded(self, block: bytes, ends: list[int]) -> tuple[list[int], int]:
        """The same ends and those that the bounds demand before and after them."""
        bounded: list[int] = []
        start = 0
        for end in ends:
            bounded += self._forced(block, start, end - block.endswith(NEWLINE, start, end))
            bounded.append(end)
            start = end
        bounded += self._forced(block, start, len(block))
        return bounded, len(bounded) - len(ends)

    def _forced(self, block: bytes, start: int, end: int) -> list[int]:
        forced = []
        bytes_max, lines_max = self._bounds.bytes_max, self._bounds.lines_max
        while start < end:
            limit = min(start + bytes_max, end)
            cut = _after_lines(block, start, limit, lines_max)
            if cut is None and limit == end:
                break
            if cut is None:
                cut = block.rfind(NEWLINE, start, limit) + 1 or _before_character(block, limit)
            if cut >= end:
                break
            forced.append(cut)
            start = cut
        return forced


def _after_lines(block: bytes, start: int, limit: int, lines_max: int) -> int | None:
    """Where the last line that an event may have ends, if it has that many before `limit`."""
    if block.count(NEWLINE, start, limit) < lines_max:
        return None
    at = start
    for _ in range(lines_max):
        at = block.index(NEWLINE, at) + 1
    return at


def _before_character(block: bytes, at: int) -> int:
    """`at`, or up to three bytes less: where a character of UTF-8 begins."""
    for back in range(4):
        if block[at - back] & 0xC0 != 0x80:
            return at - back
    return at


def _decodable(texts: list[bytes], block: bytes) -> tuple[list[bytes], int]:
    try:
        block.decode()
    except UnicodeDecodeError:
        clean = [text.decode("utf-8", "replace").encode() for text in texts]
        return clean, sum(map(bytes.__ne__, texts, clean))
    return texts, 0
