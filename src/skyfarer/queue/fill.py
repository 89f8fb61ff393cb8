"""How full a ring is and how much of it was used up so far, from its files alone.

A look from outside, as `inspection` is, and light enough for a sidecar to take at every scrape: one
page of every segment is read, nothing is locked, nothing written. The order keeps it true while the
owner works: first the consumers' places, then `writing`, which only grows, then the segments.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from skyfarer.queue.checkpoint import peek
from skyfarer.queue.errors import disk_error
from skyfarer.queue.layout import PAGE_BYTES, SLOT_BYTES, Extent, Geometry, decode_segment_header
from skyfarer.queue.meta import Meta, read_meta
from skyfarer.queue.state import map_state

_CONSUMER: Final = "consumer-"
_UNFINISHED: Final = ".new"
_START_AND_LENGTH: Final = struct.Struct("<II")  # what an entry of the index begins with


class Fill(NamedTuple):
    """`free_bytes` are segments that no consumer wants; `written_bytes` see `written_bytes`."""

    capacity_bytes: int
    free_bytes: int
    written_bytes: int
    writing: int


def fill_of(directory: Path) -> Fill:
    """QueueMissing where no writer ever was; PermanentError for another format or a bad disk."""
    meta = read_meta(directory)
    shape = meta.geometry
    try:
        places = [peek(directory, name, meta.queue_id) for name in consumer_names(directory)]
        state = map_state(directory, meta.queue_id)
        try:
            writing, oldest = state.writing, state.oldest
        finally:
            state.close()
        live = _live(directory, meta)
        written = written_bytes(directory, shape, live, writing)
    except OSError as error:
        raise disk_error(error, directory, "look into the queue in") from error
    wanted = min((place.committed if place else 0 for place in places), default=0)
    _, used = held_and_used(live, oldest, writing, wanted)
    free_bytes = (shape.segments - used) * shape.segment_bytes
    return Fill(shape.segments * shape.segment_bytes, free_bytes, written, writing)


def consumer_names(directory: Path) -> Iterator[str]:
    for name in sorted(os.listdir(directory)):  # noqa: PTH208 - names are all that is wanted
        if name.startswith(_CONSUMER) and not name.endswith(_UNFINISHED):
            yield name.removeprefix(_CONSUMER)


def held_and_used(
    live: Sequence[Extent], oldest: int, writing: int, wanted: int
) -> tuple[int, int]:
    """Segments with records from `oldest` on, and how many of them have such from `wanted` on."""
    ends = [*(extent.first for extent in live[1:]), writing]
    held = [end for end in ends[: len(live)] if end > oldest]
    return len(held), sum(end > wanted for end in held)


def written_bytes(directory: Path, shape: Geometry, live: Sequence[Extent], writing: int) -> int:
    """How much of the ring was used up in all its laps: whole segments, and of the newest the
    larger share of its slots and its payload bytes."""
    if not live:
        return 0
    newest = live[-1]
    records = min(max(0, writing - newest.first), shape.slots)
    end = _payload_end(shape.path(directory, newest.number), records)
    share = max(records / shape.slots, min(1.0, end / shape.payload_bytes))
    return int((newest.number + share) * shape.segment_bytes)


def _payload_end(path: Path, records: int) -> int:
    """Where the payload of the last of so many records ends; 0 when that cannot be seen."""
    entry = _read(path, PAGE_BYTES + (records - 1) * SLOT_BYTES, _START_AND_LENGTH.size)
    return sum(_START_AND_LENGTH.unpack(entry)) if records and entry else 0


def _live(directory: Path, meta: Meta) -> list[Extent]:
    shape, found = meta.geometry, []
    for position in range(shape.segments):
        path = shape.path(directory, position)
        header = decode_segment_header(_read(path, 0, PAGE_BYTES), meta.queue_id)
        if header is not None and shape.path(directory, header.number) == path:
            found.append(Extent(header.number, header.first))
    return sorted(found)


def _read(path: Path, offset: int, size_bytes: int) -> bytes:
    """Nothing where there is no such file, or not so much of it."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    try:
        data = os.pread(fd, size_bytes, offset)
    finally:
        os.close(fd)
    return data if len(data) == size_bytes else b""
