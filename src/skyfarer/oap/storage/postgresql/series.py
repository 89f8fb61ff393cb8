"""Metrics read back: the series of an entity, with its tables put together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from skyfarer.oap.core.storage import Merge, Value
from skyfarer.oap.core.time_bucket import days_of
from skyfarer.oap.storage.postgresql import schema
from skyfarer.oap.storage.postgresql.copying import Cursor
from skyfarer.oap.storage.postgresql.metrics import listed, stored_columns, table_of
from skyfarer.oap.storage.postgresql.tables import table


class MetricReads(ABC):
    @abstractmethod
    def _reading(self) -> AbstractContextManager[Cursor]: ...

    def series(
        self,
        source: str,
        entity_id: str,
        columns: Sequence[str],
        start_bucket: int,
        end_bucket: int,
    ) -> dict[int, dict[str, Value]]:
        tables = [table_of(source, day) for day in days_of(start_bucket, end_bucket)]
        found: dict[int, dict[str, Value]] = {}
        with self._reading() as cursor:
            present = schema.present(cursor)
            for name in (name for name in tables if name in present):
                wanted = wanted_columns(stored_columns(cursor, name), columns)
                names = [name for pair in wanted.values() for name in pair]
                cursor.execute(
                    f"""SELECT {listed("time_bucket", *names)} FROM {name}
                    WHERE entity_id = %s AND time_bucket BETWEEN %s AND %s""",
                    [entity_id, start_bucket, end_bucket],
                )
                for bucket, *values in cursor.fetchall():
                    if row := stored_row(wanted, dict(zip(names, values, strict=True))):
                        found[bucket] = row
        return found


def wanted_columns(there: Mapping[str, str], columns: Sequence[str]) -> dict[str, list[str]]:
    """Of the columns that are there: the columns each is, that of a table's merging second."""
    found: dict[str, list[str]] = {}
    for name in (name for name in columns if name in there):
        seconds = [f"{name} {merge.value}" for merge in Merge if f"{name} {merge.value}" in there]
        found[name] = [name, *seconds]
    return found


def stored_row(wanted: Mapping[str, list[str]], stored: Mapping[str, Any]) -> dict[str, Value]:
    row: dict[str, Value] = {}
    for name, (own, *seconds) in wanted.items():
        if stored[own] is not None:
            merges = [Merge(second.rpartition(" ")[2]) for second in seconds]
            row[name] = table(stored[own], merges[0]) if merges else stored[own]
    return row
