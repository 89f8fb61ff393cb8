"""Tables of declared models (`oap.core.streams`), in the SQL that all databases here have alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from skyfarer.oap.core.streams.declaration import COLUMNS_TOLD, Column, ColumnType, Model
from skyfarer.oap.storage.expiring import DAY_TABLE


def create(model: Model, table: str, types: Mapping[ColumnType, str], keyed: bool = True) -> str:
    """Without harm twice. One that is not `keyed` has the columns of its key and no more: whoever
    writes it keeps them unique."""
    clauses = [*_columns(model, types)]
    if keyed:
        clauses.append(f"PRIMARY KEY ({', '.join(column.name for column in model.key)})")
    clauses += [f"UNIQUE ({', '.join(one.columns)})" for one in model.indexes if one.unique]
    return f"CREATE TABLE IF NOT EXISTS {table} ({', '.join(clauses)})"


def lacking(
    models: Mapping[str, Model], there: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[str, Column]]:
    """Of tables that are `there`, with their columns, what an older program did not know of: the
    table and the column. Tables that somebody else has named so are left as they are."""
    for table, columns in sorted(there.items()):
        day = DAY_TABLE.fullmatch(table)
        declared = models.get(day[1] if day else table)
        if declared is not None and columns[:COLUMNS_TOLD] == declared.first:
            yield from ((table, one) for one in declared.columns if one.name not in columns)


def add(table: str, column: Column, types: Mapping[ColumnType, str]) -> str:
    """Whatever is declared, it may be null: there are rows from before."""
    return f"ALTER TABLE {table} ADD COLUMN {column.name} {types[column.type]}"


def _columns(model: Model, types: Mapping[ColumnType, str]) -> Iterator[str]:
    for column in (*model.key, *model.columns):
        yield f"{column.name} {types[column.type]}{_required(column)}"


def _required(column: Column) -> str:
    return " NOT NULL" if column.required else ""
