"""Rows of metrics that take in others: what was appended becomes a row an entity and bucket.

The new rows are merged in Arrow, brought in binary, and taken in by the rows there are: by those of
minutes, then of hours, then of days. What is all there is of an hour or a day is brought once, for
its minute, hour and day (`leveled`). Tables (`columns`) that have grown too long by it are read,
put together in Arrow (`settling`) and written again, all of a row at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from psycopg.errors import NumericValueOutOfRange

from skyfarer.oap.core.time_bucket import PRECISIONS
from skyfarer.oap.storage.merging import merged
from skyfarer.oap.storage.postgresql import columnar, copying, settling, tables
from skyfarer.oap.storage.postgresql.columns import KEYS, Column
from skyfarer.oap.storage.postgresql.copying import Cursor
from skyfarer.oap.storage.postgresql.metrics import ANY, Wide, listed
from skyfarer.oap.storage.postgresql.settling import BROUGHT, Each, bucket_of


def take_in(cursor: Cursor, gathered: Wide, each: Each) -> None:
    """Inside the caller's transaction, alone; its rows are of minutes."""
    pieces = leveled(gathered.rows, gathered.columns)
    _bring(cursor, gathered.columns, pieces)
    for precision in PRECISIONS:
        try:
            with cursor.connection.transaction():
                grown = _taken_in(cursor, gathered, precision, careful=False)
        except NumericValueOutOfRange:
            grown = _taken_in(cursor, gathered, precision, careful=True)
        if grown is not None:
            settling.settle(cursor, gathered, precision, grown, each)


def leveled(rows: pa.Table, columns: Sequence[Column]) -> list[pa.Table]:
    """Rows of minutes become one a minute, hour and day of each entity, in the order of buckets and
    entities: the days first. A row has a bucket of each precision that it stands for."""
    merges = {column.name: column.merge for column in columns}
    # Which of the keys may stay is known only where the stored ones are.
    unbounded, finest, found = dict.fromkeys(merges, ANY), 1, list[pa.Table]()
    for precision in PRECISIONS:
        buckets = pa.array(rows["time_bucket"].to_numpy() // (precision // finest))
        place = rows.schema.get_field_index("time_bucket")
        coarser = rows.set_column(place, "time_bucket", buckets)
        if not found or _distinct(coarser) < rows.num_rows:
            rows, finest = merged(coarser, KEYS, merges, unbounded), precision
            rows = rows.sort_by([(key, "ascending") for key in reversed(KEYS)])
            found.append(rows)
            buckets = rows["time_bucket"]
        found[-1] = found[-1].append_column(bucket_of(precision), buckets)
    return [_with_all_buckets(piece).drop_columns(["time_bucket"]) for piece in reversed(found)]


def _distinct(rows: pa.Table) -> int:
    return int(rows.select(KEYS).group_by(list(KEYS), use_threads=False).aggregate([]).num_rows)


def _with_all_buckets(piece: pa.Table) -> pa.Table:
    for name in map(bucket_of, PRECISIONS):
        if name not in piece.column_names:
            piece = piece.append_column(name, pa.nulls(piece.num_rows, pa.int64()))
    return piece


def _bring(cursor: Cursor, columns: Sequence[Column], pieces: Sequence[pa.Table]) -> None:
    """As a temporary table, with tables as texts."""
    names = ["entity_id", *map(bucket_of, PRECISIONS), *(column.name for column in columns)]
    with_texts = []
    for piece in pieces:
        for column in (one for one in columns if one.is_table):
            place = piece.schema.get_field_index(column.name)
            piece = piece.set_column(place, column.name, tables.written(piece[column.name]))
        with_texts.append(piece.select(names))
    copying.bring(cursor, BROUGHT, pa.concat_tables(with_texts))


def _taken_in(cursor: Cursor, wanted: Wide, precision: int, careful: bool) -> pa.Table | None:
    """The rows with a table that has grown too long, and all their tables as texts. They are asked
    for by their places once it is known which they are: mostly few, or none."""
    bucket = f'"{bucket_of(precision)}"'
    brings = {"entity_id": "entity_id", "time_bucket": bucket}
    for column in wanted.columns:
        brings |= column.brought()
    taking = ", ".join(column.taking(careful) for column in wanted.columns)
    statement = f"""INSERT INTO {wanted.table} AS t ({listed(*brings)})
        SELECT {", ".join(brings.values())} FROM pg_temp.{BROUGHT} WHERE {bucket} IS NOT NULL
        ON CONFLICT (entity_id, time_bucket) DO {f"UPDATE SET {taking}" if taking else "NOTHING"}"""
    with_tables = [column for column in wanted.columns if column.is_table]
    if not with_tables:
        cursor.execute(statement, prepare=False)
        return None
    grown = " OR ".join(f"coalesce({column.too_long()}, false)" for column in with_tables)
    ((places,),) = cursor.execute(
        f"""WITH taken AS ({statement} RETURNING t.ctid AS place, {grown} AS is_grown)
        SELECT array_agg(place)::text FROM taken WHERE is_grown""",
        prepare=False,
    ).fetchall()
    return None if places is None else _texts(cursor, wanted.table, with_tables, places)


def _texts(cursor: Cursor, table: str, columns: Sequence[Column], places: str) -> pa.Table:
    """Of the rows that this transaction has just put in these places."""
    types = {"entity_id": "text", "time_bucket": "bigint"}
    types |= {column.name: column.type for column in columns}
    query = f"SELECT {listed(*types)} FROM {table} WHERE ctid = ANY('{places}'::tid[])"
    return columnar.read_once(cursor, query, types)
