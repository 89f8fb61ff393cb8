"""Metrics read back: the series of an entity, with its tables put together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, NamedTuple

from skyfarer.oap.core.storage import Value
from skyfarer.oap.storage.postgresql.bundles import line_of, number_at, places_of, table_at
from skyfarer.oap.storage.postgresql.columns import Column
from skyfarer.oap.storage.postgresql.copying import Cursor
from skyfarer.oap.storage.postgresql.days import Days, days_with
from skyfarer.oap.storage.postgresql.metrics import ANY
from skyfarer.oap.storage.postgresql.tables import BOTH, table

_Series = dict[int, dict[str, Value]]
_WITH_ENTITY: Final = "position(%(line)s IN entity_id) > 0"


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
        found: _Series = {}
        with self._reading() as cursor:
            for days in days_with(cursor, source, columns, start_bucket, end_bucket):
                asked = {**days.range.asked(), "entity": entity_id, "line": line_of(entity_id)}
                rows = cursor.execute(days.query("entity_id = %(entity)s"), asked).fetchall()
                series = _merged(rows, days.columns)
                if bundled := days.bundles(_WITH_ENTITY):
                    bundles = cursor.execute(bundled, asked).fetchall()
                    _append(series, _told(bundles, entity_id, days), days.columns)
                found |= series
        return found


def _merged(rows: Iterable[Sequence[Any]], columns: Sequence[Column]) -> _Series:
    found: _Series = {}
    for _, bucket, *values in rows:
        told = {
            column.name: table(value, column.merge) if column.is_table else value
            for column, value in zip(columns, values, strict=True)
            if value is not None
        }
        if told:
            found[bucket] = told
    return found


class _Row(NamedTuple):
    """That a batch has appended; `bounds` are those of tables."""

    batch: int
    bucket: int
    values: dict[str, Value]
    bounds: Mapping[str, int]


def _told(bundles: Iterable[Sequence[Any]], entity_id: str, days: Days) -> Iterator[_Row]:
    """Bundles as `Days.bundles` finds them."""
    tables = [column.name for column in days.columns if column.is_table]
    first, last = days.range.minutes_between
    for batch, count, ids, minutes, *values in bundles:
        bounds = dict(zip(tables, values[len(days.columns) :], strict=True))
        there = [pair for pair in zip(days.columns, values, strict=False) if pair[1] is not None]
        for place in places_of(entity_id, ids):
            minute = number_at(minutes, place, count)
            if minute is not None and first <= minute <= last:
                told = ((one.name, _value(one, octets, place, count)) for one, octets in there)
                known = {name: value for name, value in told if value is not None}
                yield _Row(batch, int(minute) // days.range.minutes, known, bounds)


def _value(column: Column, octets: bytes, place: int, count: int) -> Value | None:
    if column.is_table:
        return table_at(octets, place, column.merge)
    return number_at(octets, place, count)


def _append(found: _Series, rows: Iterable[_Row], columns: Sequence[Column]) -> None:
    """To what is merged, one batch after the other."""
    for _, of_batch in groupby(sorted(rows, key=_BATCH), _BATCH):
        told, bounds = _Series(), dict[str, int]()
        for row in (row for row in of_batch if row.values):
            bounds |= row.bounds
            _take_in(told.setdefault(row.bucket, {}), row.values, columns, {})
        for bucket, values in told.items():
            _take_in(found.setdefault(bucket, {}), values, columns, bounds)


_BATCH: Final = attrgetter("batch")


def _take_in(
    row: dict[str, Value],
    other: Mapping[str, Value],
    columns: Sequence[Column],
    bounds: Mapping[str, int],
) -> None:
    """Keys that are there stay; of others those that come first by text, up to the bound."""
    for column in (column for column in columns if column.name in other):
        name, value, both = column.name, other[column.name], BOTH[column.merge]
        if not isinstance(value, dict):
            row[name] = both(row[name], value) if name in row else value
            continue
        there: Any = row.setdefault(name, {})
        keys_max = bounds.get(name, ANY)
        for key in sorted(value):
            if key in there:
                there[key] = both(there[key], value[key])
            elif len(there) < keys_max:
                there[key] = value[key]
