"""Arrow tables brought to PostgreSQL in its binary COPY, without a look at a row in Python.

    bring(cursor, "incoming", rows)     a temporary table of the transaction, and its rows

A text of PostgreSQL has no NUL character (U+0000): each becomes U+FFFD here, as a byte that is no
UTF-8 does elsewhere, and in every text that a statement binds (`Text`). Bytes (`binary`) are stored
as they are. Dictionaries are taken apart; there are no maps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import pgpq
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg.types.string import StrDumperUnknown

ROWS_AT_FIRST: Final = 1024
ROWS_PER_WRITE: Final = 4096
"""Shaped and encoded at once: the server works on the ones before meanwhile, and nothing need be
held in memory twice."""
COLLATED: Final = 'COLLATE "C"'
_NUL, _INSTEAD = "\x00", "�"

Cursor = psycopg.Cursor[tuple[Any, ...]]
Shaping = Callable[[pa.Table], pa.Table]
"""Rows as they are to be sent, made of some of them at a time; of none too."""


def _as_they_are(rows: pa.Table) -> pa.Table:
    return rows


class Text(StrDumperUnknown):
    """Of a bound parameter."""

    def dump(self, obj: str) -> Any:
        return super().dump(told(obj))


def told(text: str) -> str:
    """As it is stored; half of a surrogate pair, which JSON can name, is no character either."""
    whole = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return whole.replace(_NUL, _INSTEAD)


def bring(cursor: Cursor, table: str, rows: pa.Table, shaped: Shaping = _as_they_are) -> None:
    """Makes the temporary table `table`, gone at the end of the transaction; one of that name that
    is there already is replaced."""
    encoder = _encoder(rows, shaped)
    columns = encoder.schema().columns
    listed = ", ".join(f'"{column.name}" {_type(column.data_type.ddl())}' for column in columns)
    cursor.execute(f"DROP TABLE IF EXISTS pg_temp.{table}")
    cursor.execute(f"CREATE TEMP TABLE {table} ({listed}) ON COMMIT DROP")
    _send(cursor, f"COPY pg_temp.{table} FROM STDIN (FORMAT BINARY)", encoder, rows, shaped)


def _type(declared: str | None) -> str:
    collated = declared is not None and declared.startswith("TEXT")
    return f"{declared} {COLLATED}" if collated else f"{declared}"


def append(cursor: Cursor, table: str, rows: pa.Table, shaped: Shaping = _as_they_are) -> None:
    """Straight into a table that has these columns, with these types, once they are `shaped`."""
    encoder = _encoder(rows, shaped)
    listed = ", ".join(f'"{column.name}"' for column in encoder.schema().columns)
    statement = f"COPY {table} ({listed}) FROM STDIN (FORMAT BINARY)"
    _send(cursor, statement, encoder, rows, shaped)


def _encoder(rows: pa.Table, shaped: Shaping) -> pgpq.ArrowToPostgresBinaryEncoder:
    return pgpq.ArrowToPostgresBinaryEncoder(prepared(shaped(rows.slice(0, 0))).schema)


def _send(
    cursor: Cursor,
    statement: str,
    encoder: pgpq.ArrowToPostgresBinaryEncoder,
    rows: pa.Table,
    shaped: Shaping,
) -> None:
    with cursor.copy(statement) as copy:
        copy.write(encoder.write_header())
        for some in pieces(rows):
            for batch in prepared(shaped(some)).combine_chunks().to_batches():
                copy.write(encoder.write_batch(batch))
        copy.write(encoder.finish())


def pieces(rows: pa.Table) -> Iterator[pa.Table]:
    """A small one first: the server has nothing to do until it comes."""
    first, count = 0, ROWS_AT_FIRST
    while first < rows.num_rows:
        yield rows.slice(first, count)
        first, count = first + count, min(2 * count, ROWS_PER_WRITE)


def prepared(rows: pa.Table) -> pa.Table:
    """With columns as the encoder and PostgreSQL take them."""
    columns = zip(rows.column_names, rows.columns, strict=True)
    return pa.table({name: _clean(column) for name, column in columns})


def _clean(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_list(column.type) and pa.types.is_string(column.type.value_type):
        column = _whole(column)
        texts = without_nul(column.values)
        return pa.ListArray.from_arrays(column.offsets, texts, mask=column.is_null())
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return without_nul(column)
    return column


def _whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """In one piece that is no part of another: its offsets are its own."""
    found = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return found.take(pa.array(range(len(found)))) if found.offset else found


def without_nul(texts: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """In UTF-8 the character is a byte that is part of no other: to look at the bytes will do."""
    chunks = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
    if not any(_NUL.encode() in _octets(chunk) for chunk in chunks):
        return texts
    return pc.replace_substring(texts, _NUL, _INSTEAD)


def _octets(texts: pa.Array) -> bytes:
    """Of all texts, one after the other."""
    _, offsets, octets = texts.buffers()
    if not len(texts) or octets is None:
        return b""
    width = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    ends = np.frombuffer(offsets, width)
    first, end = int(ends[texts.offset]), int(ends[texts.offset + len(texts)])
    return bytes(octets.slice(first, end - first))
