"""What a directory holds after any end of its last writer.

Segments are taken as their headers say, in order of number. The records of each but the last run up
to the `first` of the next; the last is scanned. Behind its last valid record,

- leftovers of an append that never returned are a torn tail, and are cut;
- numbers below `promised` (a published `writing`, a commit) were accepted, and are damaged or gone:
  they stay used, readers report them lost, and writing goes on behind them.

A file whose header is damaged is renamed `.corrupt`, one per ring position is kept, and the gap
between its neighbours is what readers report lost. A second recovery finds nothing to do.
"""

from __future__ import annotations

import logging
import mmap
import os
from dataclasses import dataclass
from pathlib import Path

from skyfarer.queue.disk import Disk, write_all
from skyfarer.queue.errors import disk_error
from skyfarer.queue.layout import PAGE_BYTES, SLOT_BYTES, Extent, Geometry
from skyfarer.queue.meta import Meta
from skyfarer.queue.records import failures
from skyfarer.queue.survey import survey

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Tail:
    """The newest segment goes on at `slot` and at payload offset `start`."""

    extent: Extent
    slot: int
    start: int


@dataclass(frozen=True, slots=True)
class Recovered:
    """`tail` is None when the next record must open a new segment."""

    live: list[Extent]
    writing: int
    next_number: int
    tail: Tail | None
    torn: int = 0
    quarantined: int = 0
    lost: int = 0


def recover(disk: Disk, directory: Path, meta: Meta, promised: int) -> Recovered:
    """The caller owns the directory. Reads every header and one whole segment."""
    try:
        found = _recover(disk, directory, meta, promised)
    except OSError as error:
        raise disk_error(error, directory, "recover the queue in") from error
    if found.quarantined or found.lost:
        _log.error(
            "queue %s: %d records before %d and %d segment files are damaged; "
            "consumers will count what is gone as dropped",
            directory,
            found.lost,
            found.writing,
            found.quarantined,
        )
    return found


def _recover(disk: Disk, directory: Path, meta: Meta, promised: int) -> Recovered:
    geometry = meta.geometry
    for leftover in directory.glob("*.new"):
        disk.unlink(leftover)
    live, quarantined = survey(disk, directory, meta)
    if not live:
        # A segment holds at least one record, so no number so far is above `promised`.
        number = promised + 1 if promised or quarantined else 0
        return Recovered([], promised, number, None, 0, quarantined, promised)
    newest = live[-1]
    path = geometry.path(directory, newest.number)
    valid, start, touched = _scan(path, geometry, newest)
    slot = max(valid, promised - newest.first)
    if touched > slot:
        _cut(disk, path, slot, touched)
    lost = slot - valid
    # A lap is skipped after damage, so that no number ever names two segments.
    number = newest.number + 1 + (geometry.segments if quarantined or lost else 0)
    tail = Tail(newest, slot, start) if slot <= geometry.slots else None
    torn = max(0, touched - slot)
    return Recovered(live, newest.first + slot, number, tail, torn, quarantined, lost)


def _scan(path: Path, geometry: Geometry, extent: Extent) -> tuple[int, int, int]:
    """Slots up to the last valid record, where its payload ends, and slots ever touched."""
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), geometry.segment_bytes, access=mmap.ACCESS_READ)
    view = memoryview(mapped)
    index = view[PAGE_BYTES : geometry.payload_offset]
    touched = -(-len(bytes(index).rstrip(b"\0")) // SLOT_BYTES)
    entries, data = index[: touched * SLOT_BYTES], view[geometry.payload_offset :]
    damaged = set(failures(extent.number, extent.first, entries, data))
    valid = touched
    while valid and valid - 1 in damaged:
        valid -= 1
    last = index.cast("I")[4 * (valid - 1) : 4 * valid].tolist() if valid else [0, 0]
    return valid, last[0] + last[1], touched


def _cut(disk: Disk, path: Path, slot: int, touched: int) -> None:
    """Zeroes torn entries, so that they are not taken for damage once records follow them."""
    fd = disk.open(path, os.O_RDWR)
    try:
        zeros = bytes((touched - slot) * SLOT_BYTES)
        write_all(disk, fd, zeros, PAGE_BYTES + slot * SLOT_BYTES)
    finally:
        disk.close(fd)
