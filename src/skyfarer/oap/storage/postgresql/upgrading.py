"""Tables that an older program has made, brought up to date by whoever starts first.

In the transaction that looks at the version, so it has happened or not. Of metrics of schema 1 what
tables merge by was spelt out in the names of columns, and buckets of minutes had no index. Up to
schema 3 an appended table had a row an entity and minute, with the types of the merged one; what
is not folded yet becomes bundles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.streams.metrics import PREFIX
from skyfarer.oap.storage.postgresql import appended, columnar, metrics, models, schema, tables
from skyfarer.oap.storage.postgresql.appended import BATCH
from skyfarer.oap.storage.postgresql.columns import BOUND, KEYS, MERGES, Column, split
from skyfarer.oap.storage.postgresql.copying import Cursor

_COLUMNS: Final = """SELECT relname, attname FROM pg_class LEFT JOIN pg_attribute
    ON attrelid = pg_class.oid AND attname LIKE %s AND attnum > 0 AND NOT attisdropped
    WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND relname ~ %s"""
_OF_DAYS: Final = "[a-z_]+_[0-9]{8}$"
_METRICS: Final = f"^{PREFIX}{_OF_DAYS}"
_APPENDED: Final = f"^{appended.PREFIX}{_OF_DAYS}"


def upgrade(cursor: Cursor, version: int) -> None:
    if version < 2:
        _name_as_now(cursor)
    for table, _ in cursor.execute(_COLUMNS, ["entity_id", _APPENDED]).fetchall():
        _bundle(cursor, table)


def _name_as_now(cursor: Cursor) -> None:
    tables, there = set(), schema.columns(cursor, len(KEYS))
    for merge, suffix in MERGES.items():
        old = f" {merge.value}"
        found = cursor.execute(_COLUMNS, [f"%{old}", _METRICS]).fetchall()
        for table, column in (one for one in found if there[one[0]] == KEYS):
            tables.add(table)
            if column is not None:
                new = f"{column.removesuffix(old)}{suffix}"
                cursor.execute(f'ALTER TABLE {table} RENAME COLUMN "{column}" TO "{new}"')
    for table in sorted(tables):
        for statement in models.indexes(metrics.ANY_SOURCE, table):
            cursor.execute(statement)


def _bundle(cursor: Cursor, table: str) -> None:
    """Of an appended table that has rows each by itself."""
    there = metrics.stored_columns(cursor, table)
    columns = [
        Column(name, there[f"{name}{MERGES[merge]}"], merge)
        for name, merge in filter(None, map(split, there))
    ]
    rows = _rows(cursor, table, there, columns)
    cursor.execute(f"DROP TABLE {table}")
    metrics.make(cursor, {}, metrics.Wide(appended.merged_of(table), rows, columns))
    for batch in sorted(pc.unique(rows[BATCH]).to_pylist()):
        some = rows.filter(pc.equal(rows[BATCH], batch))
        appended.store(cursor, table, some, [_bounded(one, some) for one in columns], batch)


def _rows(
    cursor: Cursor, table: str, there: Mapping[str, str], columns: Sequence[Column]
) -> pa.Table:
    """By the plain names of accumulators."""
    listed = ", ".join(f'"{name}"' for name in there)
    rows = columnar.read_once(cursor, f"SELECT {listed} FROM {table}", there)
    for column in columns:
        values = rows[column.settled]
        told = tables.read(values.combine_chunks()) if column.is_table else values
        rows = rows.append_column(column.name, told)
    return rows


def _bounded(column: Column, rows: pa.Table) -> Column:
    told = pc.max(rows[f"{column.name}{BOUND}"]).as_py() if column.is_table else None
    return column if told is None else replace(column, keys_max=told)
