"""How a writer comes by a segment: made, wiped for another lap, or gone on with after a restart."""

from __future__ import annotations

from pathlib import Path

from skyfarer.queue.disk import Disk, create_whole, has_size
from skyfarer.queue.meta import Meta
from skyfarer.queue.recovery import Tail
from skyfarer.queue.segment import Segment
from skyfarer.queue.synced import SyncedSegment


def free_segment(
    disk: Disk, path: Path, meta: Meta, number: int, used_slots: int, durable: bool
) -> Segment:
    """The ring's file for `number`, wiped: made if it is not there, reused if it is, and then the
    index behind `used_slots` is known to be zero.

    With `durable` the name of one that is made survives a power cut before anything is written to
    it. The zeros of a reused one do not.
    """
    geometry = meta.geometry
    kind = SyncedSegment if durable else Segment
    if not has_size(path, geometry.segment_bytes):
        blank = bytes(geometry.payload_offset)
        create_whole(disk, path, blank, geometry.segment_bytes, durable)
        return kind(disk, path, meta, number)
    segment = kind(disk, path, meta, number)
    try:
        segment.wipe(used_slots)
    except BaseException:
        segment.close()
        raise
    return segment


def resumed_segment(disk: Disk, directory: Path, meta: Meta, tail: Tail, durable: bool) -> Segment:
    """The newest segment after recovery, open behind its last record."""
    number = tail.extent.number
    kind = SyncedSegment if durable else Segment
    segment = kind(disk, meta.geometry.path(directory, number), meta, number)
    segment.resume(tail)
    return segment
