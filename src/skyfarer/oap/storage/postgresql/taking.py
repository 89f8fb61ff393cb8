"""Rows of metrics that take in others: what was appended becomes a row an entity and bucket.

The new rows are merged in Arrow to one a minute, hour and day, brought in binary, and taken in by
the rows there are, in one statement. Tables (`columns`) that have grown too long by it are read,
put together in Arrow and written again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from psycopg.errors import NumericValueOutOfRange

from skyfarer.oap.core.time_bucket import PRECISIONS
from skyfarer.oap.storage.merging import merged
from skyfarer.oap.storage.postgresql import copying, tables
from skyfarer.oap.storage.postgresql.appended import BATCH
from skyfarer.oap.storage.postgresql.columns import KEYS, Column
from skyfarer.oap.storage.postgresql.copying import Cursor
from skyfarer.oap.storage.postgresql.metrics import ANY, Wide, listed

_ROW: Final = "row"
"""With every row that is brought; no accumulator is named so."""
_BROUGHT: Final = "brought"


def take_in(cursor: Cursor, appended: Wide) -> None:
    """Inside the caller's transaction, alone; its rows are of minutes, with their `batch`."""
    rows = of_all_precisions(appended.rows, appended.columns)
    wanted = Wide(appended.table, rows, appended.columns)
    _bring(cursor, wanted)
    try:
        with cursor.connection.transaction():
            grown = _taken_in(cursor, wanted, careful=False)
    except NumericValueOutOfRange:
        grown = _taken_in(cursor, wanted, careful=True)
    if grown:
        for column in (one for one in wanted.columns if one.is_table):
            _settle(cursor, wanted, column, grown, appended.rows)


def of_all_precisions(rows: pa.Table, columns: Sequence[Column]) -> pa.Table:
    """Rows of minutes become one a minute, hour and day of each entity, by bucket and entity."""
    merges = {column.name: column.merge for column in columns}
    # Which of the keys may stay is known only where the stored ones are.
    unbounded, last, found = dict.fromkeys(merges, ANY), 1, []
    for precision in PRECISIONS:
        buckets = pa.array(rows["time_bucket"].to_numpy() // (precision // last))
        rows = rows.set_column(rows.schema.get_field_index("time_bucket"), "time_bucket", buckets)
        rows, last = merged(rows, KEYS, merges, unbounded), precision
        found.append(rows)
    in_order = [(key, "ascending") for key in reversed(KEYS)]
    return pa.concat_tables(found).sort_by(in_order)


def _bring(cursor: Cursor, wanted: Wide) -> None:
    """As a temporary table, its rows numbered."""
    rows = wanted.rows.append_column(_ROW, pa.array(np.arange(wanted.rows.num_rows)))
    for column in (one for one in wanted.columns if one.is_table):
        place = rows.schema.get_field_index(column.name)
        rows = rows.set_column(place, column.name, tables.written(rows[column.name]))
    copying.bring(cursor, _BROUGHT, rows)


def _taken_in(cursor: Cursor, wanted: Wide, careful: bool) -> list[int]:
    """The numbers of the rows with a table that has grown too long."""
    brings = {name: f'"{name}"' for name in KEYS}
    for column in wanted.columns:
        brings |= column.brought()
    taking = ", ".join(column.taking(careful) for column in wanted.columns)
    statement = f"""INSERT INTO {wanted.table} AS t ({listed(*brings)})
        SELECT {", ".join(brings.values())} FROM pg_temp.{_BROUGHT}
        ON CONFLICT (entity_id, time_bucket) DO {f"UPDATE SET {taking}" if taking else "NOTHING"}"""
    grown = " OR ".join(column.too_long() for column in wanted.columns if column.is_table)
    if not grown:
        cursor.execute(statement, prepare=False)
        return []
    cursor.execute(
        f"""WITH changed AS (
            {statement} RETURNING t.entity_id, t.time_bucket, {grown} AS grown)
        SELECT "{_ROW}" FROM changed JOIN pg_temp.{_BROUGHT} USING (entity_id, time_bucket)
        WHERE grown""",
        prepare=False,
    )
    return [number for (number,) in cursor.fetchall()]


def _settle(
    cursor: Cursor, wanted: Wide, column: Column, numbers: Sequence[int], appended: pa.Table
) -> None:
    name, keys = f'"{column.name}"', "t.entity_id = i.entity_id AND t.time_bucket = i.time_bucket"
    cursor.execute(
        f"""SELECT i."{_ROW}", left(t.{name}, length(t.{name}) - length(i.{name}))
        FROM unnest(%s::bigint[]) AS grown("{_ROW}")
        JOIN pg_temp.{_BROUGHT} AS i USING ("{_ROW}") JOIN {wanted.table} AS t ON {keys}
        WHERE i.{name} IS NOT NULL""",
        [list(numbers)],
        prepare=False,
    )
    if not (found := cursor.fetchall()):
        return
    rows, texts = (pa.array(values) for values in zip(*found, strict=True))
    settled = _settled(wanted, column, pa.table({_ROW: rows, column.name: tables.read(texts)}))
    if _longest(settled[column.name]) > column.keys_max:
        stored = pa.table({_ROW: rows, column.name: tables.read(texts)})
        settled = _bounded(wanted, column, stored, appended)
    written = tables.written(settled[column.name])
    copying.bring(cursor, "settled", pa.table({_ROW: settled[_ROW], column.name: written}))
    cursor.execute(
        f"""UPDATE {wanted.table} AS t
        SET {name} = s.{name}, "{column.settled}" = octet_length(s.{name})
        FROM pg_temp.{_BROUGHT} AS i JOIN pg_temp.settled AS s USING ("{_ROW}") WHERE {keys}""",
        prepare=False,
    )


def _longest(maps: pa.ChunkedArray) -> int:
    return max((int(np.diff(one.offsets).max(initial=0)) for one in maps.chunks), default=0)


def _settled(wanted: Wide, column: Column, stored: pa.Table) -> pa.Table:
    new = wanted.rows[column.name].take(stored[_ROW])
    both = pa.concat_tables([stored, pa.table({_ROW: stored[_ROW], column.name: new})])
    return merged(both, [_ROW], {column.name: column.merge}, {column.name: ANY})


def _bounded(wanted: Wide, column: Column, stored: pa.Table, appended: pa.Table) -> pa.Table:
    """What was stored before comes first, then one batch after the other, though several are taken
    in at once: a key that somebody has read already stays."""
    keys = wanted.rows.select(KEYS).take(stored[_ROW]).append_column(_ROW, stored[_ROW])
    found, came = [stored], [np.zeros(stored.num_rows, np.int64)]
    for precision in PRECISIONS:
        buckets = pa.array(appended["time_bucket"].to_numpy() // precision)
        places = pa.table({"entity_id": appended["entity_id"], "time_bucket": buckets})
        places = places.append_column("place", pa.array(np.arange(appended.num_rows)))
        both = places.join(keys, list(KEYS), join_type="inner")
        told = appended[column.name].take(both["place"])
        found.append(pa.table({_ROW: both[_ROW], column.name: told}))
        came.append(appended[BATCH].take(both["place"]).to_numpy())
    return merged(
        pa.concat_tables(found),
        [_ROW],
        {column.name: column.merge},
        {column.name: column.keys_max},
        came=np.concatenate(came),
    )
