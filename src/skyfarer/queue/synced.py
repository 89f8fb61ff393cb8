"""A segment under "fsync": its entries go in with `pwrite`, and a group in one function.

A sync leaves the page of the index that it wrote read-only in the map, so that the kernel notices
the next store. Each group would begin with that fault, and it takes three times as long as a
`pwrite` of its entries. A `pwrite` may fail where a store may not. But so may the sync behind it,
and after neither is it known what the disk has, so both are a failed sync: the batch is refused and
taken back.

The disk begins with the payloads while their entries are made. And a program that has waited for
a disk finds nothing of itself in a cache: each further function that a group goes through was
measured to cost it a microsecond and more, ten times what it costs a loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from skyfarer.base.units import MIB
from skyfarer.queue.disk import Disk, write_all, writeback
from skyfarer.queue.meta import Meta
from skyfarer.queue.records import crcs_of, seal, seal_few
from skyfarer.queue.segment import Segment

GROUP_RECORDS_MAX: Final = 512
GROUP_BYTES_MAX: Final = 2 * MIB
FEW: Final = 32  # from some 40 on entries are made faster in columns


class SyncedSegment(Segment):
    """What `add` has returned True for survives a power cut. `enter` may fail, as a sync does."""

    def __init__(self, disk: Disk, path: Path, meta: Meta, number: int) -> None:
        super().__init__(disk, path, meta, number)
        writeback()  # found now, and not behind the first group

    def add(
        self,
        sequence: int,
        kind: int,
        lengths: Sequence[int],
        payloads: Sequence[bytes | memoryview],
        total: int,
    ) -> bool:
        slot, at, start, count = self.slot, self.at, self.start, len(lengths)
        if (
            not slot
            or start + total > self.limit
            or slot + count > self._slots
            or count > GROUP_RECORDS_MAX
            or total > GROUP_BYTES_MAX
        ):
            if added := super().add(sequence, kind, lengths, payloads, total):
                self.sync()
            return added
        disk, fd, offset = self._disk, self.fd, self.payload_offset + start
        try:
            if disk.pwritev(fd, payloads, offset) != total:
                self.write_rest(payloads, offset)
        except OSError as error:
            raise self.unwritten(error) from error
        try:
            disk.begin_sync(fd, offset, total)
            if self.before[slot] != self.check:
                raise self.damaged()
            if count <= FEW:
                entries, crc, check = seal_few(self.salt + slot, start, kind, payloads, self.crc)
            else:
                crcs = crcs_of(payloads, self.crc)
                words = seal(self.salt + slot, start, kind, lengths, crcs)
                entries, crc, check = words.tobytes(), crcs[-1], words[-1]
            if disk.pwrite(fd, entries, at) != len(entries):
                write_all(disk, fd, entries, at)
            disk.sync_data(fd)
        except OSError as error:
            raise self._unsynced(error) from error
        self.crc, self.check = crc, check
        self.slot, self.at, self.start = slot + count, at + len(entries), start + total
        return True

    def _write(self, lengths: Sequence[int], payloads: Sequence[bytes | memoryview]) -> list[int]:
        """A group that `add` had no room for goes the same way, to the next segment."""
        total = sum(lengths)
        if len(lengths) > GROUP_RECORDS_MAX or total > GROUP_BYTES_MAX:
            return super()._write(lengths, payloads)
        disk, fd, offset = self._disk, self.fd, self.payload_offset + self.start
        if disk.pwritev(fd, payloads, offset) != total:
            self.write_rest(payloads, offset)
        try:
            disk.begin_sync(fd, offset, total)
        except OSError as error:
            raise self._unsynced(error) from error
        return crcs_of(payloads, self.crc)

    def _store(self, data: bytes, at: int) -> None:
        try:
            write_all(self._disk, self.fd, data, at)
        except OSError as error:
            raise self._unsynced(error) from error
