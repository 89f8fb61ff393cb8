"""A segment as its writer holds it: payloads go in with `pwritev`, header and index through a map.

Everything that can fail (making the file, wiping it, writing payloads) comes before the first index
entry of a batch; what follows are stores into pages that were allocated and written before. So a
failed append leaves nothing to undo, whichever segment of a split batch failed. Against a `pwrite`
of the entries the stores were measured to take a third off a single append. Under "fsync" it is the
other way round, see `synced`.

Payloads are checksummed behind their write, not before: the kernel fetches bytes that are in no
cache faster than a checksum does, and leaves them in one. A batch goes a piece at a time for the
same reason.

The order, and why a kill between any two steps is harmless:

1. wipe: zeros over header, then index, ascending. The header goes first, so no
   header ever stands above an index that is not its own. Without a header the segment is free.
2. payloads: bytes no entry points at.
3. header (only a segment's first batch), after every entry of the segment before it. Torn, it
   fails its checksum and the segment is free, its index being all zero.
4. entries. Torn, the tail is cut at recovery; whole but not yet acknowledged, they are records.
5. the caller publishes `writing`; only now do readers look.
"""

from __future__ import annotations

import mmap
import os
from array import array
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from skyfarer.base.errors import PermanentError, RetryableError, SkyfarerError
from skyfarer.queue.checksum import crc32c
from skyfarer.queue.disk import Disk, write_all, write_buffers, write_pieces
from skyfarer.queue.durability import SyncFailed, sync_failed
from skyfarer.queue.errors import disk_error
from skyfarer.queue.layout import PAGE_BYTES, SLOT_BYTES, SegmentHeader
from skyfarer.queue.meta import Meta
from skyfarer.queue.records import (
    ENTRY_WORDS,
    crcs_of,
    salt_of,
    seal,
)
from skyfarer.queue.recovery import Tail
from skyfarer.queue.split import pieces


class Segment:
    """Open for writing. What is placed does not exist until it is entered.

    What has no underscore is for `Writer.append`, which places and enters a single record itself:
    `slot` entries are there, the next goes to `at`, its payload behind `start` bytes of them; one
    that would end behind `limit` does not fit.
    """

    def __init__(self, disk: Disk, path: Path, meta: Meta, number: int) -> None:
        geometry = meta.geometry
        self.number = number
        self.first = 0
        self.trusted = True
        self.limit = -1
        self._slots = geometry.slots
        self.payload_offset = geometry.payload_offset
        self._payload_bytes = geometry.payload_bytes
        self._queue_id = meta.queue_id
        self.salt = 0
        self.crc = 0
        self.check = 0
        self.slot = 0
        self.at = PAGE_BYTES
        self.last_at = geometry.index.stop - SLOT_BYTES
        self.start = 0
        self._entries: array[int] = array("I")
        self._entered = (0, 0)
        self._path = path
        self._disk = disk
        self.pwrite = disk.pwrite
        self.store_entry = disk.store_entry
        self.fd, self.index = _open(disk, self._path, geometry.payload_offset)
        # By slot, the `check` of the entry before: a view of words costs a third of a slice.
        self.before = memoryview(self.index).cast("I")[PAGE_BYTES // 4 - 1 :: ENTRY_WORDS]

    @property
    def slots_left(self) -> int:
        return self._slots - self.slot if self.trusted else 0

    @property
    def bytes_left(self) -> int:
        return self._payload_bytes - self.start

    def resume(self, tail: Tail) -> None:
        """Continues after recovery."""
        self.first = tail.extent.first
        self.salt, self.crc = salt_of(self.number, self.first), tail.crc
        self._advance(tail.slot, tail.start)
        self.check = self.before[self.slot]

    def distrust(self) -> None:
        """It takes no other record."""
        self.trusted = False
        self.limit = -1

    def wipe(self, used_slots: int) -> None:
        """Of its index the slots that may hold anything. A whole one of a megabyte would take as
        long as a tenth of the payloads that follow it."""
        try:
            write_pieces(self._disk, self.fd, bytes(PAGE_BYTES + used_slots * SLOT_BYTES))
        except OSError as error:
            raise disk_error(error, self._path, "wipe") from error

    def add(
        self,
        sequence: int,
        kind: int,
        lengths: Sequence[int],
        payloads: Sequence[bytes | memoryview],
        total: int,
    ) -> bool:
        """`place` and `enter` of a batch; False where it does not fit."""
        if len(lengths) > self.slots_left or total > self.bytes_left:
            return False
        self.place(sequence, kind, lengths, payloads, total)
        self.enter()
        return True

    def place(
        self,
        sequence: int,
        kind: int,
        lengths: Sequence[int],
        payloads: Sequence[bytes | memoryview],
        total: int,
    ) -> None:
        """Writes payloads behind those entered and makes their entries. May be repeated."""
        if not self.slot:
            self.first = sequence
            self.salt = self.crc = salt_of(self.number, sequence)
        try:
            crcs = self._write(lengths, payloads)
        except OSError as error:
            raise self.unwritten(error) from error
        if self.slot and self.before[self.slot] != self.check:
            raise self.damaged()
        self._entries = seal(self.salt + self.slot, self.start, kind, lengths, crcs)
        self._entered = total, crcs[-1]

    def enter(self) -> None:
        """Makes what was placed last records. Cannot fail."""
        if not self.slot:
            self._store(SegmentHeader(self.number, self.first, self._queue_id).encode(), 0)
        entries = self._entries
        self._store(entries.tobytes(), self.at)
        payload_bytes, self.crc = self._entered
        self.check = entries[-1]
        self._advance(len(entries) // ENTRY_WORDS, payload_bytes)

    def _store(self, data: bytes, at: int) -> None:
        self.index[at : at + len(data)] = data

    def write_whole(self, payload: bytes | memoryview) -> None:
        """Behind the payloads entered, where one call was not enough."""
        self._check_bytes([payload])
        write_all(self._disk, self.fd, payload, self.payload_offset + self.start)

    def write_rest(self, payloads: Sequence[bytes | memoryview], offset: int) -> None:
        self._check_bytes(payloads)
        write_buffers(self._disk, self.fd, payloads, offset)

    def _check_bytes(self, payloads: Sequence[bytes | memoryview]) -> None:
        """A view of larger items counts those, and a write its bytes. It is noticed here and not
        before, so that it costs nobody else; nothing is entered yet, and the file may be longer
        than it should be."""
        for payload in payloads:
            if memoryview(payload).nbytes != len(payload):
                self._disk.truncate(self.fd, self.payload_offset + self._payload_bytes)
                raise PermanentError(
                    f"{self._path}: a payload must be bytes, not a view of {len(payload)} items "
                    f"in {memoryview(payload).nbytes} bytes"
                )

    def unwritten(self, error: OSError) -> SkyfarerError:
        return disk_error(error, self._path, "write to")

    def _write(self, lengths: Sequence[int], payloads: Sequence[bytes | memoryview]) -> list[int]:
        """Behind the payloads entered; their crcs."""
        if len(payloads) == 1:  # to cut it into pieces would take longer than to write it
            (payload,), offset = payloads, self.payload_offset + self.start
            if self.pwrite(self.fd, payload, offset) != lengths[0]:
                self.write_whole(payload)
            return [crc32c(payload, self.crc)]
        crcs: list[int] = []
        crc = self.crc
        offsets = list(accumulate(lengths, initial=self.payload_offset + self.start))
        for offset, buffers, size, is_whole in pieces(payloads, offsets):
            if self._disk.pwritev(self.fd, buffers, offset) != size:
                self.write_rest(buffers, offset)
            some = crcs_of(buffers, crc)
            crc = some[-1]
            crcs += some if is_whole else some[:-1]
        return crcs

    def _advance(self, slots: int, payload_bytes: int) -> None:
        self.slot += slots
        self.at += slots * SLOT_BYTES
        self.start += payload_bytes
        self.limit = self._payload_bytes if self.slots_left else -1

    def damaged(self) -> RetryableError:
        """The last entry is not what it was: a file that somebody cut is zeros again where it
        grows. A record whose crc goes on from there could not be proven."""
        self.distrust()
        return RetryableError(
            f"{self._path} was cut or overwritten by someone else; the queue goes on in another "
            "segment, and records that were in this one are counted as lost when they are read"
        )

    def sync(self) -> None:
        """What was entered survives a power cut. Never to be called again once it has failed: the
        kernel reports a page it could not write once, and then takes it for clean."""
        try:
            self._disk.sync_data(self.fd)
        except OSError as error:
            raise self._unsynced(error) from error

    def _unsynced(self, error: OSError) -> SyncFailed:
        self.distrust()
        return sync_failed(error, self._path)

    def close(self) -> None:
        self.before.release()
        self.index.close()
        self._disk.close(self.fd)


def _open(disk: Disk, path: Path, mapped_bytes: int) -> tuple[int, mmap.mmap]:
    try:
        fd = disk.open(path, os.O_RDWR)
        try:
            return fd, disk.map(fd, mapped_bytes)
        except BaseException:
            disk.close(fd)
            raise
    except OSError as error:
        raise disk_error(error, path, "open") from error
