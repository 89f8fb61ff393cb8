"""Segments read back: one trace whole, and pages of the segments that fit a condition."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import tzinfo
from typing import Final

from skyfarer.oap.core.streams.records import SEGMENT
from skyfarer.oap.core.traces import SegmentBrief, StoredSegment, TraceCondition, TraceOrder
from skyfarer.oap.storage.postgresql import schema, segments, tags
from skyfarer.oap.storage.postgresql.copying import Cursor
from skyfarer.oap.storage.postgresql.pages import Listing
from skyfarer.oap.storage.postgresql.searching import Search, asked, by_day, narrow

_BRIEF: Final = (
    *("segment_id", "trace_id", "service_id", "service_instance_id", "endpoint_id"),
    *("start_time", "latency", "is_error"),
)
_COLUMNS: Final = ", ".join(_BRIEF)
_TESTS: Final = {
    "service_id": "service_id = %(service_id)s",
    "instance_id": "service_instance_id = %(instance_id)s",
    "endpoint_id": "endpoint_id = %(endpoint_id)s",
    "trace_id": "trace_id = %(trace_id)s",
    "latency_min_ms": "latency >= %(latency_min_ms)s",
    "latency_max_ms": "latency <= %(latency_max_ms)s",
    "is_error": "is_error = %(is_error)s",
}


class TraceReads(ABC):
    _zone: tzinfo
    _read_timeout_s: float

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Cursor]: ...

    @abstractmethod
    def _looking_up(self) -> AbstractContextManager[Cursor]: ...

    def trace(self, trace_id: str, segments_max: int, bytes_max: int) -> list[StoredSegment]:
        asked = {"trace_id": trace_id, "rows_max": segments_max, "bytes_max": bytes_max}
        with self._looking_up() as cursor:
            tables = schema.day_tables(cursor, SEGMENT.name)
            if not tables:
                return []
            rows = cursor.execute(_whole(tables), asked, prepare=True).fetchall()
            return [StoredSegment(SegmentBrief(*row[2:]), *row[:2]) for row in rows]

    def traces(
        self, condition: TraceCondition, order: TraceOrder, offset: int, limit: int
    ) -> list[SegmentBrief]:
        tests, values = asked(condition, _TESTS, condition.tags)
        narrow(tests, values, condition.between, TraceOrder.START_TIME.value, self._zone)
        keys = [(order.value, True), ("segment_id", False)]
        in_time = order is TraceOrder.START_TIME
        listing = Listing(_BRIEF, keys, by_day=in_time, tested=("time_bucket", "tags"))
        with self._reading() as cursor:
            tables = schema.day_tables(cursor, SEGMENT.name, condition.between)[::-1]
            search = Search(cursor, self._read_timeout_s)
            days = by_day(tables, tests, condition.between)
            page = listing.page(search, days, values, offset + limit)
            return [SegmentBrief(*row[:-1]) for row in page[offset:]]

    def tag_keys(self, between: tuple[int, int], limit: int) -> list[str]:
        with self._reading() as cursor:
            return tags.keys(Search(cursor, self._read_timeout_s), SEGMENT.tag_type, between, limit)

    def tag_values(self, key: str, between: tuple[int, int], limit: int) -> list[str]:
        with self._reading() as cursor:
            search = Search(cursor, self._read_timeout_s)
            return tags.values(search, SEGMENT.tag_type, key, between, limit)


def _whole(tables: Sequence[str]) -> str:
    """One statement for all days: it takes about as long as its way there and back. The bytes of a
    segment are looked for only while those before it leave room for them."""
    days = " UNION ALL ".join(
        f"""SELECT {_COLUMNS}, kind, size, data_row, {number} AS day
        FROM {table} WHERE trace_id = %(trace_id)s"""
        for number, table in enumerate(tables)
    )
    data = " ".join(
        f"""WHEN {number} THEN (SELECT data FROM {segments.data_of(table)} AS stored
        WHERE stored.data_row = found.data_row)"""
        for number, table in enumerate(tables)
    )
    return f"""SELECT kind, CASE WHEN used <= %(bytes_max)s THEN CASE day {data} END END, {_COLUMNS}
        FROM (SELECT *, sum(size) OVER (ORDER BY start_time, segment_id) AS used
            FROM ({days} LIMIT %(rows_max)s) AS chosen) AS found
        ORDER BY start_time, segment_id"""
