"""Arrow tables brought to PostgreSQL in its binary COPY, without a look at a row in Python.

    bring(cursor, "incoming", rows)     a temporary table of the transaction, and its rows

A text of PostgreSQL has no NUL character (U+0000): each becomes U+FFFD here, as a byte that is no
UTF-8 does elsewhere, and in every text that a statement binds (`Text`). Bytes (`binary`) are stored
as they are. Dictionaries are taken apart; there are no maps.
"""

from __future__ import annotations

from typing import Any, Final

import pgpq
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg.types.string import StrDumperUnknown

ROWS_PER_WRITE: Final = 4096
"""Encoded at once: what is sent meanwhile need not be held in memory twice."""
COLLATED: Final = 'COLLATE "C"'
_NUL, _INSTEAD = "\x00", "�"

Cursor = psycopg.Cursor[tuple[Any, ...]]


class Text(StrDumperUnknown):
    """Of a bound parameter."""

    def dump(self, obj: str) -> Any:
        return super().dump(told(obj))


def told(text: str) -> str:
    """As it is stored; half of a surrogate pair, which JSON can name, is no character either."""
    whole = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return whole.replace(_NUL, _INSTEAD)


def bring(cursor: Cursor, table: str, rows: pa.Table) -> None:
    """Makes the temporary table `table`, gone at the end of the transaction; one of that name that
    is there already is replaced."""
    rows = prepared(rows)
    encoder = pgpq.ArrowToPostgresBinaryEncoder(rows.schema)
    columns = encoder.schema().columns
    listed = ", ".join(f'"{column.name}" {_type(column.data_type.ddl())}' for column in columns)
    cursor.execute(f"DROP TABLE IF EXISTS pg_temp.{table}")
    cursor.execute(f"CREATE TEMP TABLE {table} ({listed}) ON COMMIT DROP")
    _send(cursor, f"COPY pg_temp.{table} FROM STDIN (FORMAT BINARY)", encoder, rows)


def _type(declared: str | None) -> str:
    collated = declared is not None and declared.startswith("TEXT")
    return f"{declared} {COLLATED}" if collated else f"{declared}"


def append(cursor: Cursor, table: str, rows: pa.Table) -> None:
    """Straight into a table that has these columns, with these types."""
    rows = prepared(rows)
    listed = ", ".join(f'"{name}"' for name in rows.column_names)
    statement = f"COPY {table} ({listed}) FROM STDIN (FORMAT BINARY)"
    _send(cursor, statement, pgpq.ArrowToPostgresBinaryEncoder(rows.schema), rows)


def _send(
    cursor: Cursor, statement: str, encoder: pgpq.ArrowToPostgresBinaryEncoder, rows: pa.Table
) -> None:
    with cursor.copy(statement) as copy:
        copy.write(encoder.write_header())
        for batch in rows.to_batches(ROWS_PER_WRITE):
            copy.write(encoder.write_batch(batch))
        copy.write(encoder.finish())


def prepared(rows: pa.Table) -> pa.Table:
    """With columns as the encoder and PostgreSQL take them."""
    columns = zip(rows.column_names, rows.columns, strict=True)
    return pa.table({name: _clean(column) for name, column in columns})


def _clean(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_list(column.type) and pa.types.is_string(column.type.value_type):
        column = _whole(column)
        texts = _without_nul(column.values)
        return pa.ListArray.from_arrays(column.offsets, texts, mask=column.is_null())
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return _without_nul(column)
    return column


def _whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """In one piece that is no part of another: its offsets are its own."""
    found = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return found.take(pa.array(range(len(found)))) if found.offset else found


def _without_nul(texts: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    if not pc.any(pc.match_substring(texts, _NUL)).as_py():
        return texts
    return pc.replace_substring(texts, _NUL, _INSTEAD)
