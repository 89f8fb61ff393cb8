"""What a directory is and how full it is, seen from outside: no lock taken, nothing written.

The owner may be at work meanwhile. Numbers are therefore read in an order that keeps the ledger
true: first the consumers' places, then `writing`, which only grows. Damage is
believed at the second look only, because a segment may be seen while it is being reused.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from skyfarer.queue.checkpoint import peek
from skyfarer.queue.errors import disk_error
from skyfarer.queue.fill import consumer_names, held_and_used, written_bytes
from skyfarer.queue.layout import FORMAT_VERSION, PAGE_BYTES, Extent, decode_segment_header
from skyfarer.queue.meta import Meta, read_meta
from skyfarer.queue.ownership import Owner, owner_of
from skyfarer.queue.state import map_state
from skyfarer.queue.survey import Look


@dataclass(frozen=True, slots=True)
class Ledger:
    """accepted = delivered + queued + dropped. `overwritten` of the queued are gone already; their
    consumer will count them as dropped when it comes to them."""

    committed: int
    accepted: int
    delivered: int
    queued: int
    dropped: dict[str, int]
    overwritten: int


@dataclass(frozen=True, slots=True)
class ConsumerView:
    """`ledger` is None when both slots of its file are damaged."""

    name: str
    ledger: Ledger | None


@dataclass(frozen=True, slots=True)
class Room:
    """Segments and the bytes they take. `used` hold records some consumer still wants, `reusable`
    hold records all have committed, `free` hold none."""

    segments: int
    used: int
    reusable: int
    free: int
    used_bytes: int
    free_bytes: int


@dataclass(frozen=True, slots=True)
class Inspection:
    """`damaged_files` would be set aside at the next start of a writer, `corrupt_files` were.
    `written_bytes` is what `fill` says of it."""

    directory: str
    format_version: int
    queue_id: str
    segment_bytes: int
    capacity_bytes: int
    owner: Owner
    oldest: int
    writing: int
    written_bytes: int
    consumers: tuple[ConsumerView, ...]
    room: Room
    damaged_files: tuple[str, ...]
    corrupt_files: tuple[str, ...]


def inspect(directory: Path) -> Inspection:
    """QueueMissing where no writer ever was; PermanentError for another format or a bad disk."""
    meta = read_meta(directory)
    shape = meta.geometry
    try:
        consumers, oldest, writing = _ledgers(directory, meta)
        live, damaged = segment_files(directory, meta)
        written = written_bytes(directory, shape, live, writing)
        corrupt = sorted(path.name for path in directory.glob("*.corrupt"))
        owner = owner_of(directory)
    except OSError as error:
        raise disk_error(error, directory, "inspect the queue in") from error
    return Inspection(
        directory=str(directory),
        format_version=FORMAT_VERSION,
        queue_id=meta.queue_id.hex(),
        segment_bytes=shape.segment_bytes,
        capacity_bytes=shape.segment_bytes * shape.segments,
        owner=owner,
        oldest=oldest,
        writing=writing,
        written_bytes=written,
        consumers=consumers,
        room=_room(meta, live, oldest, writing, consumers),
        damaged_files=tuple(damaged),
        corrupt_files=tuple(corrupt),
    )


def segment_files(directory: Path, meta: Meta) -> tuple[list[Extent], list[str]]:
    """Segments with a whole header in order, and names of files that are not what they should be:
    a wrong size, a header that is not ours, or none where records belong."""
    live, damaged = _scan(directory, meta)
    if damaged:
        live, still = _scan(directory, meta)
        damaged = [name for name in damaged if name in still]
    return live, damaged


def _scan(directory: Path, meta: Meta) -> tuple[list[Extent], list[str]]:
    shape = meta.geometry
    looks = {n: _look(shape.path(directory, n), meta) for n in range(shape.segments)}
    live = sorted(look for look in looks.values() if isinstance(look, Extent))
    within = range(live[0].number, live[-1].number)[-shape.segments :] if live else ()
    expected = {number % shape.segments for number in within}
    damaged = [
        shape.path(directory, position).name
        for position, look in looks.items()
        if look is Look.GARBLED or (look is Look.WIPED and position in expected)
    ]
    return live, damaged


def _look(path: Path, meta: Meta) -> Extent | Look:
    try:
        with path.open("rb") as file:
            return _judge(file, path, meta)
    except FileNotFoundError:
        return Look.FREE
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return Look.GARBLED


def _judge(file: BinaryIO, path: Path, meta: Meta) -> Extent | Look:
    shape = meta.geometry
    if os.fstat(file.fileno()).st_size != shape.segment_bytes:
        return Look.GARBLED
    page = file.read(PAGE_BYTES)
    header = decode_segment_header(page, meta.queue_id)
    if header is not None:
        at_home = shape.path(path.parent, header.number) == path
        return Extent(header.number, header.first) if at_home else Look.GARBLED
    if not any(file.read(shape.payload_offset - PAGE_BYTES)):
        return Look.FREE
    return Look.GARBLED if any(page) else Look.WIPED


def _ledgers(directory: Path, meta: Meta) -> tuple[tuple[ConsumerView, ...], int, int]:
    names = list(consumer_names(directory))
    places = [peek(directory, name, meta.queue_id) for name in names]
    state = map_state(directory, meta.queue_id)
    try:
        writing, oldest = state.writing, state.oldest
    finally:
        state.close()
    views = []
    for name, place in zip(names, places, strict=True):
        ledger = _ledger(place.committed, dict(place.dropped), oldest, writing) if place else None
        views.append(ConsumerView(name, ledger))
    return tuple(views), oldest, writing


def _ledger(committed: int, dropped: dict[str, int], oldest: int, writing: int) -> Ledger:
    return Ledger(
        committed=committed,
        accepted=writing,
        delivered=committed - sum(dropped.values()),
        queued=writing - committed,
        dropped=dropped,
        overwritten=max(0, oldest - committed),
    )


def _room(
    meta: Meta, live: list[Extent], oldest: int, writing: int, consumers: tuple[ConsumerView, ...]
) -> Room:
    """A consumer whose file is damaged holds everything, as it does for the writer."""
    shape = meta.geometry
    wanted = min((c.ledger.committed if c.ledger else 0 for c in consumers), default=0)
    held, used = held_and_used(live, oldest, writing, wanted)
    return Room(
        segments=shape.segments,
        used=used,
        reusable=held - used,
        free=shape.segments - held,
        used_bytes=used * shape.segment_bytes,
        free_bytes=(shape.segments - used) * shape.segment_bytes,
    )
