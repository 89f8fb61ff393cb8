"""Metrics: one table a source and day, one wide row an entity and time bucket.

    metrics_<source>_<day> (entity_id TEXT, time_bucket BIGINT, <accumulator>, …)

A row's bucket is a minute, an hour or a day (12, 10 or 8 digits). What batches bring is appended to
a table beside it (`appended`), and taken in here every few seconds (`folding`, `gathering`,
`taking`). A plan that has new accumulators (`columns`) adds columns to both, and columns of an
older plan stay as they are.

Pages are left half empty, so that a changed row stays in its page and no index has to know of it.
Rows are inserted in the order of their buckets: those of an hour or a minute lie side by side for
whoever compares entities, and finds them by an index of their buckets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import pyarrow as pa

from skyfarer.base.errors import PermanentError
from skyfarer.oap.core.entities import ENTITIES, ENTITY_COLUMNS
from skyfarer.oap.core.storage import Deltas, Merge
from skyfarer.oap.core.streams.declaration import model
from skyfarer.oap.core.streams.metrics import SOURCES
from skyfarer.oap.core.time_bucket import PRECISIONS
from skyfarer.oap.storage.buckets import days_in
from skyfarer.oap.storage.entities import ENTITY_IDS
from skyfarer.oap.storage.merging import Numbers
from skyfarer.oap.storage.postgresql import appended, models
from skyfarer.oap.storage.postgresql.columns import BUNDLED, MERGES, Column, columns_of, sql_type
from skyfarer.oap.storage.postgresql.copying import Cursor

Tables: TypeAlias = dict[str, dict[str, str]]
"""Table → column → its type in SQL."""
PAGE_PERCENT: Final = 50
_MODELS: Final = {source: model(stream) for source, stream in SOURCES.items()}
ANY_SOURCE: Final = next(iter(_MODELS.values()))
"""Tables of all sources are alike, but for their accumulators."""
_HALF_EMPTY: Final = f" WITH (fillfactor = {PAGE_PERCENT})"
ANY: Final = 2**31 - 1
"""Keys of a table that is not bounded yet."""


@dataclass(frozen=True)
class Wide:
    """What there is for one table of metrics: rows of entities and minutes."""

    table: str
    rows: pa.Table
    columns: Sequence[Column]
    ids: Callable[[pa.Table], pa.Array] | None = None
    """Of some of the rows, where they have no `entity_id` yet."""

    def identified(self, some: pa.Table) -> pa.Table:
        return some if self.ids is None else some.add_column(0, "entity_id", self.ids(some))


def table_of(source: str, day: int) -> str:
    """KeyError for what is no source."""
    return _MODELS[source].of_day(day)


def wide(source: str, deltas: Deltas, buckets: Numbers) -> Iterator[Wide]:
    """What a batch brings; `buckets` are the minutes of the rows. Ids are made of names when rows
    are sent."""
    columns = columns_of(deltas.rows, deltas.merges, deltas.bounds)
    arrays = {"time_bucket": pa.array(buckets)}
    arrays |= {
        one.name: deltas.rows[one.name].cast(appended.ARROW_TYPES[one.type]) for one in columns
    }
    arrays |= {name: deltas.rows[name] for name in ENTITY_COLUMNS}
    rows, days = pa.table(arrays), days_in(buckets)
    for day in days:
        of_day = rows
        if len(days) > 1:
            here = rows["time_bucket"].to_numpy() // PRECISIONS[-1] == day
            of_day = rows.filter(pa.array(here))
        yield Wide(table_of(source, day), of_day, columns, ENTITY_IDS[ENTITIES[source]])


def make(cursor: Cursor, known: Tables, wanted: Wide) -> None:
    """Inside a transaction that only makes tables; `known` is true once that one is."""
    beside = appended.appended_to(wanted.table)
    there = stored_columns(cursor, wanted.table)
    if not there:
        for statement in models.statements(ANY_SOURCE, wanted.table, options=_HALF_EMPTY):
            cursor.execute(statement)
    if not (there_beside := stored_columns(cursor, beside)):
        for statement in appended.ddl(beside):
            cursor.execute(statement)
    for column in wanted.columns:
        _check_merge(wanted.table, column, {**there, **there_beside})
        _add(cursor, wanted.table, there, column, column.declared())
        _add(cursor, beside, there_beside, column, column.appended())
    known[wanted.table], known[beside] = there, there_beside


def _add(
    cursor: Cursor, table: str, there: dict[str, str], column: Column, declared: Mapping[str, str]
) -> None:
    for name, of_type in declared.items():
        if name not in there:
            cursor.execute(f'ALTER TABLE {table} ADD COLUMN "{name}" {sql_type(of_type)}')
            if of_type == BUNDLED:
                cursor.execute(appended.as_it_is(table, name))
        elif there[name] != of_type:
            raise _unlike(table, column, there[name])
        there[name] = of_type


def _check_merge(table: str, column: Column, there: Mapping[str, str]) -> None:
    """An accumulator has one column whose name says how it is merged."""
    merges = [merge for merge in Merge if f"{column.name}{MERGES[merge]}" in there]
    if merges and merges != [column.merge]:
        raise PermanentError(
            f"column {column.name} of {table} is merged by {merges[0].value}, but a batch brings "
            f"{column.merge.value}: give what it counts another name"
        )


def missing(known: Tables, wanted: Wide) -> bool:
    """Of either table; the merged one says of which type an accumulator is."""
    there, beside = known.get(wanted.table, {}), known.get(appended.appended_to(wanted.table), {})
    return not beside or any(
        not one.declared().items() <= there.items() or not one.appended().items() <= beside.items()
        for one in wanted.columns
    )


def _unlike(table: str, column: Column, there: str) -> PermanentError:
    return PermanentError(
        f"column {column.name} of {table} is {there}, but a batch brings {column.type}: "
        "give what it counts another name"
    )


def append(cursor: Cursor, wanted: Wide, batch: int) -> None:
    """In the transaction of that number."""
    beside = appended.appended_to(wanted.table)
    appended.store(cursor, beside, wanted.rows, wanted.columns, batch, wanted.identified)


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
