"""A segment as its writer holds it: payloads go in with `pwritev`, header and index through a map.

Everything that can fail (making the file, wiping it, writing payloads) comes before the first index
entry of a batch; what follows are stores into pages that were allocated and written before. So a
failed append leaves nothing to undo, whichever segment of a split batch failed. Against a `pwrite`
of the entries the stores were measured to take a third off a single append.

The order, and why a kill between any two steps is harmless:

1. wipe: zeros over header, then index, in one ascending write. The header goes first, so no
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
from collections.abc import Sequence
from pathlib import Path

from skyfarer.queue.disk import (
    BUFFERS_PER_WRITE_MAX,
    Disk,
    create_whole,
    write_all,
    write_buffers,
)
from skyfarer.queue.durability import sync_failed
from skyfarer.queue.errors import disk_error
from skyfarer.queue.layout import PAGE_BYTES, SLOT_BYTES, SegmentHeader
from skyfarer.queue.meta import Meta
from skyfarer.queue.records import seal
from skyfarer.queue.recovery import Tail


class Segment:
    """Open for writing. What is placed does not exist until it is entered."""

    def __init__(self, disk: Disk, directory: Path, meta: Meta, number: int) -> None:
        geometry = meta.geometry
        self.number = number
        self.first = 0
        self.slots_left = self._slots = geometry.slots
        self.bytes_left = self._payload_bytes = geometry.payload_bytes
        self._payload_offset = geometry.payload_offset
        self._queue_id = meta.queue_id
        self._has_header = False
        self.trusted = True
        self._entries = b""
        self._entered_bytes = 0
        self._path = geometry.path(directory, number)
        self._disk = disk
        self._fd, self._map = _open(disk, self._path, geometry.payload_offset)

    def resume(self, first: int, slot: int, start: int) -> None:
        """Continues after recovery behind `slot` records that end at payload offset `start`."""
        self.first, self._has_header = first, True
        self.slots_left = self._slots - slot
        self.bytes_left = self._payload_bytes - start

    def wipe(self, durable: bool) -> None:
        try:
            write_all(self._disk, self._fd, bytes(self._payload_offset), 0)
            if durable:
                self.trusted = False
                self._disk.sync_data(self._fd)
                self.trusted = True
        except OSError as error:
            raise disk_error(error, self._path, "wipe") from error

    def place(
        self,
        sequence: int,
        kind: int,
        lengths: Sequence[int],
        payloads: Sequence[bytes | memoryview],
        total: int,
    ) -> None:
        """Writes payloads behind those entered and makes their entries. May be repeated."""
        start = self._payload_bytes - self.bytes_left
        if not self._has_header:
            self.first = sequence
        self._entries = seal(self.number, sequence, start, kind, lengths, payloads)
        self._entered_bytes = total
        offset = self._payload_offset + start
        try:
            if len(payloads) > BUFFERS_PER_WRITE_MAX or total != self._disk.pwritev(
                self._fd, payloads, offset
            ):
                write_buffers(self._disk, self._fd, payloads, offset)
        except OSError as error:
            raise disk_error(error, self._path, "write to") from error

    def enter(self) -> None:
        """Makes what was placed last records. Cannot fail."""
        if not self._has_header:
            header = SegmentHeader(self.number, self.first, self._queue_id)
            self._map[:PAGE_BYTES] = header.encode()
            self._has_header = True
        entries = self._entries
        at = self._payload_offset - self.slots_left * SLOT_BYTES
        self._map[at : at + len(entries)] = entries
        self.slots_left -= len(entries) // SLOT_BYTES
        self.bytes_left -= self._entered_bytes

    def sync(self) -> None:
        """What was entered survives a power cut. Never to be called again once it has failed: the
        kernel reports a page it could not write once, and then takes it for clean."""
        try:
            self._disk.sync_data(self._fd)
        except OSError as error:
            self.trusted = False
            raise sync_failed(error, self._path) from error

    def close(self) -> None:
        self._map.close()
        self._disk.close(self._fd)


def free_segment(
    disk: Disk, directory: Path, meta: Meta, number: int, durable: bool = False
) -> Segment:
    """The ring's file for `number`, wiped: made if it is not there, reused if it is.

    With `durable` its name and its zeros survive a power cut before anything is written to it. A
    file that could not be synced is removed, so that the next attempt has another one.
    """
    geometry = meta.geometry
    path = geometry.path(directory, number)
    if not path.exists() or path.stat().st_size != geometry.segment_bytes:
        blank = bytes(geometry.payload_offset)
        create_whole(disk, path, blank, geometry.segment_bytes, durable)
        return Segment(disk, directory, meta, number)
    segment = Segment(disk, directory, meta, number)
    try:
        segment.wipe(durable)
    except BaseException:
        segment.close()
        if not segment.trusted:
            disk.unlink(path)
        raise
    return segment


def resumed_segment(disk: Disk, directory: Path, meta: Meta, tail: Tail) -> Segment:
    """The newest segment after recovery, open behind its last record."""
    segment = Segment(disk, directory, meta, tail.extent.number)
    segment.resume(tail.extent.first, tail.slot, tail.start)
    return segment


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
