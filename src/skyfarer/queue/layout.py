"""Where bytes lie: the geometry of a segment and the page that survives a flipped bit.

segment file                                   sealed page (segment header, `meta`)
+-----------------+ 0                          +----------------------+ 0
| header (sealed) |                            | body | crc32c | 0 …  |
+-----------------+ 4096                       +----------------------+ 2048
| index: slots×20 |                            | the same again       |
+-----------------+ payload_offset             +----------------------+ 4096
| payloads        |
+-----------------+ segment_bytes              all integers little-endian
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from skyfarer.base.units import GIB, KIB
from skyfarer.queue.checksum import crc32c

FORMAT_VERSION: Final = 2
PAGE_BYTES: Final = 4096
SLOT_BYTES: Final = 20
SEGMENT_TO_INDEX: Final = 16
SEGMENT_BYTES_MIN: Final = 16 * KIB
SEGMENT_BYTES_MAX: Final = 1 * GIB

_COPY_OFFSET: Final = PAGE_BYTES // 2
_CRC: Final = struct.Struct("<I")
_SEGMENT: Final = struct.Struct("<8sIIQQ16s")
_SEGMENT_MAGIC: Final = b"SKYQSEG\0"


@dataclass(frozen=True, slots=True)
class Geometry:
    """Derived from two numbers that never change in the life of a directory."""

    segment_bytes: int
    segments: int

    @property
    def payload_offset(self) -> int:
        """A sixteenth is header and index: a slot per 320 bytes, less the header. That way the
        payloads of a large segment begin on a large power of two, as the page cache likes."""
        return max(2, -(-self.segment_bytes // SEGMENT_TO_INDEX // PAGE_BYTES)) * PAGE_BYTES

    @property
    def slots(self) -> int:
        return (self.payload_offset - PAGE_BYTES) // SLOT_BYTES

    @property
    def index(self) -> slice:
        return slice(PAGE_BYTES, PAGE_BYTES + self.slots * SLOT_BYTES)

    @property
    def payload_bytes(self) -> int:
        return self.segment_bytes - self.payload_offset

    def name(self, number: int) -> str:
        return f"{number % self.segments:05d}.seg"

    def path(self, directory: Path, number: int) -> Path:
        return directory / self.name(number)


class Extent(NamedTuple):
    """A segment that holds records: from `first` up to the `first` of the next extent."""

    number: int
    first: int


@dataclass(frozen=True, slots=True)
class SegmentHeader:
    """`number` grows by one from segment to segment; `first` is the sequence of slot 0. A number is
    used again only in a new file, when the one that had it is unlinked or set aside."""

    number: int
    first: int
    queue_id: bytes

    def encode(self) -> bytes:
        return seal_page(
            _SEGMENT.pack(_SEGMENT_MAGIC, FORMAT_VERSION, 0, self.number, self.first, self.queue_id)
        )


def decode_segment_header(page: bytes | memoryview, queue_id: bytes) -> SegmentHeader | None:
    """None for anything that is not a whole header of this queue, an all-zero page included."""
    body = open_page(page, _SEGMENT.size)
    if body is None:
        return None
    magic, version, _, number, first, owner = _SEGMENT.unpack(body)
    if magic != _SEGMENT_MAGIC or version != FORMAT_VERSION or owner != queue_id:
        return None
    return SegmentHeader(number, first, owner)


def seal_page(body: bytes) -> bytes:
    """Two copies, so that damage to one of them costs nothing."""
    copy = (body + _CRC.pack(crc32c(body))).ljust(_COPY_OFFSET, b"\0")
    return copy + copy


def open_page(page: bytes | memoryview, body_bytes: int) -> bytes | None:
    for offset in (0, _COPY_OFFSET):
        body = bytes(page[offset : offset + body_bytes])
        seal = bytes(page[offset + body_bytes : offset + body_bytes + _CRC.size])
        if len(seal) == _CRC.size and _CRC.unpack(seal)[0] == crc32c(body):
            return body
    return None
