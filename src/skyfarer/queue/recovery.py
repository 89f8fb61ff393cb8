"""What a directory holds after any end of its last writer.

Segments are taken as their headers say, in order of number. The records of each but the last run up
to the `first` of the next; the last is searched for its last valid record. Behind that,

- leftovers of an append that never returned are a torn tail, and are cut;
- numbers below what was promised (a `writing` shown to readers, a commit) were accepted, and are
  damaged or gone: they stay used, and writing goes on behind them.

A file whose header is damaged is renamed `.corrupt`, one per ring position is kept; so is the
newest if its index cannot be read. Losses need no book: they are the numbers from `oldest` to
`writing` that no segment holds, and readers report them. A second recovery finds nothing to do.
"""

from __future__ import annotations

import errno
import logging
import os
from dataclasses import dataclass
from pathlib import Path

from skyfarer.queue.disk import Disk, write_all
from skyfarer.queue.errors import disk_error
from skyfarer.queue.layout import PAGE_BYTES, SLOT_BYTES, Extent, Geometry
from skyfarer.queue.meta import Meta
from skyfarer.queue.records import Payloads, chain_before, failures, salt_of
from skyfarer.queue.survey import set_aside, survey

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Tail:
    """The newest segment goes on at `slot`, at payload offset `start`, behind a record with `crc`
    (its salt when it holds none)."""

    extent: Extent
    slot: int
    start: int
    crc: int


@dataclass(frozen=True, slots=True)
class Recovered:
    """`tail` is None when the next record must open a new segment. `lost` counts before the first
    segment and behind the last; what is gone in between shows when it is read."""

    live: list[Extent]
    oldest: int
    writing: int
    next_number: int
    tail: Tail | None
    torn: int
    lost: int
    quarantined: int


def recover(
    disk: Disk,
    directory: Path,
    meta: Meta,
    shown: tuple[int, int] | None,
    committed: tuple[int, int],
) -> Recovered:
    """The caller owns the directory. Reads every header, an index and, unless it is torn, a record.

    `shown` are the `oldest` and `writing` last shown to readers, None when that is not known.
    `committed` is how far the slowest and the farthest consumer are.
    """
    try:
        found = _recover(disk, directory, meta, shown, committed)
    except OSError as error:
        raise disk_error(error, directory, "recover the queue in") from error
    if found.quarantined or found.lost:
        _log.error(
            "queue %s: %d segment files are damaged and %d or more records gone; "
            "consumers will count them as dropped",
            directory,
            found.quarantined,
            found.lost,
        )
    return found


def _recover(
    disk: Disk,
    directory: Path,
    meta: Meta,
    shown: tuple[int, int] | None,
    committed: tuple[int, int],
) -> Recovered:
    for leftover in directory.glob("*.new"):
        disk.unlink(leftover)
    slowest, farthest = committed
    promised = max(shown[1], farthest) if shown else farthest
    live, quarantined = survey(disk, directory, meta)
    found = None
    while live and not (found := _recover_tail(disk, directory, meta.geometry, live[-1], promised)):
        set_aside(disk, meta.geometry.path(directory, live.pop().number))
        quarantined += 1
    if found is None:
        oldest = min(shown[0], promised) if shown else promised
        return Recovered([], oldest, promised, 0, None, 0, promised - oldest, quarantined)
    oldest = min(max(shown[0], slowest), live[0].first) if shown else live[0].first
    tail, torn, gone = found
    lost = gone + live[0].first - oldest
    number = live[-1].number + 1
    writing = tail.extent.first + tail.slot
    goes_on = tail if tail.slot <= meta.geometry.slots else None
    return Recovered(live, oldest, writing, number, goes_on, torn, lost, quarantined)


class _Payloads:
    """The payloads of a segment, read when asked for. A map would be as fast, but a sector that
    cannot be read ends the process there; here such a payload is damaged, like any other."""

    def __init__(self, disk: Disk, fd: int, geometry: Geometry) -> None:
        self._disk = disk
        self._fd = fd
        self._geometry = geometry

    def __getitem__(self, part: slice, /) -> bytes:
        length = max(0, min(part.stop, self._geometry.payload_bytes) - part.start)
        offset = self._geometry.payload_offset + part.start
        return _read(self._disk, self._fd, length, offset) or b""


def _read(disk: Disk, fd: int, length: int, offset: int) -> bytes | None:
    """None where the disk cannot read it."""
    try:
        return disk.pread(fd, length, offset)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return None


def _recover_tail(
    disk: Disk, directory: Path, geometry: Geometry, newest: Extent, promised: int
) -> tuple[Tail, int, int] | None:
    """Where the newest segment goes on, entries cut as torn, and promised records it lacks. None
    where its index cannot be read."""
    path = geometry.path(directory, newest.number)
    salt = salt_of(newest.number, newest.first)
    fd = disk.open(path, os.O_RDONLY)
    try:
        read = _read(disk, fd, geometry.index.stop - geometry.index.start, geometry.index.start)
        if read is None:
            return None
        index = memoryview(read)
        touched = _touched(index)
        valid = _valid(salt, touched, index, _Payloads(disk, fd, geometry))
    finally:
        disk.close(fd)
    slot = max(valid, promised - newest.first)
    if touched > slot:
        cut_entries(disk, path, slot, touched)
    _, crc, start = chain_before(min(slot, touched), salt, index)
    return Tail(newest, slot, start, crc), max(0, touched - slot), slot - valid


def _valid(salt: int, touched: int, index: memoryview, data: Payloads) -> int:
    """The slot behind the last record that is whole.

    Sought from behind, so one record is read where nothing is torn: whether those before it are
    whole changes nothing about where writing goes on, and readers will see.
    """
    slot, *_ = chain_before(touched, salt, index)
    while slot and failures(salt, slot - 1, slot, index, data):
        slot, *_ = chain_before(slot - 1, salt, index)
    return slot


def _touched(index: memoryview) -> int:
    """Slots up to the last that is not zero; most of an index never is, so blocks go first."""
    end = len(index)
    for block_bytes in (16 * PAGE_BYTES, PAGE_BYTES):
        blank = bytes(block_bytes)
        while end and index[max(0, end - block_bytes) : end].tobytes() == blank[:end]:
            end -= min(end, block_bytes)
    last = index[max(0, end - PAGE_BYTES) : end].tobytes().rstrip(b"\0")
    return -(-(max(0, end - PAGE_BYTES) + len(last)) // SLOT_BYTES)


def cut_entries(disk: Disk, path: Path, slot: int, touched: int) -> None:
    """Zeroes torn entries, so that they are not taken for damage once records follow them."""
    fd = disk.open(path, os.O_RDWR)
    try:
        zeros = bytes((touched - slot) * SLOT_BYTES)
        write_all(disk, fd, zeros, PAGE_BYTES + slot * SLOT_BYTES)
    finally:
        disk.close(fd)
