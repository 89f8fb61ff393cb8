"""Declared models as tables of DuckDB.

Texts have no length here: whoever stores cuts what is too long. Of the declared indexes only that
of a trace's segments pays: DuckDB reads a column of a day faster than it keeps an index of it.

A segment has a column of this storage's own, the signature of its tags (`signatures`), and may lack
what is required elsewhere: it is so in all files that there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import duckdb

from skyfarer.oap.core.streams import records
from skyfarer.oap.core.streams.catalog import MODELS
from skyfarer.oap.core.streams.declaration import Column, ColumnType, Model, model
from skyfarer.oap.storage import ddl
from skyfarer.oap.storage.embedded import signatures

_TYPES: Final = {
    ColumnType.BOOLEAN: "BOOLEAN",
    ColumnType.INT: "INTEGER",
    ColumnType.LONG: "BIGINT",
    ColumnType.TEXT: "VARCHAR",
    ColumnType.BINARY: "BLOB",
    ColumnType.INTS: "INTEGER[]",
    ColumnType.TEXTS: "VARCHAR[]",
}
_SIGNATURE: Final = Column(signatures.COLUMN, ColumnType.LONG, required=False)
_INDEXED: Final = {(records.SEGMENT.name, "trace"): "trace_id"}
"""Model and index → the last part of its name."""


def _lenient(strict: Model) -> Model:
    columns = tuple(replace(column, required=False) for column in strict.columns)
    return replace(strict, columns=columns)


SEGMENT: Final = _lenient(model(records.SEGMENT)).beside(_SIGNATURE)
UNSAMPLED: Final = model(records.UNSAMPLED)
RECORD: Final = model(records.RECORD)
_DECLARED: Final = {**MODELS, SEGMENT.name: SEGMENT}


def create(declared: Model) -> str:
    """The table of one that is no time series."""
    return ddl.create(declared, declared.name, _TYPES)


def lacking(there: Mapping[str, tuple[str, ...]]) -> list[tuple[str, Column]]:
    return list(ddl.lacking(_DECLARED, there))


def add(table: str, column: Column) -> str:
    return ddl.add(table, column, _TYPES)


def make(cursor: duckdb.DuckDBPyConnection, declared: Model, day: int, keyed: bool = True) -> str:
    """The table of that day, and its indexes, unless they are there; its name."""
    table = declared.of_day(day)
    cursor.execute(ddl.create(declared, table, _TYPES, keyed))
    for index in declared.indexes:
        if (suffix := _INDEXED.get((declared.name, index.name))) is not None:
            columns = ", ".join(index.columns)
            cursor.execute(f"CREATE INDEX IF NOT EXISTS {table}_{suffix} ON {table} ({columns})")
    return table
