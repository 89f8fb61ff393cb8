"""Rows of all entities of a source, to compare them.

Numbers come as one COPY, which Arrow reads by itself: a hundred thousand rows would take a second
as Python's. Tables are put together row by row, as a series of them is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

import pyarrow as pa
from pyarrow import csv

from skyfarer.base.errors import PermanentError
from skyfarer.oap.core.entities import ENTITIES, Entity
from skyfarer.oap.core.storage import ROWS_MAX
from skyfarer.oap.core.time_bucket import days_of
from skyfarer.oap.storage.merging import TABLE
from skyfarer.oap.storage.postgresql import schema
from skyfarer.oap.storage.postgresql.columns import KEYS
from skyfarer.oap.storage.postgresql.copying import Cursor
from skyfarer.oap.storage.postgresql.metrics import FEW_BELOW, listed, stored_columns, table_of
from skyfarer.oap.storage.postgresql.series import stored_row, wanted_columns

_OF_A_SERVICE: Final = frozenset((Entity.SERVICE, Entity.INSTANCE, Entity.ENDPOINT))
_TYPES: Final = {"bigint": pa.int64(), "double precision": pa.float64(), "text": TABLE}
_SCHEMA: Final = {"entity_id": pa.string(), "time_bucket": pa.int64()}
Types = dict[str, pa.DataType]


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
        tables = [table_of(source, day) for day in days_of(start_bucket, end_bucket)]
        where = _where(source, start_bucket, end_bucket, service_id is not None)
        asked = {"first": start_bucket, "last": end_bucket, "service": service_id}
        found = [_empty({})]
        with self._reading() as cursor:
            present = schema.present(cursor)
            for table in (table for table in tables if table in present):
                left = ROWS_MAX + 1 - sum(rows.num_rows for rows in found)
                query = f"{where} LIMIT {left}"
                found.append(_rows(cursor, table, columns, query, asked))
        return _whole(pa.concat_tables(found, promote_options="default"), source)


def _where(source: str, start_bucket: int, end_bucket: int, of_service: bool) -> str:
    tests = ["time_bucket BETWEEN %(first)s AND %(last)s"]
    if end_bucket < FEW_BELOW:
        tests.append(f"time_bucket < {FEW_BELOW}")  # which says that there is an index
    if of_service:
        if ENTITIES[source] not in _OF_A_SERVICE:
            raise ValueError(f"rows of {source} are of two services, not of one")
        tests.append("(entity_id = %(service)s OR starts_with(entity_id, %(service)s || '_'))")
    return f"WHERE {' AND '.join(tests)}"


def _rows(
    cursor: Cursor, table: str, columns: Sequence[str], where: str, asked: Mapping[str, object]
) -> pa.Table:
    there = stored_columns(cursor, table)
    wanted = wanted_columns(there, columns)
    types = {name: _TYPES[there[name]] for name in wanted}
    if TABLE in types.values():
        return _fetched(cursor, table, wanted, types, where, asked)
    return _copied(cursor, table, types, where, asked)


def _copied(
    cursor: Cursor, table: str, types: Types, where: str, asked: Mapping[str, object]
) -> pa.Table:
    query = f"COPY (SELECT {listed(*KEYS, *types)} FROM {table} {where}) TO STDOUT (FORMAT csv)"
    with cursor.copy(query, asked) as copy:
        text = b"".join(copy)
    if not text:
        return _empty(types)
    return csv.read_csv(
        pa.BufferReader(text),
        read_options=csv.ReadOptions(column_names=[*KEYS, *types], use_threads=False),
        convert_options=csv.ConvertOptions(column_types={**_SCHEMA, **types}, null_values=[""]),
    )


def _fetched(
    cursor: Cursor,
    table: str,
    wanted: Mapping[str, list[str]],
    types: Types,
    where: str,
    asked: Mapping[str, object],
) -> pa.Table:
    names = [*KEYS, *(name for stored in wanted.values() for name in stored)]
    cursor.execute(f"SELECT {listed(*names)} FROM {table} {where}", asked)
    rows = []
    for values in cursor.fetchall():
        stored: dict[str, Any] = dict(zip(names, values, strict=True))
        rows.append({name: stored[name] for name in KEYS} | stored_row(wanted, stored))
    return pa.Table.from_pylist(rows, schema=pa.schema({**_SCHEMA, **types}))


def _empty(types: Types) -> pa.Table:
    return pa.schema({**_SCHEMA, **types}).empty_table()


def _whole(rows: pa.Table, source: str) -> pa.Table:
    if rows.num_rows > ROWS_MAX:
        raise PermanentError(
            f"{source} has more than {ROWS_MAX} rows in that time: "
            "ask for a shorter time, a longer step, or one service"
        )
    return rows
