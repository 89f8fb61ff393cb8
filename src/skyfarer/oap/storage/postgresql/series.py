"""Metrics read back: the series of an entity, with its tables put together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from skyfarer.oap.core.storage import Value
from skyfarer.oap.storage.postgresql.columns import BOUND, Column
from skyfarer.oap.storage.postgresql.copying import Cursor
from skyfarer.oap.storage.postgresql.days import days_with
from skyfarer.oap.storage.postgresql.metrics import ANY
from skyfarer.oap.storage.postgresql.tables import BOTH, table

_BUCKET, _BATCH, _VALUES = 1, 2, 3
"""Places in a row of `days`."""
_Series = dict[int, dict[str, Value]]
_Row = tuple[Any, ...]
_MERGED: Final = 0


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
                asked = {**days.range.asked(), "entity": entity_id}
                rows = cursor.execute(days.query("entity_id = %(entity)s"), asked).fetchall()
                found |= _series(rows, days.columns, list(days.types())[_VALUES:])
        return found


def _series(rows: Sequence[_Row], columns: Sequence[Column], names: Sequence[str]) -> _Series:
    """Merged rows first, then one batch after the other."""
    found: _Series = {}
    for row in (row for row in rows if row[_BATCH] == _MERGED):
        if values := _values(row, columns):
            found[row[_BUCKET]] = values
    later = sorted((row for row in rows if row[_BATCH] != _MERGED), key=itemgetter(_BATCH))
    for _, of_batch in groupby(later, itemgetter(_BATCH)):
        told, bounds = _Series(), dict[str, int]()
        for row in of_batch:
            bounds |= _bounds(row, names)
            if values := _values(row, columns):
                _take_in(told.setdefault(row[_BUCKET], {}), values, columns, {})
        for bucket, values in told.items():
            _take_in(found.setdefault(bucket, {}), values, columns, bounds)
    return found


def _values(row: _Row, columns: Sequence[Column]) -> dict[str, Value]:
    return {
        column.name: table(value, column.merge) if column.is_table else value
        for column, value in zip(columns, row[_VALUES:], strict=False)
        if value is not None
    }


def _bounds(row: _Row, names: Sequence[str]) -> dict[str, int]:
    told = zip(names, row[_VALUES:], strict=True)
    return {name: value for name, value in told if name.endswith(BOUND) and value is not None}


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
        keys_max = bounds.get(f"{name}{BOUND}", ANY)
        for key in sorted(value):
            if key in there:
                there[key] = both(there[key], value[key])
            elif len(there) < keys_max:
                there[key] = value[key]
