"""Which numbers of one producer the queue has: ranges, since most come one after the other."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable


class Held:
    """`settled`: all below is over, as far as the producer has said. `floor`: some below may be
    held and is forgotten, so that not having it here says nothing."""

    __slots__ = ("_ends", "_starts", "floor", "settled")

    def __init__(self, ranges: Iterable[tuple[int, int]] = (), settled: int = 0, floor: int = 0):
        pairs = list(ranges)
        self._starts = [start for start, _ in pairs]
        self._ends = [end for _, end in pairs]
        self.settled = settled
        self.floor = floor

    def __len__(self) -> int:
        """Ranges, not numbers: what it costs to remember."""
        return len(self._starts)

    @property
    def end(self) -> int:
        """Behind the highest number; 0 if there is none."""
        return self._ends[-1] if self._ends else 0

    def ranges(self) -> list[tuple[int, int]]:
        """Ascending, neither touching nor overlapping, each without its end."""
        return list(zip(self._starts, self._ends, strict=True))

    def has(self, number: int) -> bool:
        ends = self._ends
        if not ends or number >= ends[-1]:
            return False
        at = bisect_right(self._starts, number) - 1
        return at >= 0 and number < ends[at]

    def add(self, start: int, end: int) -> None:
        """Numbers from `start` to `end - 1`."""
        starts, ends = self._starts, self._ends
        if ends and start == ends[-1]:
            ends[-1] = end
            return
        first, last = bisect_left(ends, start), bisect_right(starts, end)
        if first < last:
            start, end = min(start, starts[first]), max(end, ends[last - 1])
        starts[first:last] = [start]
        ends[first:last] = [end]

    def forget(self, ranges_max: int) -> None:
        """Keeps so many of the highest."""
        over = len(self._starts) - ranges_max
        if over > 0:
            self.floor = max(self.floor, self._ends[over - 1])
            del self._starts[:over], self._ends[:over]
