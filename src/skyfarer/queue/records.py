"""The index entry of a record and the checksum that binds it to its place.

    entry, 16 bytes     | start u32 | length u32 | kind u32 | crc u32 |
    crc = CRC32C( segment number u64, sequence u64, start u32, length u32, kind u32, payload )

The segment number is never used twice, so bytes of an earlier lap of the ring cannot validate, and
neither can an entry or a payload that a fault moved elsewhere. `kind` is never 0, so an all-zero
entry is never a record.

Both functions run whole batches through C iterators: at 1 KB per record the Python loop around
the checksum would cost more than the checksum.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate, compress, count, repeat
from operator import add, ne
from typing import Final

from skyfarer.queue.checksum import crc32c

KIND_MAX: Final = 0xFFFF_FFFF

_bind = struct.Struct("<QQIII").pack
_entry = struct.Struct("<IIII").pack


def seal(
    number: int,
    sequence: int,
    start: int,
    kind: int,
    lengths: Sequence[int],
    payloads: Sequence[bytes | memoryview],
) -> bytes:
    """Index entries of payloads that lie back to back from `start` in segment `number`."""
    if len(lengths) == 1:
        length = lengths[0]
        crc = crc32c(payloads[0], crc32c(_bind(number, sequence, start, length, kind)))
        return _entry(start, length, kind, crc)
    starts = list(accumulate(lengths[:-1], initial=start))
    binds = map(_bind, repeat(number), count(sequence), starts, lengths, repeat(kind))
    crcs = map(crc32c, payloads, map(crc32c, binds))
    return b"".join(map(_entry, starts, lengths, repeat(kind), crcs))


def failures(number: int, sequence: int, index: memoryview, data: memoryview) -> list[int]:
    """Positions in `index` whose record is not exactly what was appended under that sequence."""
    words = index.cast("I")
    starts, lengths, kinds, crcs = (words[field::4].tolist() for field in range(4))
    binds = map(_bind, repeat(number), count(sequence), starts, lengths, kinds)
    views = map(data.__getitem__, map(slice, starts, map(add, starts, lengths)))
    found = map(crc32c, views, map(crc32c, binds))
    return list(compress(count(), map(ne, crcs, found)))


def payload_views(index: memoryview, data: memoryview) -> list[memoryview]:
    words = index.cast("I")
    starts = words[0::4].tolist()
    ends = map(add, starts, words[1::4].tolist())
    return list(map(data.__getitem__, map(slice, starts, ends)))
