"""The file that knows, after any end of the process, which producers' records the queue has.

An append that dies leaves the first records of its batch, or none, and the queue's next number says
how many. So it is enough to write down before an append what it is going to do at which number.
docs/formats/producers.md has the bytes, and why a kill between any two steps is harmless.

    producers        a snapshot, and behind it a note of every numbered append since
    producers.old    the file before it, whole: should the snapshot be damaged
"""

from __future__ import annotations

import logging
import mmap
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from skyfarer.base.errors import PermanentError
from skyfarer.base.units import MIB
from skyfarer.oap.receivers.producers import Bounds, Producers
from skyfarer.queue.checksum import crc32c
from skyfarer.queue.disk import Disk, create_whole
from skyfarer.queue.errors import disk_error
from skyfarer.queue.layout import PAGE_BYTES, open_page, seal_page
from skyfarer.wire.numbering import Number, listed, numbers_of, parsed

log = logging.getLogger(__name__)

NAME: Final = "producers"
NOTES_BYTES: Final = 1 * MIB
VERSION: Final = 1
_MAGIC: Final = b"SKYQPROD"
_HEADER: Final = struct.Struct("<8sI16sQQI")  # magic, version, queue id, at, snapshot bytes, crc
_NOTE: Final = struct.Struct("<IIII")  # body bytes, kept, crc of the body, 0
_BODY: Final = struct.Struct("<QQB")  # at, first, length of the producer's name
_KEPT: Final = struct.Struct("<I")
_KEPT_AT: Final = 4


@dataclass(frozen=True, slots=True)
class Note:
    """An append at number `at` of the queue: its record i is the producer's `numbers[i]`."""

    at: int
    producer: str
    first: int
    numbers: Sequence[Number]

    def encode(self) -> bytes:
        name = self.producer.encode("ascii")
        text = listed(self.numbers, 0).encode("ascii")
        body = _BODY.pack(self.at, self.first, len(name)) + name + text
        head = _NOTE.pack(len(body), len(self.numbers), crc32c(body), 0)
        return (head + body).ljust(_padded(len(head) + len(body)), b"\0")

    @classmethod
    def decode(cls, body: bytes) -> Note:
        at, first, length = _BODY.unpack_from(body)
        end = _BODY.size + length
        items = parsed(body[end:].decode("ascii"))
        name = body[_BODY.size : end].decode("ascii")
        return cls(at, name, first, list(numbers_of(items, 0)))


class _File:
    """One of the two, mapped. `at`: what the snapshot says is so of the queue below that number."""

    def __init__(self, disk: Disk, path: Path) -> None:
        fd = disk.open(path, os.O_RDWR)
        try:
            self._map: mmap.mmap = disk.map(fd, os.fstat(fd).st_size)
        finally:
            disk.close(fd)
        self.at = -1
        self.snapshot: bytes | None = None
        self.end = self._size = len(self._map)

    def read_header(self, queue_id: bytes) -> None:
        """`at` stays below 0 for what is not a file of this queue."""
        body = open_page(self._map[:PAGE_BYTES], _HEADER.size)
        if body is None:
            return
        magic, version, owner, at, size, crc = _HEADER.unpack(body)
        if (magic, version, owner) != (_MAGIC, VERSION, queue_id):
            return
        snapshot = self._map[PAGE_BYTES : PAGE_BYTES + size]
        self.at, self.end = at, PAGE_BYTES + _padded(size)
        self.snapshot = snapshot if crc32c(snapshot) == crc else None

    def notes(self, writing: int) -> Iterator[tuple[Note, int]]:
        """Each with how many of its records there are; what an append that died had announced and
        not done is struck out. `end` is behind the last whole one."""
        while self.end + _NOTE.size <= self._size:
            size, kept, crc, _ = _NOTE.unpack_from(self._map, self.end)
            begin = self.end + _NOTE.size
            body = self._map[begin : begin + size]
            if size < _BODY.size or len(body) < size or crc32c(body) != crc:
                return
            try:
                note = Note.decode(body)
            except ValueError:
                return  # of a version that writes otherwise
            there = min(kept, max(0, writing - note.at))
            if there != kept:
                self.lower(self.end, there)
            yield note, there
            self.end = _padded(begin + size)

    @property
    def torn(self) -> bool:
        """Behind the last whole note there is more than the one that a kill cut off."""
        rest = self._map[self.end :].rstrip(b"\0")
        size = _KEPT.unpack_from(rest.ljust(4, b"\0"))[0]
        return len(rest) > _padded(_NOTE.size + size)

    def write(self, note: bytes) -> int | None:
        """Where it stands; None when there is no room. Cannot fail: stores into allocated pages."""
        place, end = self.end, self.end + len(note)
        if end > self._size:
            return None
        self._map[place:end] = note
        self.end = end
        return place

    def lower(self, place: int, kept: int) -> None:
        at = place + _KEPT_AT
        self._map[at : at + _KEPT.size] = _KEPT.pack(kept)

    def close(self) -> None:
        self._map.close()


class Journal:
    """In the queue's directory, which the caller owns; one thread. `load` first, once."""

    def __init__(
        self, directory: Path, disk: Disk | None = None, notes_bytes: int = NOTES_BYTES
    ) -> None:
        self._path = directory / NAME
        self._old = directory / f"{NAME}.old"
        self._disk = disk or Disk()
        self._notes_bytes = notes_bytes
        self._queue_id = b""
        self._file: _File | None = None

    def load(self, queue_id: bytes, writing: int, bounds: Bounds | None = None) -> Producers:
        """What is known, `writing` being the queue's next number. One line in the log if that is
        less than it was."""
        self._queue_id = queue_id
        old, new = (self._opened(path) for path in (self._old, self._path))
        usable = [one for one in (old, new) if one is not None and 0 <= one.at <= writing]
        based = max((n for n, one in enumerate(usable) if one.snapshot is not None), default=None)
        producers = Producers(bounds)
        if based is not None:
            producers = Producers.restored(usable[based].snapshot or b"", bounds)
        torn = False
        for one in usable[based or 0 :]:
            for note, kept in one.notes(writing):
                producers.add(note.producer, note.first, note.numbers[:kept])
            torn = torn or one.torn
        whole = self._judge(usable, new, writing, torn)
        for file in (old, new):
            if file is not None:
                file.close()
        if not whole:
            # In its own place, so that the good one before it stays until there are two again.
            self._create(producers, writing)
        self.renew(producers, writing)
        return producers

    def _judge(self, usable: Sequence[_File], new: _File | None, writing: int, torn: bool) -> bool:
        """A kill in `renew` may leave the old file alone, and that is all there is to know then."""
        if new is None and not usable:
            lost = "is not there" if writing else ""
        elif torn or (new is not None and (new not in usable or new.snapshot is None)):
            lost = "is damaged, or not of the queue as it is"
        else:
            lost = ""
        if lost:
            log.warning(
                "%s %s: which records of satellites the queue has is known in part only, and what "
                "they send again may be kept twice",
                *(self._path, lost),
            )
        return not lost

    def write(self, note: Note, producers: Producers) -> int:
        """Before the append. Returns where it is, for `lower`. `producers` is what was before it.
        RetryableError when the disk is full, PermanentError for more than a file can hold."""
        encoded = note.encode()
        if len(encoded) > self._notes_bytes:
            raise PermanentError("a call lists more records than can be noted; send fewer at once")
        place = self._started().write(encoded)
        if place is None:
            self.renew(producers, note.at)
            place = self._started().write(encoded)
            assert place is not None
        return place

    def lower(self, place: int, kept: int) -> None:
        """The append failed, and left so many records of the note just written."""
        self._started().lower(place, kept)

    def renew(self, producers: Producers, at: int) -> None:
        """A new file with what is known, and no notes; the one before stays as `.old`."""
        try:
            if self._path.exists():
                self._disk.rename(self._path, self._old)
        except OSError as error:
            raise disk_error(error, self._path, "rename") from error
        self._create(producers, at)

    def _create(self, producers: Producers, at: int) -> None:
        """In the place of the one there is. Until it is there, notes go to the one before."""
        snapshot = producers.snapshot()
        header = _HEADER.pack(_MAGIC, VERSION, self._queue_id, at, len(snapshot), crc32c(snapshot))
        size = PAGE_BYTES + _padded(len(snapshot)) + self._notes_bytes
        create_whole(self._disk, self._path, seal_page(header) + snapshot, size, durable=False)
        try:
            file = _File(self._disk, self._path)
        except OSError as error:
            raise disk_error(error, self._path, "open") from error
        file.read_header(self._queue_id)
        self.close()
        self._file = file

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _started(self) -> _File:
        if self._file is None:
            raise PermanentError(f"{self._path}: written before start or after stop")
        return self._file

    def _opened(self, path: Path) -> _File | None:
        try:
            file = _File(self._disk, path)
        except (FileNotFoundError, ValueError):
            return None  # not there, or empty, which cannot be mapped
        file.read_header(self._queue_id)
        return file


def _padded(size: int) -> int:
    return -(-size // 8) * 8
