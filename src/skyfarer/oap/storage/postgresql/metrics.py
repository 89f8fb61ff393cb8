"""Metrics: one table a source and day, one wide row an entity and time bucket.

    metrics_<source>_<day> (entity_id TEXT, time_bucket BIGINT, <accumulator>, …)

A row's bucket is a minute, an hour or a day (12, 10 or 8 digits), each brought up to date by every
batch. A plan that has new accumulators (`columns`) adds columns to the day's table, and columns of
an older plan stay as they are.

A batch's own rows are merged in Arrow to one a key, brought in binary, and taken in by the rows
there are, in one statement. Tables that have grown too long by it are read, put together in Arrow
and written again. Pages are left half empty, so that a changed row stays in its page and
no index has to know of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
from psycopg.errors import NumericValueOutOfRange

from skyfarer.base.errors import PermanentError
from skyfarer.oap.core.entities import ENTITIES
from skyfarer.oap.core.storage import Deltas, Merge
from skyfarer.oap.core.time_bucket import PRECISIONS
from skyfarer.oap.storage.entities import ENTITY_IDS
from skyfarer.oap.storage.merging import TABLE, Numbers, merged
from skyfarer.oap.storage.postgresql import copying, schema, tables
from skyfarer.oap.storage.postgresql.columns import KEYS, Column, columns_of, sql_type
from skyfarer.oap.storage.postgresql.copying import Cursor

Tables: TypeAlias = dict[str, dict[str, str]]
"""Table → column → its type in SQL."""
PREFIX: Final = "metrics_"
PAGE_PERCENT: Final = 50
FEW_BELOW: Final = 10**11
"""Hours and days are smaller numbers. Those of all entities are found by an index, which minutes
are not in: it costs a batch nothing."""
_ANY: Final = 2**31 - 1
_ROW: Final = "row"
"""With every row that is brought; no accumulator is named so."""
_ARROW_TYPES: Final = {"text": TABLE, "bigint": pa.int64(), "double precision": pa.float64()}
_WORDS: Final = re.compile("(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@dataclass(frozen=True)
class Wide:
    """What a batch brings to one table: a row a key, in order of the keys."""

    table: str
    rows: pa.Table
    columns: Sequence[Column]


def table_of(source: str, day: int) -> str:
    """KeyError for what is no source."""
    ENTITIES[source]
    return f"{PREFIX}{_WORDS.sub('_', source).lower()}_{day:08d}"


def wide(source: str, deltas: Deltas, buckets: Numbers) -> Iterator[Wide]:
    """`buckets` are the minutes of the rows."""
    columns = columns_of(deltas.rows, deltas.merges, deltas.bounds)
    arrays = {"entity_id": ENTITY_IDS[ENTITIES[source]](deltas.rows)}
    arrays |= {one.name: deltas.rows[one.name].cast(_ARROW_TYPES[one.type]) for one in columns}
    rows, days = pa.table(arrays), buckets // PRECISIONS[-1]
    # Which of the keys may stay is known only where the stored ones are: see `Column.settled`.
    unbounded = dict.fromkeys(deltas.merges, _ANY)
    for day in np.unique(days):
        of_day = days == day
        some, minutes = rows.filter(pa.array(of_day)), buckets[of_day]
        all_precisions = pa.concat_tables(
            some.append_column("time_bucket", pa.array(minutes // precision))
            for precision in PRECISIONS
        )
        one_each = merged(all_precisions, KEYS, deltas.merges, unbounded)
        in_order = one_each.sort_by([(key, "ascending") for key in KEYS])
        yield Wide(table_of(source, int(day)), in_order, columns)


def make(cursor: Cursor, known: Tables, wanted: Wide) -> None:
    """Inside a transaction that only makes tables; `known` is true once that one is."""
    there = known.get(wanted.table) or stored_columns(cursor, wanted.table)
    if not there:
        cursor.execute(
            f"""CREATE TABLE {wanted.table} (
            entity_id {schema.TEXT}, time_bucket BIGINT, PRIMARY KEY (entity_id, time_bucket))
            WITH (fillfactor = {PAGE_PERCENT})"""
        )
        cursor.execute(
            f"""CREATE INDEX {wanted.table}_few ON {wanted.table} (time_bucket)
            WHERE time_bucket < {FEW_BELOW}"""
        )
        there = dict.fromkeys(KEYS, "")
    for column in wanted.columns:
        _check_merge(wanted.table, column, there)
        for name, declared in column.declared().items():
            if name not in there:
                statement = f'ALTER TABLE {wanted.table} ADD COLUMN "{name}" {sql_type(declared)}'
                cursor.execute(statement)
            elif there[name] != declared:
                raise _unlike(wanted.table, column, there[name])
            there[name] = declared
    known[wanted.table] = there


def _check_merge(table: str, column: Column, there: Mapping[str, str]) -> None:
    """A table has one column of values, whose name says how it is merged."""
    merges = [merge for merge in Merge if f"{column.name} {merge.value}" in there]
    if column.is_table and merges and merges != [column.merge]:
        raise PermanentError(
            f"table {column.name} of {table} is merged by {merges[0].value}, but a batch brings "
            f"{column.merge.value}: give what it counts another name"
        )


def missing(known: Tables, wanted: Wide) -> bool:
    there = known.get(wanted.table, {})
    declared = [pair for column in wanted.columns for pair in column.declared().items()]
    return any(there.get(name) != sql_type for name, sql_type in declared)


def _unlike(table: str, column: Column, there: str) -> PermanentError:
    return PermanentError(
        f"column {column.name} of {table} is {there}, but a batch brings {column.type}: "
        "give what it counts another name"
    )


def bring(cursor: Cursor, brought: str, wanted: Wide) -> None:
    """As a temporary table, its rows numbered."""
    rows = wanted.rows.append_column(_ROW, pa.array(np.arange(wanted.rows.num_rows)))
    for column in (one for one in wanted.columns if one.is_table):
        place = rows.schema.get_field_index(column.name)
        rows = rows.set_column(place, column.name, tables.written(rows[column.name]))
    copying.bring(cursor, brought, rows)


def merge(cursor: Cursor, brought: str, wanted: Wide) -> None:
    """Inside the caller's transaction; `brought` is the temporary table with the rows."""
    try:
        with cursor.connection.transaction():
            grown = _taken_in(cursor, brought, wanted, careful=False)
    except NumericValueOutOfRange:
        grown = _taken_in(cursor, brought, wanted, careful=True)
    if grown:
        for column in (one for one in wanted.columns if one.is_table):
            _settle(cursor, brought, wanted.table, column, grown)


def _taken_in(cursor: Cursor, brought: str, wanted: Wide, careful: bool) -> list[int]:
    """The numbers of the rows with a table that has grown too long."""
    brings = {name: f'"{name}"' for name in KEYS}
    for column in wanted.columns:
        brings |= column.brought()
    taking = ", ".join(column.taking(careful) for column in wanted.columns)
    statement = f"""INSERT INTO {wanted.table} AS t ({listed(*brings)})
        SELECT {", ".join(brings.values())} FROM pg_temp.{brought}
        ON CONFLICT (entity_id, time_bucket) DO UPDATE SET {taking}"""
    grown = " OR ".join(column.too_long() for column in wanted.columns if column.is_table)
    if not grown:
        cursor.execute(statement, prepare=False)
        return []
    cursor.execute(
        f"""WITH changed AS (
            {statement} RETURNING t.entity_id, t.time_bucket, {grown} AS grown)
        SELECT "{_ROW}" FROM changed JOIN pg_temp.{brought} USING (entity_id, time_bucket)
        WHERE grown""",
        prepare=False,
    )
    return [number for (number,) in cursor.fetchall()]


def _settle(
    cursor: Cursor, brought: str, table: str, column: Column, numbers: Sequence[int]
) -> None:
    """What was stored before comes first: where there are too many keys, its own stay."""
    name, keys = f'"{column.name}"', "t.entity_id = i.entity_id AND t.time_bucket = i.time_bucket"
    cursor.execute(
        f"""SELECT i."{_ROW}", i.{name}, left(t.{name}, length(t.{name}) - length(i.{name}))
        FROM unnest(%s::bigint[]) AS grown("{_ROW}")
        JOIN pg_temp.{brought} AS i USING ("{_ROW}") JOIN {table} AS t ON {keys}
        WHERE i.{name} IS NOT NULL""",
        [list(numbers)],
        prepare=False,
    )
    if not (found := cursor.fetchall()):
        return
    rows, new, stored = (pa.array(values) for values in zip(*found, strict=True))
    both = tables.read(pa.concat_arrays([stored, new]))
    everything = pa.table({_ROW: pa.concat_arrays([rows, rows]), column.name: both})
    bounds = {column.name: column.keys_max}
    one_each = merged(everything, [_ROW], {column.name: column.merge}, bounds, len(rows))
    written = tables.written(one_each[column.name])
    settled = pa.table({_ROW: one_each[_ROW], column.name: written})
    copying.bring(cursor, "settled", settled)
    cursor.execute(
        f"""UPDATE {table} AS t SET {name} = s.{name}, "{column.settled}" = octet_length(s.{name})
        FROM pg_temp.{brought} AS i JOIN pg_temp.settled AS s USING ("{_ROW}") WHERE {keys}""",
        prepare=False,
    )


def stored_columns(cursor: Cursor, table: str) -> dict[str, str]:
    """Empty where there is no such table."""
    cursor.execute(
        """SELECT attname, format_type(atttypid, NULL) FROM pg_attribute
        WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped""",
        [table],
    )
    return dict(cursor.fetchall())


def listed(*columns: str) -> str:
    return ", ".join(f'"{column}"' for column in columns)
