"""Tables of accumulators in DuckDB: a list of entries, as a MAP is one inside.

A MAP that comes from Arrow costs twice what all the rest of its row does: DuckDB takes up every
key of it to see whether it is there twice. Here none is (`merging`), and a list is stored as it is.
Files before version 5 have MAPs, which become lists when they are opened.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypedDict

import duckdb
import pyarrow as pa

from skyfarer.oap.storage.merging import TABLE

SQL: Final = 'STRUCT("key" VARCHAR, "value" BIGINT)[]'
OLD_SQL: Final = "MAP(VARCHAR, BIGINT)"
ROWS_A_CHUNK: Final = 16_384
_LIST: Final = pa.list_(pa.struct({"key": pa.string(), "value": pa.int64()}))


class Entry(TypedDict):
    key: str
    value: int


def upgrade(cursor: duckdb.DuckDBPyConnection) -> int:
    """Turns MAPs into lists, each in a transaction of its own; how many there were."""
    found = cursor.execute(
        """SELECT table_name, column_name FROM duckdb_columns()
        WHERE data_type = ? AND table_name LIKE 'metrics\\_%' ESCAPE '\\' ORDER BY ALL""",
        [OLD_SQL],
    ).fetchall()
    for table, column in found:
        cursor.execute(
            f'ALTER TABLE {table} ALTER "{column}" TYPE {SQL} USING map_entries("{column}")'
        )
    return len(found)


def as_maps(rows: pa.Table) -> pa.Table:
    """What DuckDB gives, as `merging` takes it."""
    for place, field in enumerate(rows.schema):
        if pa.types.is_list(field.type):
            chunks = [_map(chunk) for chunk in rows[field.name].chunks]
            rows = rows.set_column(place, field.name, pa.chunked_array(chunks, TABLE))
    return rows


def as_lists(rows: pa.Table) -> pa.Table:
    """What `merging` gives, as DuckDB takes it."""
    for place, field in enumerate(rows.schema):
        if pa.types.is_map(field.type):
            chunks = [_list(chunk) for chunk in rows[field.name].chunks]
            rows = rows.set_column(place, field.name, pa.chunked_array(chunks))
    return rows


def in_chunks(rows: pa.Table) -> pa.Table:
    """For each of DuckDB's threads to take up some: it divides nothing that is in one piece."""
    return pa.Table.from_batches(rows.to_batches(ROWS_A_CHUNK), rows.schema)


def as_dict(entries: Iterable[Entry]) -> dict[str, int]:
    return {entry["key"]: entry["value"] for entry in entries}


def _list(table: pa.MapArray) -> pa.ListArray:
    """Keys that are coded stay so: DuckDB takes each up once."""
    if table.type == TABLE:
        return table.cast(_LIST)
    entries = pa.StructArray.from_arrays([table.keys, table.items], ["key", "value"])
    return pa.ListArray.from_arrays(table.offsets, entries, mask=table.is_null())


def _map(entries: pa.ListArray) -> pa.MapArray:
    offsets, values = entries.offsets, entries.values
    return pa.MapArray.from_arrays(
        offsets, values.field("key"), values.field("value"), mask=entries.is_null()
    )
