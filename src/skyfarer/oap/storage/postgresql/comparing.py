"""Rows of all entities of a source, to compare them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from skyfarer.base.errors import PermanentError
from skyfarer.oap.core.entities import ENTITIES, Entity
from skyfarer.oap.core.storage import KEYS_MAX, ROWS_MAX
from skyfarer.oap.storage.merging import merged
from skyfarer.oap.storage.postgresql import appended, columnar, packed, tables
from skyfarer.oap.storage.postgresql.appended import BATCH
from skyfarer.oap.storage.postgresql.columns import BOUND, KEYS, Column
from skyfarer.oap.storage.postgresql.copying import Cursor
from skyfarer.oap.storage.postgresql.days import Days, Range, days_with
from skyfarer.oap.storage.postgresql.packed import first_bucket

_OF_A_SERVICE: Final = frozenset((Entity.SERVICE, Entity.INSTANCE, Entity.ENDPOINT))
_OF_ONE: Final = "(entity_id = %(service)s OR starts_with(entity_id, %(service)s || '_'))"
_IDS: Final = pa.dictionary(pa.int32(), pa.string())
_NONE: Final = pa.schema({"entity_id": _IDS, "time_bucket": pa.int64()})
_BLOCK_MAX: Final = 2**31 - 1
"""What Arrow's reader of CSV counts bytes in."""
_ARROW: Final = {"text": pa.string(), "bigint": pa.int64(), "double precision": pa.float64()}


class RowReads(ABC):
    _remembered: packed.Remembered

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Cursor]: ...

    def rows(
        self,
        source: str,
        columns: Sequence[str],
        start_bucket: int,
        end_bucket: int,
        service_id: str | None = None,
    ) -> pa.Table:
        if service_id is not None and ENTITIES[source] not in _OF_A_SERVICE:
            raise ValueError(f"rows of {source} are of two services, not of one")
        found = [_NONE.empty_table()]
        with self._reading() as cursor:
            for days in days_with(cursor, source, columns, start_bucket, end_bucket):
                packs = self._packs(cursor, days, service_id)
                rows = _bounded(_not_packed(cursor, days, packs.through, service_id), source)
                later = _bounded(_appended(cursor, days, service_id), source)
                found.append(_one_each(packs.rows, rows, later, days.columns))
        rows = _bounded(pa.concat_tables(found, promote_options="default"), source)
        return rows.unify_dictionaries()

    def _packs(self, cursor: Cursor, days: Days, service_id: str | None) -> packed.Packs:
        """Of what is asked for; none of minutes, and none that have tables."""
        digits, columns = days.range.digits, days.columns
        if digits not in (packed.HOUR, packed.DAY) or any(one.is_table for one in columns):
            return packed.Packs(_NONE.empty_table(), {})
        packs = packed.read(cursor, self._remembered, days.merged, digits, columns)
        rows = _within(packs, days.range)
        if service_id is not None:
            rows = rows.filter(_of_service(rows["entity_id"], service_id))
        return packed.Packs(rows, packs.through)


def _within(packs: packed.Packs, asked: Range) -> pa.Table:
    """Mostly whole days are asked for."""
    firsts = (first_bucket(table, asked.digits) for table in packs.through)
    if all(asked.start <= first for first in firsts) and asked.end >= max(
        packs.through.values(), default=0
    ):
        return packs.rows
    buckets = packs.rows["time_bucket"].to_numpy()
    return packs.rows.filter(pa.array((asked.start <= buckets) & (buckets <= asked.end)))


def _of_service(ids: pa.ChunkedArray, service_id: str) -> pa.ChunkedArray:
    """Looked at once an id, not once a row."""
    masks = []
    for chunk in ids.chunks:
        names = chunk.dictionary
        its_own = pc.or_(pc.equal(names, service_id), pc.starts_with(names, f"{service_id}_"))
        masks.append(its_own.take(chunk.indices))
    return pa.chunked_array(masks, pa.bool_())


def _not_packed(
    cursor: Cursor, days: Days, through: Mapping[str, int], service_id: str | None
) -> pa.Table:
    """Merged rows; one more than ROWS_MAX where there are more."""
    query = days.query("true" if service_id is None else _OF_ONE, through)
    asked = {**days.range.asked(), "service": service_id}
    with_tables = any(column.is_table for column in days.columns)
    read = _read_texts if with_tables else columnar.read
    return _with_ids(read(cursor, f"{query} LIMIT {ROWS_MAX + 1}", days.types(), asked), _IDS)


def _read_texts(
    cursor: Cursor, query: str, types: Mapping[str, str], asked: Mapping[str, object]
) -> pa.Table:
    """As one COPY that Arrow reads by itself, as one block: texts of tables may be long."""
    arrow = {name: _ARROW[declared] for name, declared in types.items()}
    with cursor.copy(f"COPY ({query}) TO STDOUT (FORMAT csv)", asked) as copy:
        text = b"".join(copy)
    if not text:
        return pa.schema(arrow).empty_table()
    return csv.read_csv(
        pa.BufferReader(text),
        read_options=csv.ReadOptions(
            column_names=list(arrow), use_threads=False, block_size=min(len(text), _BLOCK_MAX)
        ),
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(column_types=arrow, null_values=[""]),
    )


def _appended(cursor: Cursor, days: Days, service_id: str | None) -> pa.Table:
    """With their batches, by the buckets that are asked for."""
    rows = appended.read(cursor, days.bundles(), days.columns, days.range.asked())
    first, last = days.range.minutes_between
    minutes = rows["time_bucket"].to_numpy()
    if len(minutes) and not first <= minutes.min() <= minutes.max() <= last:
        rows = rows.filter(pa.array((first <= minutes) & (minutes <= last)))
    place = rows.schema.get_field_index("time_bucket")
    buckets = pa.array(rows["time_bucket"].to_numpy() // days.range.minutes)
    rows = _with_ids(rows.set_column(place, "time_bucket", buckets), _IDS)
    return rows if service_id is None else rows.filter(_of_service(rows["entity_id"], service_id))


def _one_each(
    packs: pa.Table, rows: pa.Table, later: pa.Table, columns: Sequence[Column]
) -> pa.Table:
    """One an entity and bucket. Numbers of buckets that nothing was appended to are it already."""
    names = [*KEYS, *(column.name for column in columns)]
    if any(column.is_table for column in columns):
        return _merged(rows, later, columns).select(names)
    rows = pa.concat_tables([packs, rows.select(names)], promote_options="default")
    if not later.num_rows:
        return rows
    open_buckets = np.unique(later["time_bucket"].to_numpy())
    is_open = np.isin(rows["time_bucket"].to_numpy(), open_buckets)
    touched = _merged(rows.filter(pa.array(is_open)), later, columns)
    return pa.concat_tables([rows.filter(pa.array(~is_open)), touched.select(names)])


def _with_ids(rows: pa.Table, of_type: pa.DataType) -> pa.Table:
    """Texts or a dictionary: many rows have the same id, and who compares needs each only once."""
    place, ids = rows.schema.get_field_index("entity_id"), rows["entity_id"]
    ids = ids.dictionary_encode() if of_type == _IDS else ids.cast(of_type)
    return rows.set_column(place, "entity_id", ids)


def _merged(rows: pa.Table, later: pa.Table, columns: Sequence[Column]) -> pa.Table:
    """Merged rows and what was appended, with its batches."""
    bounds = {}
    for column in (column for column in columns if column.is_table):
        told = pc.max(later[f"{column.name}{BOUND}"]).as_py()
        bounds[column.name] = KEYS_MAX if told is None else told
        place = rows.schema.get_field_index(column.name)
        maps = tables.read(rows[column.name].combine_chunks())
        rows = rows.set_column(place, column.name, maps)
        place = later.schema.get_field_index(column.name)
        later = later.set_column(place, column.name, tables.plain(later[column.name]))
    came = np.append(np.zeros(rows.num_rows, np.int64), later[BATCH].to_numpy())
    both = pa.concat_tables([rows, later.select(rows.column_names)], promote_options="default")
    merges = {column.name: column.merge for column in columns}
    return _with_ids(merged(_with_ids(both, pa.string()), KEYS, merges, bounds, came=came), _IDS)


def _bounded(rows: pa.Table, source: str) -> pa.Table:
    if rows.num_rows > ROWS_MAX:
        raise PermanentError(
            f"{source} has more than {ROWS_MAX} rows in that time: "
            "ask for a shorter time, a longer step, or one service"
        )
    return rows
