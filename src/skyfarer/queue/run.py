"""A run: consecutive records of one segment as they lie in the map, or consecutive lost numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final, TypeVar

from skyfarer.queue.layout import SLOT_BYTES
from skyfarer.queue.records import kinds_of, payload_views

T = TypeVar("T")

CORRUPT: Final = "corrupt"
OVERFLOW: Final = "overflow"


@dataclass(frozen=True, slots=True)
class Run:
    """Numbers `first` to `end - 1`, each a record in `index` or a number in `damaged`.

    `index` is raw: `count` entries of 20 bytes (u32 start, length, kind, crc, check), those of
    damaged records included; it is empty for a run of lost numbers. `data` is the payload region of
    the whole segment, read-only and not copied. When nothing is damaged the payloads lie back to
    back: the starts and the end of the last are the offsets of an Arrow binary array over `data`.

    For a consumer's own process the bytes stay as they are until that consumer commits past them.
    """

    first: int
    count: int
    index: memoryview
    data: memoryview
    damaged: Sequence[int] = ()
    reason: str = CORRUPT

    @property
    def end(self) -> int:
        return self.first + self.count

    @property
    def dropped(self) -> dict[str, int]:
        """What to pass to `Consumer.commit` with `end`."""
        return {self.reason: len(self.damaged)} if self.damaged else {}

    def payloads(self) -> list[memoryview]:
        """Views into `data`, without damaged records; `kinds` and `sequences` match."""
        return self._whole(payload_views(self.index, self.data))

    def kinds(self) -> list[int]:
        return self._whole(kinds_of(self.index))

    def sequences(self) -> Sequence[int]:
        every = range(self.first, self.first + len(self.index) // SLOT_BYTES)
        return self._whole(list(every)) if self.damaged else every

    def _whole(self, values: list[T]) -> list[T]:
        if not self.damaged or not values:
            return values
        kept = [True] * len(values)
        for sequence in self.damaged:
            kept[sequence - self.first] = False
        return list(compress(values, kept))


def lost(first: int, end: int, reason: str) -> Run:
    """Numbers that were records once, and whose segment is gone."""
    nothing = memoryview(b"")
    return Run(first, end - first, nothing, nothing, range(first, end), reason)
