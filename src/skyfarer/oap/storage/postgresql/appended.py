"""What batches bring of metrics, one bundle after the other: a table a source and day, no key.

    appended_<source>_<day>   batch                       the number of the transaction
                              row_count                   of rows that are in the bundle
                              first_minute, last_minute   of these
                              entity_id, time_bucket      of each
                              <accumulator>, …            of each (`columns`, `bundles`)

A batch copies its rows here as they are, mostly a row an entity and minute, in the transaction that
moves its offset. Nothing is looked for and nothing changed, so that nodes are not in each other's
way and a batch costs less than COPY of its rows. Hours and days are made of minutes by whoever
reads, and for good when rows are folded into those of `metrics` (`folding`), within seconds: few
rows are here at any time. Of keys beyond a table's bound those stay whose `batch` came first.

Long values are not compressed: that would take longer than to write them, and they are gone soon.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from skyfarer.oap.core.storage import KEYS_MAX
from skyfarer.oap.core.streams.metrics import PREFIX as MERGED
from skyfarer.oap.storage.merging import CODED, TABLE
from skyfarer.oap.storage.postgresql import bundles, copying
from skyfarer.oap.storage.postgresql.columns import BOUND, BUNDLED, KEYS, Column
from skyfarer.oap.storage.postgresql.copying import Cursor
from skyfarer.oap.storage.postgresql.models import TEXT

PREFIX: Final = "appended_"
BATCH: Final = "batch"
FIRST: Final = (BATCH, "row_count")
"""Columns of every such table."""
ARROW_TYPES: Final = {"text": TABLE, "bigint": pa.int64(), "double precision": pa.float64()}
"""Of accumulators, by their types in SQL."""
WITHIN: Final = "first_minute <= %(last_minute)s AND last_minute >= %(first_minute)s"
"""Whether a bundle may have rows of these minutes."""


def appended_to(table: str) -> str:
    """Where batches append what belongs to that table of metrics, or of that model."""
    return f"{PREFIX}{table.removeprefix(MERGED)}"


def merged_of(appended: str) -> str:
    return f"{MERGED}{appended.removeprefix(PREFIX)}"


def ddl(appended: str) -> tuple[str, ...]:
    """Without the accumulators, which are added as they come."""
    return (
        f"""CREATE TABLE {appended} ({BATCH} BIGINT, row_count INTEGER, first_minute BIGINT,
            last_minute BIGINT, entity_id {TEXT}, time_bucket {BUNDLED})""",
        *(as_it_is(appended, key) for key in KEYS),
    )


def as_it_is(appended: str, column: str) -> str:
    """Makes long values of the column be stored without compression."""
    return f'ALTER TABLE {appended} ALTER COLUMN "{column}" SET STORAGE EXTERNAL'


def store(
    cursor: Cursor,
    appended: str,
    rows: pa.Table,
    columns: Sequence[Column],
    batch: int,
    identified: Callable[[pa.Table], pa.Table] = lambda some: some,
) -> None:
    """Rows of minutes, in the transaction of that number. Some of them may be of one entity and
    minute. They need no `entity_id` where `identified` gives them one."""

    told = {BATCH: "int8", "row_count": "int4", "first_minute": "int8", "last_minute": "int8"}
    told |= {"entity_id": "text", "time_bucket": BUNDLED}
    told |= {column.settled: BUNDLED for column in columns}
    bounds = {f"{one.name}{BOUND}": one.keys_max for one in columns if one.is_bounded}
    told |= dict.fromkeys(bounds, "int4")
    listed = ", ".join(f'"{name}"' for name in told)
    with cursor.copy(f"COPY {appended} ({listed}) FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(list(told.values()))
        for some in copying.pieces(rows):
            values = _bundle(identified(some), columns)
            copy.write_row((batch, *values, *bounds.values()))


def _bundle(rows: pa.Table, columns: Sequence[Column]) -> Iterator[Any]:
    minutes, ids = rows["time_bucket"], rows["entity_id"].combine_chunks()
    yield rows.num_rows
    yield from (int(end) for end in (minutes.to_numpy().min(), minutes.to_numpy().max()))
    yield bundles.written_ids(ids)
    yield bundles.written(minutes)
    for column in columns:
        yield bundles.written(rows[column.name])


def query(appended: str, columns: Sequence[Column], there: Collection[Column], where: str) -> str:
    """Bundles as `read` takes them; nothing of columns that are not `there`."""
    told = [f'"{one.settled}"' if one in there else f"NULL::{BUNDLED}" for one in columns]
    told += [
        f'coalesce("{one.name}{BOUND}", {KEYS_MAX})' if one in there else f"{KEYS_MAX}"
        for one in columns
        if one.is_table
    ]
    wanted = ", ".join([BATCH, "row_count", *KEYS, *told])
    return f"SELECT {wanted} FROM {appended} WHERE {where}"


def read(
    cursor: Cursor,
    asked_for: str,
    columns: Sequence[Column],
    asked: Mapping[str, object] | None = None,
) -> pa.Table:
    """The rows of all bundles that a query finds, an empty one none, with their batches. Tables are
    coded, and have a second column, their bound."""
    bounds = [f"{one.name}{BOUND}" for one in columns if one.is_table]
    types = {"entity_id": pa.string(), "time_bucket": pa.int64(), BATCH: pa.int64()}
    types |= {one.name: CODED if one.is_table else ARROW_TYPES[one.type] for one in columns}
    types |= dict.fromkeys(bounds, pa.int64())
    found: dict[str, list[pa.Array]] = {name: [] for name in types}
    there = cursor.execute(asked_for, asked).fetchall() if asked_for else []
    for batch, count, ids, minutes, *told in there:
        found["entity_id"].append(bundles.read_ids(ids, count))
        found["time_bucket"].append(bundles.read_numbers(minutes, count))
        values, keys_max = told[: len(columns)], told[len(columns) :]
        for name, number in zip((BATCH, *bounds), (batch, *keys_max), strict=True):
            found[name].append(pa.repeat(pa.scalar(number, pa.int64()), count))
        for column, octets in zip(columns, values, strict=True):
            found[column.name].append(_column(octets, count, column, types))
    return pa.table({name: pa.chunked_array(found[name], types[name]) for name in types})


def _column(
    octets: bytes | None, count: int, column: Column, types: Mapping[str, pa.DataType]
) -> pa.Array:
    if octets is None:
        return pa.nulls(count, types[column.name])
    return bundles.read_tables(octets) if column.is_table else bundles.read_numbers(octets, count)
