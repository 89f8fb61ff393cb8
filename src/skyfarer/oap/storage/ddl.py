"""Tables of declared models (`oap.core.streams`), in the SQL that all databases here have alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from skyfarer.oap.core.streams.declaration import Column, ColumnType, Model


def create(model: Model, table: str, types: Mapping[ColumnType, str], keyed: bool = True) -> str:
    """Without harm twice. One that is not `keyed` has the columns of its key and no more: whoever
    writes it keeps them unique."""
    clauses = [*_columns(model, types)]
    if keyed:
        clauses.append(f"PRIMARY KEY ({', '.join(column.name for column in model.key)})")
    clauses += [f"UNIQUE ({', '.join(one.columns)})" for one in model.indexes if one.unique]
    return f"CREATE TABLE IF NOT EXISTS {table} ({', '.join(clauses)})"


def _columns(model: Model, types: Mapping[ColumnType, str]) -> Iterator[str]:
    for column in (*model.key, *model.columns):
        yield f"{column.name} {types[column.type]}{_required(column)}"


def _required(column: Column) -> str:
    return " NOT NULL" if column.required else ""
