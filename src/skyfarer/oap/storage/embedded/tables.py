"""Tables of accumulators in DuckDB: a list of entries, as a MAP is one inside.

A MAP that comes from Arrow costs twice what all the rest of its row does: DuckDB takes up every
key of it to see whether it is there twice. Here it is not (`merging`), and a list is stored as it
is. A day that an older program has begun has MAPs, and goes on with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypedDict

import pyarrow as pa

from skyfarer.oap.storage.merging import TABLE

SQL: Final = 'STRUCT("key" VARCHAR, "value" BIGINT)[]'
OLD_SQL: Final = "MAP(VARCHAR, BIGINT)"
_LIST: Final = pa.list_(pa.struct({"key": pa.string(), "value": pa.int64()}))


class Entry(TypedDict):
    key: str
    value: int


def selected(column: str, sql_type: str) -> str:
    """A column, quoted, that gives lists whatever the table has."""
    return f'map_entries("{column}") AS "{column}"' if sql_type == OLD_SQL else f'"{column}"'


def as_maps(rows: pa.Table) -> pa.Table:
    """What DuckDB gives, as `merging` takes it."""
    for place, field in enumerate(rows.schema):
        if pa.types.is_list(field.type):
            chunks = [_map(chunk) for chunk in rows[field.name].chunks]
            rows = rows.set_column(place, field.name, pa.chunked_array(chunks, TABLE))
    return rows


def as_stored(rows: pa.Table, types: Mapping[str, str]) -> pa.Table:
    """What `merging` gives, as the columns of these types take it."""
    for place, name in enumerate(rows.column_names):
        if types[name] == SQL:
            rows = rows.set_column(place, name, rows[name].cast(_LIST))
    return rows


def as_dict(entries: Iterable[Entry]) -> dict[str, int]:
    return {entry["key"]: entry["value"] for entry in entries}


def _map(entries: pa.ListArray) -> pa.MapArray:
    offsets, values = entries.offsets, entries.values
    return pa.MapArray.from_arrays(
        offsets, values.field("key"), values.field("value"), mask=entries.is_null()
    )
