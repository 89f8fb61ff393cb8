"""Declared models as tables of PostgreSQL, with all their indexes.

Texts have no length here: whoever stores cuts what is too long. They are compared by their bytes,
as everywhere else in this program: the order of a language would be another one in every database,
and slower. A list of texts is indexed by what is in it.
"""

from __future__ import annotations

from typing import Final

from skyfarer.oap.core.streams import records
from skyfarer.oap.core.streams.declaration import Column, ColumnType, Index, Model, model
from skyfarer.oap.storage import ddl
from skyfarer.oap.storage.postgresql.copying import COLLATED

TEXT: Final = f"TEXT {COLLATED}"
_TYPES: Final = {
    ColumnType.BOOLEAN: "BOOLEAN",
    ColumnType.INT: "INTEGER",
    ColumnType.LONG: "BIGINT",
    ColumnType.TEXT: TEXT,
    ColumnType.BINARY: "BYTEA",
    ColumnType.INTS: "INTEGER[]",
    ColumnType.TEXTS: f"TEXT[] {COLLATED}",
}
UNSAMPLED: Final = model(records.UNSAMPLED)
RECORD: Final = model(records.RECORD)
_SAYING: Final = {ColumnType.BOOLEAN: "{}", ColumnType.TEXT: "{} <> ''"}


def of_day(declared: Model, day: int, keyed: bool = True) -> dict[str, list[str]]:
    """The day's table → what makes it and its indexes, without harm twice."""
    table = declared.of_day(day)
    return {table: statements(declared, table, keyed)}


def statements(declared: Model, table: str, keyed: bool = True, options: str = "") -> list[str]:
    """`options` are those of a table's storage."""
    made = ddl.create(declared, table, _TYPES, keyed)
    return [f"{made}{options}", *indexes(declared, table)]


def add(table: str, column: Column) -> str:
    return ddl.add(table, column, _TYPES)


def indexes(declared: Model, table: str) -> list[str]:
    return [
        f"CREATE INDEX IF NOT EXISTS {table}_{one.name} ON {table} {_indexed(declared, one)}"
        for one in declared.indexes
        if not one.unique
    ]


def says_something(declared: Model, column: str) -> str:
    return _SAYING[declared.column(column).type].format(column)


def _indexed(declared: Model, index: Index) -> str:
    lists = any(declared.column(name).type is ColumnType.TEXTS for name in index.columns)
    found = f"{'USING gin ' if lists else ''}({', '.join(index.columns)})"
    return f"{found} WHERE {says_something(declared, index.only)}" if index.only else found
