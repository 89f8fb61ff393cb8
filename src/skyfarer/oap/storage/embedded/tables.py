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
        if field.type == TABLE:
            rows = rows.set_column(place, field.name, rows[field.name].cast(_LIST))
    return rows


def as_dict(entries: Iterable[Entry]) -> dict[str, int]:
    return {entry["key"]: entry["value"] for entry in entries}


def _map(entries: pa.ListArray) -> pa.MapArray:
    offsets, values = entries.offsets, entries.values
    return pa.MapArray.from_arrays(
        offsets, values.field("key"), values.field("value"), mask=entries.is_null()
    )
