"""Rows of all entities of a source, to compare them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.base.errors import PermanentError
from skyfarer.oap.core.entities import ENTITIES, Entity
from skyfarer.oap.core.storage import KEYS_MAX, ROWS_MAX
from skyfarer.oap.storage.merging import merged
from skyfarer.oap.storage.postgresql import appended, columnar
from skyfarer.oap.storage.postgresql.appended import BATCH
from skyfarer.oap.storage.postgresql.columns import BOUND, KEYS, Column
from skyfarer.oap.storage.postgresql.copying import Cursor
from skyfarer.oap.storage.postgresql.days import days_with

_OF_A_SERVICE: Final = frozenset((Entity.SERVICE, Entity.INSTANCE, Entity.ENDPOINT))
_OF_ONE: Final = "(entity_id = %(service)s OR starts_with(entity_id, %(service)s || '_'))"
_NONE: Final = pa.schema({"entity_id": pa.string(), "time_bucket": pa.int64()})


class RowReads(ABC):
    @abstractmethod
    def _reading(self) -> AbstractContextManager[Cursor]: ...

    def rows(
        self,
        source: str,
        columns: Sequence[str],
        start_bucket: int,
        end_bucket: int,
        service_id: str | None = None,
    ) -> pa.Table:
        if service_id is not None and ENTITIES[source] not in _OF_A_SERVICE:
            raise ValueError(f"rows of {source} are of two services, not of one")
        where = "true" if service_id is None else _OF_ONE
        found = [_NONE.empty_table()]
        with self._reading() as cursor:
            for days in days_with(cursor, source, columns, start_bucket, end_bucket):
                query = f"{days.query(where)} LIMIT {ROWS_MAX + 1}"
                asked = {**days.range.asked(), "service": service_id}
                with_tables = any(column.is_table for column in days.columns)
                found_as = appended.read if with_tables else columnar.read
                rows = _bounded(found_as(cursor, query, days.types(), asked), source)
                found.append(_one_each(rows, days.columns))
        return _bounded(pa.concat_tables(found, promote_options="default"), source)


def _one_each(rows: pa.Table, columns: Sequence[Column]) -> pa.Table:
    """One an entity and bucket. Numbers of buckets that nothing was appended to are it already."""
    names = [*KEYS, *(column.name for column in columns)]
    if any(column.is_table for column in columns):
        return _merged(rows, columns).select(names)
    buckets = pc.unique(rows.filter(pc.greater(rows[BATCH], 0))["time_bucket"])
    if not len(buckets):
        return rows.select(names)
    open_ones = pc.is_in(rows["time_bucket"], buckets)
    touched = _merged(rows.filter(open_ones), columns).select(names)
    return pa.concat_tables([rows.filter(pc.invert(open_ones)).select(names), touched])


def _merged(rows: pa.Table, columns: Sequence[Column]) -> pa.Table:
    bounds = {}
    for column in (column for column in columns if column.is_table):
        told = pc.max(rows[f"{column.name}{BOUND}"]).as_py()
        bounds[column.name] = KEYS_MAX if told is None else told
        place = rows.schema.get_field_index(column.name)
        rows = rows.set_column(place, column.name, appended.with_tables(rows[column.name]))
    merges = {column.name: column.merge for column in columns}
    return merged(rows, KEYS, merges, bounds, came=rows[BATCH].to_numpy())


def _bounded(rows: pa.Table, source: str) -> pa.Table:
    if rows.num_rows > ROWS_MAX:
        raise PermanentError(
            f"{source} has more than {ROWS_MAX} rows in that time: "
            "ask for a shorter time, a longer step, or one service"
        )
    return rows
