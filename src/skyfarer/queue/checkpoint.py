"""How far a consumer is, and what it never got: the two slots of `consumer-<name>`.

    slot 0 at 0, slot 1 at 4096, each
    | magic 8 | queue id 16 | generation u64 | committed u64 | reasons u32 |
    | per reason: count u64, name 32 bytes, zero padded | … | crc32c u32 |

A commit overwrites the slot with the older generation, so a torn or damaged slot leaves the one
before it: a consumer may see a batch again, and never misses one.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from skyfarer.base.errors import PermanentError
from skyfarer.queue.checksum import crc32c
from skyfarer.queue.disk import Disk, write_all
from skyfarer.queue.errors import QueueMissing, disk_error
from skyfarer.queue.layout import PAGE_BYTES

SLOTS: Final = 2
FILE_BYTES: Final = SLOTS * PAGE_BYTES
REASONS_MAX: Final = 32
REASON_BYTES_MAX: Final = 32
OTHER_REASONS: Final = "other"

_HEAD: Final = struct.Struct("<8s16sQQI")
_GENERATION: Final = slice(24, 32)
_REASON: Final = struct.Struct(f"<Q{REASON_BYTES_MAX}s")
_CRC: Final = struct.Struct("<I")
_MAGIC: Final = b"SKYQCONS"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """`committed` is the next sequence wanted; `dropped` counts records below it, by reason."""

    generation: int
    committed: int
    dropped: Mapping[str, int] = field(default_factory=dict)

    @property
    def offset(self) -> int:
        return self.generation % SLOTS * PAGE_BYTES

    def advanced(self, committed: int, dropped: Mapping[str, int]) -> Checkpoint:
        totals = dict(self.dropped)
        for reason, records in dropped.items():
            name = _bounded(reason, totals)
            totals[name] = totals.get(name, 0) + records
        return Checkpoint(self.generation + 1, committed, totals)

    def encode(self, queue_id: bytes) -> bytes:
        body = _HEAD.pack(_MAGIC, queue_id, self.generation, self.committed, len(self.dropped))
        for reason, records in self.dropped.items():
            body += _REASON.pack(records, reason.encode())
        return body + _CRC.pack(crc32c(body))


def decode_newest(data: bytes, queue_id: bytes) -> Checkpoint | None:
    """The newer valid slot, or None when neither is whole.

    The one that says it is newer comes first, so mostly one is decoded: a writer does this at
    each turn to the next segment.
    """
    first, second = data[:PAGE_BYTES], data[PAGE_BYTES:FILE_BYTES]
    if _stated_generation(second) > _stated_generation(first):
        first, second = second, first
    return _decode(first, queue_id) or _decode(second, queue_id)


def peek(directory: Path, name: str, queue_id: bytes) -> Checkpoint | None:
    """What the consumer last committed, for the writer and for onlookers; takes no lock."""
    return peek_at(checkpoint_path(directory, name), queue_id)


def peek_at(path: Path, queue_id: bytes) -> Checkpoint | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return decode_newest(os.pread(fd, FILE_BYTES, 0), queue_id)
        finally:
            os.close(fd)
    except FileNotFoundError as error:
        raise QueueMissing(
            f"there is no {path}; its writer makes it for each name in its setting 'consumers'"
        ) from error
    except OSError as error:
        raise disk_error(error, path, "read") from error


def make_durable(disk: Disk, directory: Path, name: str) -> None:
    """By the writer, which has to know that a commit survives before it gives way to it.

    The last byte of each slot is never used. Storing it makes both pages dirty again: after a sync
    that failed the kernel takes them for clean, and the next would succeed without writing them.
    """
    path = checkpoint_path(directory, name)
    try:
        fd = disk.open(path, os.O_RDWR)
    except FileNotFoundError:
        return
    except OSError as error:
        raise disk_error(error, path, "open") from error
    try:
        for slot in range(SLOTS):
            write_all(disk, fd, b"\0", (slot + 1) * PAGE_BYTES - 1)
        disk.sync_data(fd)
    except OSError as error:
        raise disk_error(error, path, "sync") from error
    finally:
        disk.close(fd)


def checkpoint_path(directory: Path, name: str) -> Path:
    return directory / f"consumer-{name}"


def _stated_generation(slot: bytes) -> int:
    """Of a slot that may be anything, cut short too."""
    return int.from_bytes(slot[_GENERATION], "little")


def _decode(slot: bytes, queue_id: bytes) -> Checkpoint | None:
    if len(slot) < PAGE_BYTES:
        return None
    magic, owner, generation, committed, reasons = _HEAD.unpack_from(slot)
    end = _HEAD.size + reasons * _REASON.size
    if magic != _MAGIC or owner != queue_id or reasons > REASONS_MAX:
        return None
    if _CRC.unpack_from(slot, end)[0] != crc32c(slot[:end]):
        return None
    rows = _REASON.iter_unpack(slot[_HEAD.size : end])
    dropped = {name.rstrip(b"\0").decode(): records for records, name in rows}
    return Checkpoint(generation, committed, dropped)


def _bounded(reason: str, known: Mapping[str, int]) -> str:
    if not reason or len(reason.encode()) > REASON_BYTES_MAX:
        raise PermanentError(
            f"a drop reason has between 1 and {REASON_BYTES_MAX} bytes, not {reason!r}"
        )
    if reason in known or len(known) < REASONS_MAX - 1:
        return reason
    return OTHER_REASONS
