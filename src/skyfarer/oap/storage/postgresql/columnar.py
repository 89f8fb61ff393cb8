"""Numbers of many rows as one row of columns: a hundred thousand rows come in one message.

A message a row, as COPY and SELECT have it, costs more on both sides than to find the rows. Here
the server appends what it finds, column by column, eight bytes a number, and numpy reads those in
place:

    entity ids     one text, with a line feed between two; an id has none
    a number       as it is sent, eight bytes, the most significant first
    a text         one after the other, and their lengths

A null is no bytes: a column of numbers that is shorter than the others is asked for again, with a
byte a row that says whether there is a value. What takes long to find is asked for once
(`read_once`), with those bytes. A text that is null becomes empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skyfarer.oap.storage.postgresql.columns import KEYS
from skyfarer.oap.storage.postgresql.copying import Cursor

_ID, _COUNTED = KEYS
"""The second is never null: it says how many rows there are."""
_SENT: Final = {
    "bigint": ("int8send({})", ">i8"),
    "integer": ("int8send({}::bigint)", ">i8"),
    "double precision": ("float8send({})", ">f8"),
}
_WIDTH: Final = 8
_TEXT: Final = "text"
_LINE: Final = ord("\n")


def read(
    cursor: Cursor, query: str, types: Mapping[str, str], asked: Mapping[str, object]
) -> pa.Table:
    """The answer of a query whose columns have these types in SQL: the keys, and numbers."""
    numbers = [name for name in types if name != _ID]
    parts = [f"string_agg(\"{_ID}\", E'\\n')"]
    parts += [f"string_agg({_sent(name, types)}, '')" for name in numbers]
    ids, *found = _row(cursor, parts, query, asked)
    count = len(found[numbers.index(_COUNTED)]) // _WIDTH
    columns = {_ID: texts(ids, count)}
    lacking = [
        name for name, sent in zip(numbers, found, strict=True) if len(sent) < count * _WIDTH
    ]
    for name, sent in zip(numbers, found, strict=True):
        if name not in lacking:
            columns[name] = pa.array(_numbers(sent, types[name]))
    if lacking:  # in the same order: it is the same query, in the same snapshot
        again = _row(cursor, _nullable(lacking, types), query, asked)
        columns |= _with_nulls(lacking, types, again)
    return pa.table({name: columns[name] for name in types})


def read_once(cursor: Cursor, query: str, types: Mapping[str, str]) -> pa.Table:
    """The answer of a query that is asked once, nulls and all; texts may be among its columns."""
    numbers = [name for name in types if types[name] != _TEXT]
    named = [name for name in types if name != _ID and types[name] == _TEXT]
    parts = [f"string_agg(\"{_ID}\", E'\\n')", *_nullable(numbers, types)]
    for name in named:
        parts.append(f"string_agg(\"{name}\", '')")
        parts.append(f"string_agg(int4send(coalesce(octet_length(\"{name}\"), 0)), '')")
    ids, *found = _row(cursor, parts, query, None)
    columns = _with_nulls(numbers, types, found[: 2 * len(numbers)])
    rest = found[2 * len(numbers) :]
    for name, text, lengths in zip(named, rest[::2], rest[1::2], strict=True):
        columns[name] = text_array(np.frombuffer(lengths, ">i4").cumsum(), text)
    columns[_ID] = texts(ids, len(columns[_COUNTED]))
    return pa.table({name: columns[name] for name in types})


def _nullable(names: Sequence[str], types: Mapping[str, str]) -> list[str]:
    parts = [f"string_agg(coalesce({_sent(name, types)}, int8send(0)), '')" for name in names]
    return parts + [f"string_agg(boolsend(\"{name}\" IS NULL), '')" for name in names]


def _with_nulls(
    names: Sequence[str], types: Mapping[str, str], found: Sequence[bytes]
) -> dict[str, pa.Array]:
    """Of what `_nullable` asks for."""
    pairs = zip(names, found[: len(names)], found[len(names) :], strict=True)
    return {
        name: pa.array(_numbers(sent, types[name]), mask=np.frombuffer(nulls, np.bool_))
        for name, sent, nulls in pairs
    }


def _row(
    cursor: Cursor,
    parts: Sequence[str],
    query: str,
    asked: Mapping[str, object] | None,
) -> list[bytes]:
    whole = f"WITH found AS ({query}) SELECT {', '.join(parts)} FROM found"
    cursor.execute(whole, asked)
    assert cursor.pgresult is not None, "a SELECT has an answer"
    return [cursor.pgresult.get_value(0, place) or b"" for place in range(len(parts))]


def _sent(name: str, types: Mapping[str, str]) -> str:
    function, _ = _SENT[types[name]]
    return function.format(f'"{name}"')


def _numbers(sent: bytes, of_type: str) -> npt.NDArray[np.generic]:
    _, form = _SENT[of_type]
    found = np.frombuffer(sent, form)
    return found.astype(found.dtype.newbyteorder("="))


def texts(sent: bytes, count: int) -> pa.Array:
    """Without the line feeds, as Arrow has texts: one after the other, and where each begins."""
    octets = np.frombuffer(sent, np.uint8)
    ends = np.append(np.flatnonzero(octets == _LINE), len(octets)) if count else np.empty(0, int)
    return text_array(ends - np.arange(count), np.ascontiguousarray(octets[octets != _LINE]))


def text_array(ends: npt.NDArray[np.int64], octets: bytes | npt.NDArray[np.uint8]) -> pa.Array:
    offsets = np.append(0, ends).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(octets)]
    return pa.Array.from_buffers(pa.string(), len(ends), buffers)
