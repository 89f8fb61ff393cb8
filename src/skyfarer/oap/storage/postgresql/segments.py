"""Segments in one table a day, and their bytes in a second one.

    segment_<day>        what a segment is found by, its `size` in bytes and its `data_row`
    segment_data_<day>   data_row → the bytes
    unsampled_<day>      ids of segments that came and are not stored

A search that no index leads to its end reads many rows and gives out few: with 1.5 KB in each it
would read six times as much (PostgreSQL moves bytes out of a row by itself only from 2 KB on). The
numbers of data rows come in blocks from a sequence, so that table and its index grow at their ends.

An index is for what leaves few rows (trace, endpoint, errors, tags) or for an order (time and
latency): where a condition leaves many rows, the first of them in an order are soon found without
its index. The slowest of a service or an endpoint are the exception: of every day that is asked
for there are many, and few are wanted. A hash index of traces would be cheaper, but gets slower
with every segment that has the same trace as thousands of others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import errors

from skyfarer.base.errors import PermanentError
from skyfarer.oap.core.storage import StoredMeanwhileError
from skyfarer.oap.core.streams.catalog import MODELS
from skyfarer.oap.core.streams.declaration import Column, ColumnType, model
from skyfarer.oap.core.streams.records import SEGMENT
from skyfarer.oap.storage import ddl
from skyfarer.oap.storage.entities import names
from skyfarer.oap.storage.merging import Numbers
from skyfarer.oap.storage.postgresql import copying, models
from skyfarer.oap.storage.postgresql.copying import Cursor

NAME: Final = SEGMENT.name
DATA: Final = "segment_data"
ROWS_A_BLOCK: Final = 2**20
"""Of numbers that a batch takes at once; those it does not need are left out."""
_BLOCKS: Final = "segment_data_block"
_ROW: Final = Column("data_row", ColumnType.LONG)
_SEGMENT: Final = model(SEGMENT).without("data_binary").beside(Column("size", ColumnType.INT), _ROW)
_DATA: Final = replace(
    _SEGMENT,
    name=DATA,
    key=(_ROW,),
    columns=(Column("data", ColumnType.BINARY, required=False),),
    indexes=(),
)
DATA_FIRST: Final = _DATA.first
_KEPT: Final = ("segment_id", "trace_id", "start_time", "latency", "is_error", "kind", "tags")


def tables(day: int) -> dict[str, list[str]]:
    """Table → what makes it and its indexes."""
    data = [
        f"CREATE SEQUENCE IF NOT EXISTS {_BLOCKS}",
        *models.statements(_DATA, _DATA.of_day(day)),
    ]
    return {_DATA.of_day(day): data} | models.of_day(_SEGMENT, day)


def lacking(there: Mapping[str, tuple[str, ...]]) -> list[tuple[str, Column]]:
    """What tables lack of any stream, of segments as they are here."""
    return list(ddl.lacking({**MODELS, NAME: _SEGMENT, DATA: _DATA}, there))


def data_of(table: str) -> str:
    """The table with the bytes of the segments of that table."""
    return f"{DATA}{table.removeprefix(NAME)}"


def unsampled_tables(day: int) -> dict[str, list[str]]:
    return models.of_day(models.UNSAMPLED, day)


def store(cursor: Cursor, rows: pa.Table, day: int) -> None:
    """Rows of that day, with their minute buckets in `bucket`."""
    rows = in_order(rows)
    sizes = pc.fill_null(pc.binary_length(rows["data_binary"]), 0).cast(pa.int32())
    numbers = pa.array(_numbers(cursor, rows.num_rows))
    columns = {name: rows[name] for name in _KEPT} | _ids(rows)
    columns |= {"time_bucket": seconds(rows), "size": sizes, "data_row": numbers}
    with _alone():
        copying.append(cursor, _SEGMENT.of_day(day), pa.table(columns))
    data = {"data_row": numbers, "data": rows["data_binary"]}
    copying.append(cursor, _DATA.of_day(day), pa.table(data))


def store_unsampled(cursor: Cursor, rows: pa.Table, day: int) -> None:
    with _alone():
        ids = in_order(rows).select(["segment_id"])
        copying.append(cursor, models.UNSAMPLED.of_day(day), ids)


def known(cursor: Cursor, tables: Iterable[str], ids: Sequence[str]) -> list[str]:
    """Those of the ids that one of the tables has."""
    wanted, found = sorted({copying.told(one) for one in ids}), set[str]()
    for table in tables:
        query = f"SELECT segment_id FROM {table} WHERE segment_id = ANY(%s)"
        found.update(one for (one,) in cursor.execute(query, [wanted]))
    return [one for one in ids if copying.told(one) in found] if found else []


def seconds(rows: pa.Table) -> pa.Array:
    """The second bucket of each row."""
    within: Numbers = rows["start_time"].to_numpy() // 1000 % 60
    return pa.array(rows["bucket"].to_numpy() * 100 + within)


def in_order(rows: pa.Table) -> pa.Table:
    """By their ids, so that two nodes that store the same ones meet at the first of them.

    Ids that PostgreSQL cannot tell apart (`copying`) are one segment; an id that is there twice is
    the mistake of whoever made the batch.
    """
    ids = copying.prepared(rows.select(["segment_id"]))["segment_id"]
    order: Numbers = pc.sort_indices(ids).to_numpy()
    texts = ids.take(pa.array(order))
    again = pc.equal(texts[1:], texts[:-1]).to_numpy()
    if again.any():
        if len(pc.unique(rows["segment_id"])) < rows.num_rows:
            twice = texts[int(np.argmax(again))]
            raise PermanentError(f"the ids of a batch's segments are not unique: {twice} is twice")
        order = order[np.concatenate([[True], ~again])]
    return rows.take(pa.array(order))


@contextmanager
def _alone() -> Iterator[None]:
    """A COPY that meets the row of another transaction waits for its end, so what is told of here
    is durable, and known to whoever asks again."""
    try:
        yield
    except errors.UniqueViolation as error:
        raise StoredMeanwhileError(
            "another node has stored one of the batch's segments meanwhile; "
            "the batch is analysed again without it"
        ) from error


def _ids(rows: pa.Table) -> dict[str, pa.Array]:
    service = pc.binary_join_element_wise(names(rows, "service"), "1", ".")
    return {"service_id": service} | {
        column: pc.binary_join_element_wise(service, names(rows, part), "_")
        for column, part in (("service_instance_id", "instance"), ("endpoint_id", "endpoint"))
    }


def _numbers(cursor: Cursor, count: int) -> Numbers:
    blocks = -(-count // ROWS_A_BLOCK)
    cursor.execute(f"SELECT nextval('{_BLOCKS}') FROM generate_series(1, %s)", [blocks])
    firsts = np.array([block for (block,) in cursor.fetchall()], np.int64) * ROWS_A_BLOCK
    numbers: Numbers = (firsts[:, None] + np.arange(min(count, ROWS_A_BLOCK))).ravel()[:count]
    return numbers
