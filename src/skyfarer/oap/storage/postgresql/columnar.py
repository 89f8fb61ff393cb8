"""Numbers of many rows as one row of columns: a hundred thousand rows come in one message.

A message a row, as COPY and SELECT have it, costs more on both sides than to find the rows. Here
the server appends what it finds, column by column, eight bytes a number, and numpy reads those in
place:

    entity ids     one text, with a line feed between two; an id has none
    a number       BIGINT or DOUBLE PRECISION as it is sent, the most significant byte first

A null is no bytes: a column that is shorter than the others is asked for again, with a byte a row
that says whether there is a value.
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
_SENT: Final = {"bigint": ("int8send", ">i8"), "double precision": ("float8send", ">f8")}
_WIDTH: Final = 8
_LINE: Final = ord("\n")


def read(
    cursor: Cursor, query: str, types: Mapping[str, str], asked: Mapping[str, object]
) -> pa.Table:
    """The answer of a query whose columns have these types in SQL; the keys are among them."""
    numbers = [name for name in types if name != _ID]
    parts = [f"string_agg(\"{_ID}\", E'\\n')"]
    parts += [f"string_agg({_sent(name, types)}, '')" for name in numbers]
    ids, *found = _row(cursor, parts, query, asked)
    count = len(found[numbers.index(_COUNTED)]) // _WIDTH
    columns = {_ID: _texts(ids, count)}
    lacking = [
        name for name, sent in zip(numbers, found, strict=True) if len(sent) < count * _WIDTH
    ]
    for name, sent in zip(numbers, found, strict=True):
        if name not in lacking:
            columns[name] = pa.array(_numbers(sent, types[name]))
    columns |= _with_nulls(cursor, lacking, query, types, asked)
    return pa.table({name: columns[name] for name in types})


def _with_nulls(
    cursor: Cursor,
    names: Sequence[str],
    query: str,
    types: Mapping[str, str],
    asked: Mapping[str, object],
) -> dict[str, pa.Array]:
    """In the same order: it is the same query, in the same snapshot."""
    if not names:
        return {}
    parts = [f"string_agg(coalesce({_sent(name, types)}, int8send(0)), '')" for name in names]
    parts += [f"string_agg(boolsend(\"{name}\" IS NULL), '')" for name in names]
    found = _row(cursor, parts, query, asked)
    pairs = zip(names, found[: len(names)], found[len(names) :], strict=True)
    return {
        name: pa.array(_numbers(sent, types[name]), mask=np.frombuffer(nulls, np.bool_))
        for name, sent, nulls in pairs
    }


def _row(
    cursor: Cursor, parts: Sequence[str], query: str, asked: Mapping[str, object]
) -> list[bytes]:
    cursor.execute(f"SELECT {', '.join(parts)} FROM ({query}) AS found", asked)
    assert cursor.pgresult is not None, "a SELECT has an answer"
    return [cursor.pgresult.get_value(0, place) or b"" for place in range(len(parts))]


def _sent(name: str, types: Mapping[str, str]) -> str:
    function, _ = _SENT[types[name]]
    return f'{function}("{name}")'


def _numbers(sent: bytes, of_type: str) -> npt.NDArray[np.generic]:
    _, form = _SENT[of_type]
    found = np.frombuffer(sent, form)
    return found.astype(found.dtype.newbyteorder("="))


def _texts(sent: bytes, count: int) -> pa.Array:
    """Without the line feeds, as Arrow has texts: one after the other, and where each begins."""
    octets = np.frombuffer(sent, np.uint8)
    ends = np.append(np.flatnonzero(octets == _LINE), len(octets)) if count else np.empty(0, int)
    offsets = np.append(0, ends - np.arange(count)).astype(np.int32)
    whole = np.ascontiguousarray(octets[octets != _LINE])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(whole)]
    return pa.Array.from_buffers(pa.string(), count, buffers)
