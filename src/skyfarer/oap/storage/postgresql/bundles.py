"""Columns of a bundle: what many rows of one batch say, as one value each of an appended row.

To store a row costs the server what it costs whatever is in it, and a line of its index as much
again; to read it costs as much once more. So some thousand rows are one here, column by column:

    entity ids   a text: LF, and every id with LF behind it. An id has none: who looks for one looks
                 for it between two LF, and its place are the LF before it

                 +---------+---------+----------+------------------+------------------------+
    numbers      | form: 1 | null: 1 | base: 8  | a number a row   | a bit a row, if `null` |
                 +---------+---------+----------+------------------+------------------------+
                 `form` is the place among FORMS, `base` a signed number (`narrow`). A bit is set
                 where there is no value, the lowest of a byte first; the number there is 0.

                 +------+--------+------+-------+------+--------+------+---------+-------+
    tables       | size | counts | size | codes | size | values | size | lengths | names |
                 +------+--------+------+-------+------+--------+------+---------+-------+
                 All but `names` are numbers as above, without nulls, after their size in bytes: how
                 many entries each row has, the key of each entry, its value, and the length of each
                 key in `names`.

A size has four bytes; sizes and bases have their lowest byte first. Names are UTF-8 and follow each
other; the code of a key is its place among them. A table without entries is a null.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from skyfarer.oap.core.storage import Merge
from skyfarer.oap.storage.entries import taken_apart
from skyfarer.oap.storage.postgresql.columnar import text_array, texts
from skyfarer.oap.storage.postgresql.copying import without_nul
from skyfarer.oap.storage.postgresql.narrow import FORMS, Numbers, narrowed, widened
from skyfarer.oap.storage.postgresql.tables import BOTH

_HEAD: Final = struct.Struct("<BBq")
_SIZE: Final = struct.Struct("<I")
_LINE: Final = "\n"
_PARTS: Final = 4


def written_ids(ids: pa.Array) -> str:
    return f"{_LINE}{_LINE.join(ids.to_pylist())}{_LINE}"


def line_of(entity_id: str) -> str:
    """What the ids of a bundle have in them if it is one of them."""
    return f"{_LINE}{entity_id}{_LINE}"


def read_ids(text: str, count: int) -> pa.Array:
    return texts(text[1:-1].encode(), count)


def places_of(entity_id: str, ids: str) -> Iterator[int]:
    """The rows it has; few, and mostly one."""
    line, counted, place = line_of(entity_id), 0, 0
    found = ids.find(line)
    while found >= 0:
        place += ids.count(_LINE, counted, found)
        yield place
        counted, found = found, ids.find(line, found + 1)


def written(column: pa.ChunkedArray) -> bytes:
    whole = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return _table(whole) if pa.types.is_map(whole.type) else _numbers(whole)


def _numbers(column: pa.Array) -> bytes:
    if not column.null_count:
        return _narrow(column.to_numpy())
    nulls = column.is_null().to_numpy(zero_copy_only=False)
    bits = np.packbits(nulls, bitorder="little").tobytes()
    return _narrow(column.fill_null(0).to_numpy(), has_nulls=True) + bits


def _narrow(numbers: Numbers, has_nulls: bool = False) -> bytes:
    form, base, octets = narrowed(numbers)
    return _HEAD.pack(FORMS.index(form), has_nulls, base) + octets


def _table(tables: pa.MapArray) -> bytes:
    taken = taken_apart(tables)
    names = without_nul(taken.keys.dictionary).to_pylist()
    octets = [name.encode() for name in names]
    lengths = np.fromiter(map(len, octets), np.int64, len(octets))
    numbers = taken.counts, taken.keys.indices.to_numpy(), taken.values, lengths
    parts = [part for some in map(_narrow, numbers) for part in (_SIZE.pack(len(some)), some)]
    return b"".join([*parts, *octets])


def read_numbers(octets: bytes, count: int) -> pa.Array:
    form, has_nulls, base = _HEAD.unpack_from(octets)
    numbers = np.frombuffer(octets, FORMS[form], count, _HEAD.size)
    if not has_nulls:
        return pa.array(widened(numbers, base))
    bits = np.frombuffer(octets, np.uint8, offset=_HEAD.size + numbers.nbytes)
    nulls = np.unpackbits(bits, count=count, bitorder="little").astype(np.bool_)
    return pa.array(widened(numbers, base), mask=nulls)


def number_at(octets: bytes, place: int, count: int) -> int | float | None:
    """Of one row of so many."""
    form, has_nulls, base = _HEAD.unpack_from(octets)
    numbers = np.frombuffer(octets, FORMS[form], count, _HEAD.size)
    bits = _HEAD.size + numbers.nbytes + place // 8
    if has_nulls and octets[bits] >> place % 8 & 1:
        return None
    value: int | float = numbers[place].item() + base
    return value


def read_tables(octets: bytes) -> pa.MapArray:
    """Coded ones."""
    taken = _taken(octets)
    offsets = np.append(0, np.cumsum(widened(*taken.counts))).astype(np.int32)
    names = text_array(taken.name_ends, np.frombuffer(taken.names, np.uint8))
    return pa.MapArray.from_arrays(
        pa.array(offsets),
        pa.DictionaryArray.from_arrays(pa.array(widened(*taken.codes, np.int32)), names),
        pa.array(widened(*taken.values)),
        mask=pa.array(np.diff(offsets) == 0),
    )


def table_at(octets: bytes, place: int, merge: Merge) -> dict[str, int] | None:
    """Of one row; the others are not taken apart."""
    taken = _taken(octets)
    counts, base = taken.counts
    first = int(counts[:place].sum(dtype=np.int64)) + place * base
    own = slice(first, first + int(counts[place]) + base)
    (codes, least_code), (values, least) = taken.codes, taken.values
    found: dict[str, int] = {}
    for code, above in zip(codes[own].tolist(), values[own].tolist(), strict=True):
        key, value = taken.name(code + least_code), above + least
        found[key] = BOTH[merge](found[key], value) if key in found else value
    return found or None


_Raw = tuple[Numbers, int]
"""Numbers as they lie there, and their base."""


class _Taken(NamedTuple):
    counts: _Raw
    codes: _Raw
    values: _Raw
    name_ends: Numbers
    names: memoryview

    def name(self, code: int) -> str:
        begin = int(self.name_ends[code - 1]) if code else 0
        return str(self.names[begin : self.name_ends[code]], "utf-8")


def _taken(octets: bytes) -> _Taken:
    parts, at, view = list[_Raw](), 0, memoryview(octets)
    for _ in range(_PARTS):
        (size,) = _SIZE.unpack_from(octets, at)
        at += _SIZE.size
        form, _, base = _HEAD.unpack_from(octets, at)
        parts.append((np.frombuffer(view[at + _HEAD.size : at + size], FORMS[form]), base))
        at += size
    counts, codes, values, lengths = parts
    return _Taken(counts, codes, values, np.cumsum(widened(*lengths)), view[at:])
