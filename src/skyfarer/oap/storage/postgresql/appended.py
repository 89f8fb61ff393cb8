"""What batches bring of metrics, one row after the other: a table a source and day, without a key.

    appended_<source>_<day> (entity_id TEXT, time_bucket BIGINT, batch BIGINT, <accumulator>, …)

A batch copies its rows here as they are, mostly a row an entity and minute, in the transaction that
moves its offset. Nothing is looked for and nothing changed, so that nodes are not in each other's
way and a batch costs little more than COPY. Hours and days are made of minutes by whoever reads,
and for good when rows are folded into those of `metrics` (`folding`), within seconds: few rows are
here at any time. `batch` is the number of the transaction: of keys beyond a table's bound those
stay that came first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import pyarrow as pa
from pyarrow import csv

from skyfarer.oap.core.storage import KEYS_MAX
from skyfarer.oap.core.streams.metrics import PREFIX as MERGED
from skyfarer.oap.storage.merging import TABLE
from skyfarer.oap.storage.postgresql import copying, tables
from skyfarer.oap.storage.postgresql.columns import BOUND, KEYS, Column
from skyfarer.oap.storage.postgresql.copying import Cursor
from skyfarer.oap.storage.postgresql.models import TEXT

PREFIX: Final = "appended_"
BATCH: Final = "batch"
_ARROW: Final = {
    "text": pa.string(),
    "bigint": pa.int64(),
    "integer": pa.int64(),
    "double precision": pa.float64(),
}
ARROW_TYPES: Final = {**_ARROW, "text": TABLE}
"""Of accumulators, by their types in SQL."""


def appended_to(table: str) -> str:
    """Where batches append what belongs to that table of metrics, or of that model."""
    return f"{PREFIX}{table.removeprefix(MERGED)}"


def merged_of(appended: str) -> str:
    return f"{MERGED}{appended.removeprefix(PREFIX)}"


def ddl(appended: str) -> tuple[str, ...]:
    """Without the accumulators, which are added as they come. A series is found by its entity."""
    return (
        f"CREATE TABLE {appended} (entity_id {TEXT}, time_bucket BIGINT, {BATCH} BIGINT)",
        f"CREATE INDEX {appended}_entity ON {appended} (entity_id)",
    )


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
    bounds = {one.name: _bound(one) for one in columns if one.is_table}
    number = pa.scalar(batch, pa.int64())

    def shaped(some: pa.Table) -> pa.Table:
        told = identified(some)
        arrays = {name: told[name] for name in KEYS}
        arrays[BATCH] = pa.repeat(number, some.num_rows)
        for column in columns:
            given = some[column.name]
            arrays[column.settled] = tables.written(given) if column.is_table else given
            if (bound := bounds.get(column.name)) is not None:
                arrays[f"{column.name}{BOUND}"] = pa.repeat(bound, some.num_rows)
        return pa.table(arrays)

    copying.append(cursor, appended, rows, shaped)


def _bound(column: Column) -> pa.Scalar | None:
    """The usual one is not told."""
    return None if column.keys_max == KEYS_MAX else pa.scalar(column.keys_max, pa.int32())


def read(
    cursor: Cursor, query: str, types: Mapping[str, str], asked: Mapping[str, object] | None = None
) -> pa.Table:
    """The answer, whose columns have these types in SQL, as one COPY that Arrow reads by itself: a
    hundred thousand rows would take a second as Python's. A text that is null becomes empty."""
    arrow = {name: _ARROW[declared] for name, declared in types.items()}
    lines = any(one == "text" for name, one in types.items() if name not in KEYS)
    with cursor.copy(f"COPY ({query}) TO STDOUT (FORMAT csv)", asked) as copy:
        text = b"".join(copy)
    if not text:
        return pa.schema(arrow).empty_table()
    return csv.read_csv(
        pa.BufferReader(text),
        read_options=csv.ReadOptions(column_names=list(arrow), use_threads=False),
        parse_options=csv.ParseOptions(newlines_in_values=lines),
        convert_options=csv.ConvertOptions(column_types=arrow, null_values=[""]),
    )


def with_tables(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """Texts become the tables they are; a key may stand in one several times."""
    return tables.read(_texts(column)) if column.type == pa.string() else column


def with_coded_tables(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    return tables.read_coded(_texts(column)) if column.type == pa.string() else column


def _texts(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays([*column.chunks, pa.array([], pa.string())])
