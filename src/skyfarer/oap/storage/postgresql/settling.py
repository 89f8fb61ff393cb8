"""Tables of metric rows that have grown too long, put together in Arrow and written again.

Their texts have what was stored and, at their ends, what was taken in by now: of a key that stands
there several times one value is made. Where that leaves more keys than a table may have, those stay
that came first, and what batches have appended is looked at one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from skyfarer.oap.storage.merging import merged
from skyfarer.oap.storage.postgresql import copying, tables
from skyfarer.oap.storage.postgresql.appended import BATCH
from skyfarer.oap.storage.postgresql.columns import KEYS, Column
from skyfarer.oap.storage.postgresql.copying import Cursor
from skyfarer.oap.storage.postgresql.metrics import ANY, Wide

BROUGHT: Final = "brought"
"""The temporary table of what was taken in."""
_SETTLED: Final = "settled"
_SAME: Final = " AND ".join(f"t.{key} = s.{key}" for key in KEYS)
Each = Callable[[Sequence[Column]], pa.Table]
"""Of some columns, all rows as batches have appended them, with their `batch`."""


def bucket_of(precision: int) -> str:
    """The column of `BROUGHT` that has it, null in rows that are not for that precision. It has a
    blank, which no accumulator has in its name."""
    return f"bucket {precision}"


def settle(cursor: Cursor, wanted: Wide, precision: int, grown: pa.Table, each: Each) -> None:
    """`grown` are keys of rows, and all their tables as texts."""
    columns = [column for column in wanted.columns if column.is_table]
    rows = grown
    for column in columns:
        place = rows.schema.get_field_index(column.name)
        rows = rows.set_column(
            place, column.name, tables.read_coded(rows[column.name].combine_chunks())
        )
    merges = {column.name: column.merge for column in columns}
    rows = merged(rows, KEYS, merges, dict.fromkeys(merges, ANY))
    texts = {column.name: tables.written(rows[column.name]) for column in columns}
    written = rows.select(KEYS)
    for column in columns:
        written = written.append_column(column.name, texts[column.name])
    copying.bring(cursor, _SETTLED, written)
    for column in (one for one in columns if _longest(rows[one.name]) > one.keys_max):
        _bound(cursor, wanted, column, precision, each)
    set_to = ", ".join(
        f'"{one.name}" = s."{one.name}", "{one.settled}" = octet_length(s."{one.name}")'
        for one in columns
    )
    cursor.execute(
        f"UPDATE {wanted.table} AS t SET {set_to} FROM pg_temp.{_SETTLED} AS s WHERE {_SAME}",
        prepare=False,
    )


def _longest(maps: pa.ChunkedArray) -> int:
    return max((int(np.diff(one.offsets).max(initial=0)) for one in maps.chunks), default=0)


def _bound(cursor: Cursor, wanted: Wide, column: Column, precision: int, each: Each) -> None:
    """What was stored before comes first, then one batch after the other, though several are taken
    in at once: a key that somebody has read already stays."""
    name = f'"{column.name}"'
    cursor.execute(
        f"""SELECT t.entity_id, t.time_bucket,
            left(t.{name}, length(t.{name}) - coalesce(length(i.{name}), 0))
        FROM pg_temp.{_SETTLED} AS s JOIN {wanted.table} AS t ON {_SAME}
        JOIN pg_temp.{BROUGHT} AS i ON i.entity_id = t.entity_id
            AND i."{bucket_of(precision)}" = t.time_bucket""",
        prepare=False,
    )
    ids, buckets, texts = zip(*cursor.fetchall(), strict=True)
    keys = pa.table({"entity_id": pa.array(ids, pa.string()), "time_bucket": pa.array(buckets)})
    stored = keys.append_column(column.name, tables.read(pa.array(texts, pa.string())))
    came, told = _appended(column, precision, keys, each)
    rows = merged(
        pa.concat_tables([stored, told]),
        KEYS,
        {column.name: column.merge},
        {column.name: column.keys_max},
        came=np.concatenate([np.zeros(stored.num_rows, np.int64), came]),
    )
    bounded = rows.set_column(2, column.name, tables.written(rows[column.name]))
    copying.bring(cursor, "bounded", bounded)
    cursor.execute(
        f"""UPDATE pg_temp.{_SETTLED} AS t SET {name} = s.{name}
        FROM pg_temp.bounded AS s WHERE {_SAME}""",
        prepare=False,
    )


def _appended(
    column: Column, precision: int, keys: pa.Table, each: Each
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], pa.Table]:
    """Of these rows: the batches, and what they have brought."""
    rows = each([column])
    buckets = pa.array(rows["time_bucket"].to_numpy() // precision)
    places = pa.table({"entity_id": rows["entity_id"], "time_bucket": buckets})
    places = places.append_column("place", pa.array(np.arange(rows.num_rows)))
    both = places.join(keys, list(KEYS), join_type="inner")
    told = both.select(KEYS).append_column(column.name, rows[column.name].take(both["place"]))
    return rows[BATCH].take(both["place"]).to_numpy(), told
