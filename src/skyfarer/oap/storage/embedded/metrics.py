"""Metrics: one table a source and day, one wide row an entity and time bucket.

    metrics_<source>_<day> (entity_id VARCHAR, time_bucket BIGINT, <accumulator>, …)

A row's bucket is a minute, an hour or a day (12, 10 or 8 digits), each brought up to date by every
batch. Accumulators are BIGINT, DOUBLE or MAP(VARCHAR, BIGINT); a plan that has new ones adds
columns to the day's table, and columns of an older plan stay as they are.

To merge, the rows that a batch touches are taken out of the table, merged with what it brings
(`merging`), and put in again; DuckDB changes a row with a MAP in no other way. There is no primary
key: one writer, who finds the rows by their ids, keeps them unique, and DuckDB gives the space of
removed rows back only in a table without an index.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import duckdb
import numpy as np
import pyarrow as pa

from skyfarer.base.errors import PermanentError
from skyfarer.oap.core.entities import ENTITIES, ENTITY_COLUMNS
from skyfarer.oap.core.storage import COLUMN_NAME, Deltas, Merge, Value
from skyfarer.oap.core.time_bucket import PRECISIONS, days_of
from skyfarer.oap.storage.embedded import schema
from skyfarer.oap.storage.embedded.searching import bounded
from skyfarer.oap.storage.entities import ENTITY_IDS
from skyfarer.oap.storage.merging import TABLE, Numbers, merged

Tables: TypeAlias = dict[str, dict[str, str]]
"""Table → column → its type in SQL."""
PREFIX: Final = "metrics_"
KEYS: Final = ("entity_id", "time_bucket")
_ARROW_TYPES: Final = {
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "MAP(VARCHAR, BIGINT)": TABLE,
}
_TAKEN: Final = frozenset((*KEYS, *ENTITY_COLUMNS, "minute"))
_MINUTES_FROM: Final = 10**11  # hours and days are smaller numbers
_WORDS: Final = re.compile("(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class MetricReads(ABC):
    @abstractmethod
    def _cursor(self) -> duckdb.DuckDBPyConnection: ...

    def series(
        self,
        source: str,
        entity_id: str,
        columns: Sequence[str],
        start_bucket: int,
        end_bucket: int,
    ) -> dict[int, dict[str, Value]]:
        tables = [table_of(source, day) for day in days_of(start_bucket, end_bucket)]
        cursor, found = self._cursor(), dict[int, dict[str, Value]]()
        with bounded(cursor):
            present = schema.present(cursor)
            for table in (table for table in tables if table in present):
                there = _columns(cursor, table)
                wanted = [column for column in columns if column in there]
                rows = cursor.execute(
                    f"""SELECT {_listed("time_bucket", *wanted)} FROM {table}
                    WHERE entity_id = ? AND time_bucket BETWEEN ? AND ?""",
                    [entity_id, start_bucket, end_bucket],
                )
                for bucket, *values in rows.fetchall():
                    if row := _known(wanted, values):
                        found[bucket] = row
        return found


def model_of(source: str) -> str:
    """KeyError for what is no source."""
    ENTITIES[source]
    return f"{PREFIX}{_WORDS.sub('_', source).lower()}"


def table_of(source: str, day: int) -> str:
    return f"{model_of(source)}_{day:08d}"


def merge(
    cursor: duckdb.DuckDBPyConnection, known: Tables, source: str, deltas: Deltas, buckets: Numbers
) -> None:
    """Inside the caller's transaction; `buckets` are the minutes of the rows.

    `known` are the tables there are for certain, with their columns; what is made here is added,
    and true only once the transaction is.
    """
    types = {name: _type(deltas.rows, name) for name in deltas.merges}
    columns = {"entity_id": ENTITY_IDS[ENTITIES[source]](deltas.rows)}
    columns |= {name: deltas.rows[name].cast(_ARROW_TYPES[types[name]]) for name in types}
    rows, days = pa.table(columns), buckets // PRECISIONS[-1]
    for day in np.unique(days):
        table = table_of(source, int(day))
        _prepare(cursor, known, table, types)
        of_day = days == day
        _merge_day(cursor, table, rows.filter(pa.array(of_day)), buckets[of_day], deltas)


def _merge_day(
    cursor: duckdb.DuckDBPyConnection,
    table: str,
    rows: pa.Table,
    buckets: Numbers,
    deltas: Deltas,
) -> None:
    brought = pa.concat_tables(
        rows.append_column("time_bucket", pa.array(buckets // precision))
        for precision in PRECISIONS
    )
    stored = _taken(cursor, table, brought.select(KEYS), int(buckets.min()))
    named = {*deltas.merges, *KEYS}
    carried = {f.name: _alone(f.type) for f in stored.schema if f.name not in named}
    everything = pa.concat_tables([stored, brought], promote_options="default")
    merges = {**carried, **deltas.merges}
    rows = merged(everything, KEYS, merges, deltas.bounds, stored.num_rows)
    cursor.register("merged", rows)
    cursor.execute(f"INSERT INTO {table} BY NAME FROM merged")


def _taken(
    cursor: duckdb.DuckDBPyConnection, table: str, keys: pa.Table, first_minute: int
) -> pa.Table:
    """The rows of these keys, removed. Minutes before the first are not even looked at."""
    cursor.register("touched", keys)
    return cursor.sql(
        f"""DELETE FROM {table} WHERE (entity_id, time_bucket) IN (FROM touched)
        AND (time_bucket >= {first_minute} OR time_bucket < {_MINUTES_FROM}) RETURNING *"""
    ).to_arrow_table()


def _alone(of_type: pa.DataType) -> Merge:
    """For a column that only the stored row has, and keeps."""
    return Merge.SUM if of_type == TABLE else Merge.MAX


def _prepare(
    cursor: duckdb.DuckDBPyConnection, known: Tables, table: str, types: Mapping[str, str]
) -> None:
    if table not in known:
        cursor.execute(
            f"CREATE TABLE IF NOT EXISTS {table} (entity_id VARCHAR NOT NULL, "
            "time_bucket BIGINT NOT NULL)"
        )
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


def _type(rows: pa.Table, name: str) -> str:
    """The type of a column as SQL has it; a PermanentError for one that cannot be stored."""
    found = rows.schema.field(name).type
    if COLUMN_NAME.fullmatch(name) and name not in _TAKEN:
        if pa.types.is_map(found):
            return "MAP(VARCHAR, BIGINT)"
        if pa.types.is_integer(found):
            return "BIGINT"
        if pa.types.is_floating(found):
            return "DOUBLE"
    raise PermanentError(f"{name!r} of type {found} cannot be a column of metrics")


def _columns(cursor: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
    rows = cursor.execute(f"DESCRIBE {table}").fetchall()
    return {name: sql_type for name, sql_type, *_ in rows}


def _listed(*columns: str) -> str:
    return ", ".join(f'"{column}"' for column in columns)


def _known(columns: Sequence[str], values: Sequence[Value | None]) -> dict[str, Value]:
    pairs = zip(columns, values, strict=True)
    return {column: value for column, value in pairs if value is not None}
