"""Metrics read back: the series of an entity, with its tables put together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from skyfarer.oap.core.storage import Merge, Value
from skyfarer.oap.core.time_bucket import days_of
from skyfarer.oap.storage.postgresql import schema
from skyfarer.oap.storage.postgresql.copying import Cursor
from skyfarer.oap.storage.postgresql.metrics import listed, stored_columns, table_of


def _added(one: int, other: int) -> int:
    return (one + other + 2**63) % 2**64 - 2**63


_BOTH: Final[Mapping[Merge, Callable[[int, int], int]]] = {
    Merge.SUM: _added,
    Merge.MAX: max,
    Merge.MIN: min,
}


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
            for table in (table for table in tables if table in present):
                wanted = _wanted(stored_columns(cursor, table), columns)
                names = [name for pair in wanted.values() for name in pair]
                cursor.execute(
                    f"""SELECT {listed("time_bucket", *names)} FROM {table}
                    WHERE entity_id = %s AND time_bucket BETWEEN %s AND %s""",
                    [entity_id, start_bucket, end_bucket],
                )
                for bucket, *values in cursor.fetchall():
                    if row := _row(wanted, dict(zip(names, values, strict=True))):
                        found[bucket] = row
        return found


def _wanted(there: Mapping[str, str], columns: Sequence[str]) -> dict[str, list[str]]:
    """Of the columns that are there: the columns each is, the values of a table second."""
    found: dict[str, list[str]] = {}
    for name in (name for name in columns if name in there):
        values = [f"{name} {merge.value}" for merge in Merge if f"{name} {merge.value}" in there]
        found[name] = [name, *values]
    return found


def _row(wanted: Mapping[str, list[str]], stored: Mapping[str, Any]) -> dict[str, Value]:
    row: dict[str, Value] = {}
    for name, (own, *values) in wanted.items():
        if stored[own] is not None:
            row[name] = _table(stored[own], values[0], stored[values[0]]) if values else stored[own]
    return row


def _table(keys: list[str], named: str, values: list[int]) -> dict[str, int]:
    """As the name of the values' column says."""
    both = _BOTH[Merge(named.rpartition(" ")[2])]
    found: dict[str, int] = {}
    for key, value in zip(keys, values, strict=True):
        found[key] = both(found[key], value) if key in found else value
    return found
