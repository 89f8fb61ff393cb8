"""A segment under "fsync": entries go in with `pwrite` too, and a small group in the fewest steps.

A sync leaves the page of the index that it wrote read-only in the map, so that the kernel notices
the next store: each group would begin with a fault, which takes longer than a `pwrite` of its
entries. A `pwrite` may fail where a store may not. But so may the sync behind it, and neither
leaves anything that can be relied on: both are a failed sync, and the batch is taken back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from skyfarer.queue.disk import write_all, write_buffers
from skyfarer.queue.durability import sync_failed
from skyfarer.queue.errors import disk_error
from skyfarer.queue.layout import SLOT_BYTES
from skyfarer.queue.records import seal_few
from skyfarer.queue.segment import Segment
from skyfarer.queue.split import PIECE_BYTES

GROUP_RECORDS_MAX: Final = 32


class SyncedSegment(Segment):
    """What `add` returns True for survives a power cut. `enter` may fail, with SyncFailed."""

    def add(
        self,
        sequence: int,
        kind: int,
        lengths: Sequence[int],
        payloads: Sequence[bytes | memoryview],
        total: int,
    ) -> bool:
        """A group of a piece or less in one call here: the wait for the disk leaves nothing of
        this program in a cache, and ten calls behind it take as long as ten records."""
        slot, start, count = self._slot, self._start, len(lengths)
        if (
            not slot
            or start + total > self._limit
            or slot + count > self._slots
            or count > GROUP_RECORDS_MAX
            or total > PIECE_BYTES
        ):
            if added := super().add(sequence, kind, lengths, payloads, total):
                self.sync()
            return added
        disk, fd, at = self._disk, self._fd, self._at
        try:
            if disk.pwritev(fd, payloads, self._payload_offset + start) != total:
                write_buffers(disk, fd, payloads, self._payload_offset + start)
        except OSError as error:
            raise disk_error(error, self._path, "write to") from error
        if self._before[slot] != self._check:
            raise self._damaged()
        entries, crc, check = seal_few(self._salt + slot, start, kind, payloads, self._crc)
        try:
            if disk.pwrite(fd, entries, at) != count * SLOT_BYTES:
                write_all(disk, fd, entries, at)
            disk.sync_data(fd)
        except OSError as error:
            self.distrust()
            raise sync_failed(error, self._path) from error
        self._crc, self._check = crc, check
        self._slot, self._at = slot + count, at + count * SLOT_BYTES
        self._start = start + total
        return True

    def _store(self, data: bytes, at: int) -> None:
        try:
            write_all(self._disk, self._fd, data, at)
        except OSError as error:
            self.distrust()
            raise sync_failed(error, self._path) from error
