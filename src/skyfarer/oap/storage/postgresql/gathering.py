"""Appended rows as a fold wants them: those of whole batches, oldest first.

Batches that a fold has seen are all there and never change, so what is read, and deleted later in
the same transaction, are the same rows, whatever batches commit in between. They are added up in
Arrow, with their tables (`taking`): the server would take longer to take bundles apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from skyfarer.oap.storage.postgresql import appended, tables
from skyfarer.oap.storage.postgresql.appended import BATCH
from skyfarer.oap.storage.postgresql.columns import BOUND, KEYS, Column, split
from skyfarer.oap.storage.postgresql.copying import Cursor

Both = tuple[Mapping[str, str], Mapping[str, str]]
"""Columns of the merged table and of the appended one, with their types."""


class Gathered(NamedTuple):
    rows: pa.Table  # by the plain names of their columns, with their batch; tables are coded
    columns: list[Column]
    batches: list[int]
    more: bool  # batches are there

    def each(self, columns: Sequence[Column]) -> pa.Table:
        """The rows with these columns, which are tables, and their batch; not coded."""
        rows = self.rows.select([*KEYS, BATCH])
        for column in columns:
            rows = rows.append_column(column.name, tables.plain(self.rows[column.name]))
        return rows


def gathered(
    cursor: Cursor,
    table: str,
    there: Both,
    rows_max: int,
    bytes_max: int,
) -> Gathered:
    """So many rows, and bytes of tables, or a batch that is more by itself. All stay there until
    they are `removed`."""
    found = _batches(cursor, table, there)
    some = found[: _chosen(found, rows_max, bytes_max)]
    batches, columns = [one.batch for one in some], _columns(there, some)
    query = appended.query(table, columns, columns, _of(batches))
    rows = appended.read(cursor, query, columns)
    return Gathered(rows, columns, batches, len(some) < len(found))


def removed(cursor: Cursor, table: str, batches: Sequence[int]) -> None:
    cursor.execute(f"DELETE FROM {table} WHERE {_of(batches)}", prepare=False)


class _Batch(NamedTuple):
    batch: int
    rows_count: int
    octets: int  # of tables
    bounds: Mapping[str, int | None]


def _batches(cursor: Cursor, table: str, there: Both) -> list[_Batch]:
    """All there are, in order."""
    long = [one.settled for one in _columns(there) if one.is_table]
    length = " + ".join(["0", *(f'coalesce(octet_length("{name}"), 0)' for name in long)])
    bounds = [name for name in there[1] if name.endswith(BOUND)]
    most = "".join(f', max("{name}")' for name in bounds)
    cursor.execute(
        f"""SELECT {BATCH}, sum(row_count)::bigint, sum({length})::bigint{most} FROM {table}
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


def _columns(there: Both, batches: Sequence[_Batch] = ()) -> list[Column]:
    """Those that batches append to, with the bounds of their tables."""
    columns, (merged, beside) = [], there
    for name, merge in filter(None, map(split, beside)):
        told = [one.bounds.get(f"{name}{BOUND}") or 0 for one in batches]
        known = [max(told)] if any(told) else []
        columns.append(Column(name, merged[name], merge, *known))
    return columns


def _of(batches: Sequence[int]) -> str:
    """Our own numbers."""
    return f"{BATCH} = ANY('{{{','.join(map(str, batches))}}}'::bigint[])"
