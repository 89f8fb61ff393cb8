"""Which segments may have come already: a filter a day in memory, so that a new one costs no look.

To find a batch's ids among those of its day DuckDB reads the whole column: the longer the day, the
slower every batch. A Bloom filter tells nearly all new ids from those that came; only the others
are looked for, by the index. It is filled from the day's tables when it is first asked, and by
every batch afterwards. What it has of a batch that failed, or of a day that was dropped, costs a
look and nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

BITS: Final = 2**26
"""8 MiB a day: of a million ids one in 90,000 is looked for in vain, of ten million one in 25."""
HASHES: Final = 4
DAYS_MAX: Final = 3
"""The newest; ids of an older day are all looked for."""


class Known:
    """Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._days: dict[int, _Filter] = {}

    def suspects(
        self, day: int, ids: Sequence[str], stored: Callable[[], Iterable[Sequence[str]]]
    ) -> list[str]:
        """Those that may be stored; `stored` are all that are, asked for when the day is new."""
        with self._lock:
            if day not in self._days and not self._room_for(day):
                return list(ids)
            if day not in self._days:
                made = _Filter()
                for some in stored():
                    made.add(some)
                self._days[day] = made
            return self._days[day].suspects(ids)

    def add(self, day: int, ids: Sequence[str]) -> None:
        """Once they are durable: whoever asks before finds them in the database."""
        with self._lock:
            if day in self._days:
                self._days[day].add(ids)

    def _room_for(self, day: int) -> bool:
        if len(self._days) < DAYS_MAX:
            return True
        oldest = min(self._days)
        if oldest < day:
            del self._days[oldest]
        return oldest < day


class _Filter:
    def __init__(self) -> None:
        self._bits = np.zeros(BITS // 8, np.uint8)

    def add(self, ids: Sequence[str]) -> None:
        octets, masks = _places(ids)
        np.bitwise_or.at(self._bits, octets.ravel(), masks.ravel())

    def suspects(self, ids: Sequence[str]) -> list[str]:
        octets, masks = _places(ids)
        found = (self._bits[octets] & masks).all(axis=0)
        return [ids[place] for place in np.flatnonzero(found).tolist()]


def _places(ids: Sequence[str]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint8]]:
    """Of HASHES bits each: the octets they are in, and the bits in these."""
    hashes = np.fromiter(map(hash, ids), np.int64, len(ids)).view(np.uint64)
    low, high = hashes & np.uint64(2**32 - 1), hashes >> np.uint64(32) | np.uint64(1)
    steps = np.arange(HASHES, dtype=np.uint64)[:, None]
    bits = (low + steps * high) % np.uint64(BITS)
    return bits >> np.uint64(3), np.uint8(1) << (bits & np.uint64(7)).astype(np.uint8)
