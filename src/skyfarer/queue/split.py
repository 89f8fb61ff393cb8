"""Cutting a batch: at segment ends, and into the writes of one segment."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from skyfarer.base.units import KIB
from skyfarer.queue.disk import BUFFERS_PER_WRITE_MAX
from skyfarer.queue.layout import Geometry

PIECE_BYTES: Final = 256 * KIB
LITTLE: Final = 16  # one part in so many of a segment


class Part(NamedTuple):
    """Records `begin` to `end - 1` of a batch, `total` bytes, go to one segment."""

    begin: int
    end: int
    total: int


def split(
    lengths: Sequence[int], slots: int, room: int, geometry: Geometry, whole: bool = False
) -> list[Part]:
    """The first part, maybe empty, fits `slots` and `room`; each other an empty segment.

    With `whole`, where each segment of a batch costs a sync, it is empty as well if what is left is
    little and the next segment takes all.
    """
    begin = total = 0
    if whole and (slots * LITTLE <= geometry.slots or room * LITTLE <= geometry.payload_bytes):
        count, total = len(lengths), sum(lengths)
        if count <= geometry.slots and total <= geometry.payload_bytes:
            return [Part(0, 0, 0), Part(0, count, total)]
        total = 0
    parts: list[Part] = []
    for position, length in enumerate(lengths):
        if slots == 0 or length > room:
            parts.append(Part(begin, position, total))
            begin, total = position, 0
            slots, room = geometry.slots, geometry.payload_bytes
        slots, room, total = slots - 1, room - length, total + length
    parts.append(Part(begin, len(lengths), total))
    return parts


class Piece(NamedTuple):
    """`size` bytes for one call at `offset`; unless `is_whole` the last buffer is only the
    beginning of a record, or more of it, and the next piece goes on with it."""

    offset: int
    buffers: list[bytes | memoryview]
    size: int
    is_whole: bool


def pieces(payloads: Sequence[bytes | memoryview], offsets: Sequence[int]) -> Iterator[Piece]:
    """Writes that end on multiples of PIECE_BYTES in the file, records cut where they lie across.

    Small enough that source and copy stay in a second cache, where they are checksummed. Even,
    because the page cache keeps what one call brought in folios as large as its place allows, and
    mapping large ones costs a reader a third of mapping small ones. `offsets` are where the
    payloads begin, and where the last ends.
    """
    begin, offset, count = 0, offsets[0], len(payloads)
    while begin < count:
        stop = offset - offset % PIECE_BYTES + PIECE_BYTES
        end = min(bisect_left(offsets, stop, begin + 1, count), begin + BUFFERS_PER_WRITE_MAX)
        buffers = list(payloads[begin:end])
        is_whole = offsets[end] <= stop
        if not is_whole:
            buffers[-1] = memoryview(buffers[-1])[: stop - offsets[end - 1]]
        if offset > offsets[begin]:
            buffers[0] = memoryview(buffers[0])[offset - offsets[begin] :]
        size = min(offsets[end], stop) - offset
        yield Piece(offset, buffers, size, is_whole)
        begin, offset = (end if is_whole else end - 1), offset + size
