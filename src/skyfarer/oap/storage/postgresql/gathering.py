"""Appended rows as a fold wants them: added up by the server to one an entity and minute.

A fold takes whole batches, oldest first. Those that it has seen are all there and never change, so
what is read, and deleted later in the same transaction, are the same rows, whatever batches commit
in between. Ten batches of the same entities come as a tenth of the rows: what is sent and taken
apart is paid for by entity. Texts of tables are only put one after the other here.

Numbers are added up by a sum of our own, in the schema of what is temporary: PostgreSQL's adds
64-bit numbers up without a bound, and that is a fifth of the time a fold takes to read. Sums that
are too large for a column are refused by the server; then rows come each by itself (`each`), and
are added up in Arrow, where they wrap around.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
from psycopg.errors import NumericValueOutOfRange

from skyfarer.oap.core.storage import Merge
from skyfarer.oap.storage.postgresql import columnar
from skyfarer.oap.storage.postgresql.appended import BATCH, with_coded_tables, with_tables
from skyfarer.oap.storage.postgresql.columns import BOUND, KEYS, MERGES, Column, split
from skyfarer.oap.storage.postgresql.copying import Cursor

_ROOM: Final = "SET LOCAL work_mem = '128MB'"
"""Of the server's memory, to sort and to add up; what is more goes to its disk."""
_TYPES: Final = {"entity_id": "text", "time_bucket": "bigint"}
_SUM: Final = "pg_temp.added"
_MAKE_SUM: Final = (
    f"CREATE AGGREGATE {_SUM}(bigint) (SFUNC = int8pl, STYPE = bigint, COMBINEFUNC = int8pl)"
)
_ADDED: Final = {Merge.SUM: "sum", Merge.MAX: "max", Merge.MIN: "min"}


class Gathered(NamedTuple):
    rows: pa.Table  # by the plain names of their columns; tables are coded
    columns: list[Column]
    rows_count: int  # that were appended
    batches: list[int]
    more: bool  # batches are there


def gathered(
    cursor: Cursor, appended: str, there: Mapping[str, str], rows_max: int, bytes_max: int
) -> Gathered:
    """So many rows, and bytes of tables, or a batch that is more by itself. All stay there until
    they are `removed`."""
    found = _batches(cursor, appended, there)
    some = found[: _chosen(found, rows_max, bytes_max)]
    batches, columns = [one.batch for one in some], _columns(there, some)
    try:
        with cursor.connection.transaction():
            cursor.execute(_ROOM)
            _make_sum(cursor)
            rows = _added_up(cursor, appended, columns, batches)
    except NumericValueOutOfRange:
        rows = each(cursor, appended, columns, batches).drop_columns([BATCH])
    return Gathered(
        rows, columns, sum(one.rows_count for one in some), batches, len(some) < len(found)
    )


def each(
    cursor: Cursor, appended: str, columns: Sequence[Column], batches: Sequence[int]
) -> pa.Table:
    """The rows as they were appended, with their `batch`; tables are not coded."""
    plain = "".join(f', "{one.settled}" AS "{one.name}"' for one in columns)
    types = _TYPES | {BATCH: "bigint"} | {one.name: one.type for one in columns}
    query = f"SELECT entity_id, time_bucket, {BATCH}{plain} FROM {appended} WHERE {_of(batches)}"
    return _read(cursor, query, types, with_tables)


def removed(cursor: Cursor, appended: str, batches: Sequence[int]) -> None:
    cursor.execute(f"DELETE FROM {appended} WHERE {_of(batches)}", prepare=False)


class _Batch(NamedTuple):
    batch: int
    rows_count: int
    octets: int  # of tables
    bounds: Mapping[str, int | None]


def _batches(cursor: Cursor, appended: str, there: Mapping[str, str]) -> list[_Batch]:
    """All there are, in order."""
    texts = [name for name, of_type in there.items() if of_type == "text" and name not in KEYS]
    length = " + ".join(["0", *(f'coalesce(octet_length("{name}"), 0)' for name in texts)])
    bounds = [name for name in there if name.endswith(BOUND)]
    most = "".join(f', max("{name}")' for name in bounds)
    cursor.execute(
        f"""SELECT {BATCH}, count(*), sum({length})::bigint{most} FROM {appended}
        GROUP BY {BATCH} ORDER BY {BATCH}""",
        prepare=False,
    )
    return [
        _Batch(batch, count, octets, dict(zip(bounds, told, strict=True)))
        for batch, count, octets, *told in cursor.fetchall()
    ]


def _chosen(found: Sequence[_Batch], rows_max: int, bytes_max: int) -> int:
    """How many of them."""
    rows, octets = 0, 0
    for place, one in enumerate(found):
        rows, octets = rows + one.rows_count, octets + one.octets
        if place and (rows > rows_max or octets > bytes_max):
            return place
    return len(found)


def _columns(there: Mapping[str, str], batches: Sequence[_Batch]) -> list[Column]:
    """Those that batches append to, with the bounds of their tables."""
    columns = []
    for name, merge in filter(None, map(split, there)):
        told = [one.bounds.get(f"{name}{BOUND}") or 0 for one in batches]
        known = [max(told)] if any(told) else []
        columns.append(Column(name, there[f"{name}{MERGES[merge]}"], merge, *known))
    return columns


def _added_up(
    cursor: Cursor, appended: str, columns: Sequence[Column], batches: Sequence[int]
) -> pa.Table:
    sums = "".join(f', {_sum(one)} AS "{one.name}"' for one in columns)
    query = f"""SELECT entity_id, time_bucket{sums} FROM {appended}
        WHERE {_of(batches)} GROUP BY entity_id, time_bucket"""
    types = _TYPES | {one.name: one.type for one in columns}
    return _read(cursor, query, types, with_coded_tables)


def _make_sum(cursor: Cursor) -> None:
    """Once a connection, which keeps it."""
    ((there,),) = cursor.execute(f"SELECT to_regproc('{_SUM}') IS NOT NULL").fetchall()
    if not there:
        cursor.execute(_MAKE_SUM)


def _sum(column: Column) -> str:
    if column.is_table:
        return f"string_agg(\"{column.settled}\", '')"
    whole = column.merge is Merge.SUM and column.type == "bigint"
    return f'{_SUM if whole else _ADDED[column.merge]}("{column.settled}")'


def _read(
    cursor: Cursor,
    query: str,
    types: Mapping[str, str],
    told: Callable[[pa.ChunkedArray], pa.ChunkedArray | pa.Array],
) -> pa.Table:
    rows = columnar.read_once(cursor, query, types)
    for place, name in enumerate(rows.column_names):
        if name not in KEYS:
            rows = rows.set_column(place, name, told(rows[name]))
    return rows


def _of(batches: Sequence[int]) -> str:
    """Our own numbers."""
    return f"{BATCH} = ANY('{{{','.join(map(str, batches))}}}'::bigint[])"
