"""Metrics: one table a source and day, one wide row an entity and time bucket.

    metrics_<source>_<day> (entity_id VARCHAR, time_bucket BIGINT, <accumulator>, …)

A row's bucket is a minute, an hour or a day (12, 10 or 8 digits), each brought up to date by every
batch. Accumulators are BIGINT, DOUBLE or lists of entries (`tables`); a plan that has new ones adds
columns to the day's table, and columns of an older plan stay as they are.

To merge, the rows that a batch touches are taken out of the table, merged with what it brings
(`merging`), and put in again; DuckDB changes a row with a list in no other way. There is no primary
key: one writer, who finds the rows by their ids, keeps them unique, and DuckDB gives the space of
removed rows back only in a table without an index.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, TypeAlias, TypeVar

import duckdb
import numpy as np
import pyarrow as pa

from skyfarer.base.errors import PermanentError
from skyfarer.oap.core.entities import ENTITIES, ENTITY_COLUMNS, Entity
from skyfarer.oap.core.storage import COLUMN_NAME, ROWS_MAX, Deltas, Merge, Value
from skyfarer.oap.core.streams.declaration import model
from skyfarer.oap.core.streams.metrics import SOURCES
from skyfarer.oap.core.time_bucket import PRECISIONS, days_of
from skyfarer.oap.storage.embedded import models, schema, tables
from skyfarer.oap.storage.embedded.levels import KEYS, Levels
from skyfarer.oap.storage.embedded.searching import WITHIN
from skyfarer.oap.storage.embedded.tables import Entry
from skyfarer.oap.storage.entities import ENTITY_IDS
from skyfarer.oap.storage.merging import TABLE, Numbers

Tables: TypeAlias = dict[str, dict[str, str]]
"""Table → column → its type in SQL."""
_Row: TypeAlias = dict[str, Value]
_Read = TypeVar("_Read")
ROWS_A_BATCH: Final = 100_000
_MODELS: Final = {source: model(stream) for source, stream in SOURCES.items()}
_ARROW_TYPES: Final = {"BIGINT": pa.int64(), "DOUBLE": pa.float64(), tables.SQL: TABLE}
_NO_ROWS: Final = "SELECT '' AS entity_id, 0::BIGINT AS time_bucket LIMIT 0"
_OF_A_SERVICE: Final = frozenset((Entity.SERVICE, Entity.INSTANCE, Entity.ENDPOINT))
_TAKEN: Final = frozenset((*KEYS, *ENTITY_COLUMNS, "minute"))
_MINUTES_FROM: Final = 10**11  # hours and days are smaller numbers


class MetricReads(ABC):
    @abstractmethod
    def _reading(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]: ...

    def series(
        self,
        source: str,
        entity_id: str,
        columns: Sequence[str],
        start_bucket: int,
        end_bucket: int,
    ) -> dict[int, _Row]:
        days = [_MODELS[source].of_day(day) for day in days_of(start_bucket, end_bucket)]
        found: dict[int, _Row] = {}
        where = f"entity_id = $entity AND {WITHIN}"
        asked = {"entity": entity_id, "first": start_bucket, "last": end_bucket}
        with self._reading() as cursor:
            wanted = ("time_bucket", *columns)
            names, rows = _selected(cursor, days, wanted, where, asked, _fetched)
        for bucket, *values in rows:
            if row := _known(names[1:], values):
                found[bucket] = row
        return found

    def rows(
        self,
        source: str,
        columns: Sequence[str],
        start_bucket: int,
        end_bucket: int,
        service_id: str | None = None,
    ) -> pa.Table:
        days = [_MODELS[source].of_day(day) for day in days_of(start_bucket, end_bucket)]
        where, asked = WITHIN, dict[str, object](first=start_bucket, last=end_bucket)
        if service_id is not None:
            where += f" AND {_of_service(source)}"
            asked["service"] = service_id
        with self._reading() as cursor:
            rows = _selected(cursor, days, (*KEYS, *columns), where, asked, _arrow)
        return _whole(tables.as_maps(rows), source)


def _of_service(source: str) -> str:
    if ENTITIES[source] not in _OF_A_SERVICE:
        raise ValueError(f"rows of {source} are of two services, not of one")
    return "(entity_id = $service OR starts_with(entity_id, $service || '_'))"


def _whole(rows: pa.Table, source: str) -> pa.Table:
    if rows.num_rows > ROWS_MAX:
        raise PermanentError(
            f"{source} has more than {ROWS_MAX} rows in that time: "
            "ask for a shorter time, a longer step, or one service"
        )
    return rows


def merge(
    cursor: duckdb.DuckDBPyConnection, known: Tables, source: str, deltas: Deltas, buckets: Numbers
) -> None:
    """Inside the caller's transaction; `buckets` are the minutes of the rows.

    `known` are the tables there are for certain, with their columns; what is made here is added,
    and true only once the transaction is.
    """
    types = {name: _type(deltas.rows, name) for name in deltas.merges}
    columns = {name: deltas.rows[name].cast(_ARROW_TYPES[types[name]]) for name in types}
    columns["entity_id"] = ENTITY_IDS[ENTITIES[source]](deltas.rows)
    rows, days = pa.table(columns), buckets // PRECISIONS[-1]
    for day in np.unique(days):
        table = _prepare(cursor, known, source, int(day), types)
        of_day = days == day
        some = rows if of_day.all() else rows.filter(pa.array(of_day))
        put = _merged_day(cursor, table, some, buckets[of_day], deltas)
        cursor.register("merged", tables.in_chunks(tables.as_lists(put)))
        cursor.execute(f"INSERT INTO {table} BY NAME FROM merged")


def _merged_day(
    cursor: duckdb.DuckDBPyConnection,
    table: str,
    rows: pa.Table,
    buckets: Numbers,
    deltas: Deltas,
) -> pa.Table:
    """What to put into the table, from which the rows that it replaces are taken."""
    brought = Levels(rows, buckets)
    stored = _taken(cursor, table, brought.touched(), int(buckets.min()))
    named = {*deltas.merges, *KEYS}
    carried = {f.name: _alone(f.type) for f in stored.schema if f.name not in named}
    return brought.merged(stored, {**carried, **deltas.merges}, deltas.bounds)


def _taken(
    cursor: duckdb.DuckDBPyConnection, table: str, keys: pa.Table, first_minute: int
) -> pa.Table:
    """The rows of these keys, removed. Minutes before the first are not even looked at, and of
    other rows only the keys are. To read rows and then delete them takes half as long as to have
    them returned, which DuckDB does one by one."""
    cursor.register("touched", keys)
    found = cursor.sql(
        f"""SELECT rowid AS place FROM {table} WHERE (entity_id, time_bucket) IN (FROM touched)
        AND (time_bucket >= {first_minute} OR time_bucket < {_MINUTES_FROM})"""
    )
    where = _at(cursor, found.to_arrow_table())
    taken = cursor.sql(f"FROM {table} WHERE {where}").to_arrow_table()
    cursor.execute(f"DELETE FROM {table} WHERE {where}")
    return tables.as_maps(taken)


def _at(cursor: duckdb.DuckDBPyConnection, found: pa.Table) -> str:
    """These places. What the batch before has put in lies side by side, and need not be looked for
    row by row."""
    places = found["place"].to_numpy()
    first, last = (int(places.min()), int(places.max())) if len(places) else (0, -1)
    if last - first + 1 == len(places):
        return f"rowid BETWEEN {first} AND {last}"
    cursor.register("gone", found)
    return "rowid IN (FROM gone)"


def _alone(of_type: pa.DataType) -> Merge:
    """For a column that only the stored row has, and keeps."""
    return Merge.SUM if of_type == TABLE else Merge.MAX


def _prepare(
    cursor: duckdb.DuckDBPyConnection,
    known: Tables,
    source: str,
    day: int,
    types: Mapping[str, str],
) -> str:
    """The name of the table."""
    table = _MODELS[source].of_day(day)
    if table not in known:
        models.make(cursor, _MODELS[source], day, keyed=False)
        known[table] = _columns(cursor, table)
    there = known[table]
    for name, sql_type in types.items():
        if name not in there:
            cursor.execute(f'ALTER TABLE {table} ADD COLUMN "{name}" {sql_type}')
            there[name] = sql_type
        elif there[name] != sql_type:
            raise PermanentError(
                f"column {name} of {table} is {there[name]}, but a batch brings {sql_type}: "
                "give what it counts another name"
            )
    return table


def _type(rows: pa.Table, name: str) -> str:
    """The type of a column as SQL has it; a PermanentError for one that cannot be stored."""
    found = rows.schema.field(name).type
    if COLUMN_NAME.fullmatch(name) and name not in _TAKEN:
        if pa.types.is_map(found):
            return tables.SQL
        if pa.types.is_integer(found):
            return "BIGINT"
        if pa.types.is_floating(found):
            return "DOUBLE"
    raise PermanentError(f"{name!r} of type {found} cannot be a column of metrics")


def _columns(cursor: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
    rows = cursor.execute(f"DESCRIBE {table}").fetchall()
    return {name: sql_type for name, sql_type, *_ in rows}


def _selected(
    cursor: duckdb.DuckDBPyConnection,
    days: Sequence[str],
    columns: Sequence[str],
    where: str,
    asked: dict[str, object],
    read: Callable[[duckdb.DuckDBPyRelation], _Read],
) -> _Read:
    """The columns of the tables of these days. Mostly all of them are there, and to ask which ones
    takes longer than to be told. That one is not there leaves the transaction as it is."""
    columns = [name for name in columns if COLUMN_NAME.fullmatch(name)]
    try:
        return read(cursor.sql(_union(dict.fromkeys(days, columns), where), params=asked))
    except (duckdb.CatalogException, duckdb.BinderException):
        present = schema.present(cursor)
        there = {day: _columns(cursor, day) for day in days if day in present}
        wanted = {day: [name for name in columns if name in of] for day, of in there.items()}
        query = _union(wanted, where) if wanted else _NO_ROWS
        return read(cursor.sql(query, params=asked if wanted else {}))


def _fetched(found: duckdb.DuckDBPyRelation) -> tuple[list[str], list[Any]]:
    return found.columns, found.fetchall()


def _arrow(found: duckdb.DuckDBPyRelation) -> pa.Table:
    """All of them, or more than may be asked for. A limit would be obeyed by one thread alone."""
    reader, batches, rows = found.to_arrow_reader(ROWS_A_BATCH), list[pa.RecordBatch](), 0
    while rows <= ROWS_MAX and (batch := next(reader, None)) is not None:
        batches.append(batch)
        rows += batch.num_rows
    return pa.Table.from_batches(batches, reader.schema)


def _union(wanted: Mapping[str, Sequence[str]], where: str) -> str:
    days = (
        f"SELECT {_listed(*columns)} FROM {day} WHERE {where}" for day, columns in wanted.items()
    )
    return " UNION ALL BY NAME ".join(days)


def _listed(*columns: str) -> str:
    return ", ".join(f'"{column}"' for column in columns)


def _known(columns: Iterable[str], values: Sequence[Value | list[Entry] | None]) -> _Row:
    pairs = zip(columns, values, strict=True)
    return {
        column: tables.as_dict(value) if isinstance(value, list) else value
        for column, value in pairs
        if value is not None
    }
