"""Tables that an older program has made, brought up to date by whoever starts first.

In the transaction that looks at the version, so it has happened or not. Of metrics of schema 1 what
tables merge by was spelt out in the names of columns, and buckets of minutes had no index.
"""

from __future__ import annotations

from typing import Final

from skyfarer.oap.core.streams.metrics import PREFIX
from skyfarer.oap.storage.postgresql import metrics, models
from skyfarer.oap.storage.postgresql.columns import MERGES
from skyfarer.oap.storage.postgresql.copying import Cursor

_COLUMNS: Final = """SELECT relname, attname FROM pg_class LEFT JOIN pg_attribute
    ON attrelid = pg_class.oid AND attname LIKE %s AND attnum > 0 AND NOT attisdropped
    WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND relname ~ %s"""
_METRICS: Final = f"^{PREFIX}[a-z_]+_[0-9]{{8}}$"


def upgrade(cursor: Cursor, version: int) -> None:
    if version < 2:
        _name_as_now(cursor)


def _name_as_now(cursor: Cursor) -> None:
    tables = set()
    for merge, suffix in MERGES.items():
        old = f" {merge.value}"
        for table, column in cursor.execute(_COLUMNS, [f"%{old}", _METRICS]).fetchall():
            tables.add(table)
            if column is not None:
                new = f"{column.removesuffix(old)}{suffix}"
                cursor.execute(f'ALTER TABLE {table} RENAME COLUMN "{column}" TO "{new}"')
    for table in sorted(tables):
        for statement in models.indexes(metrics.ANY_SOURCE, table):
            cursor.execute(statement)
