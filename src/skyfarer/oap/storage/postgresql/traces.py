"""Segments read back: one trace whole, and pages of the segments that fit a condition."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import tzinfo
from typing import Final, NamedTuple

from skyfarer.oap.core.traces import SegmentBrief, StoredSegment, TraceCondition, TraceOrder
from skyfarer.oap.storage.postgresql import schema, segments, tags
from skyfarer.oap.storage.postgresql.copying import Cursor
from skyfarer.oap.storage.postgresql.pages import Listing, Place, blobs
from skyfarer.oap.storage.postgresql.searching import Search, asked, implied, stored

_BRIEF: Final = (
    *("segment_id", "trace_id", "service_id", "service_instance_id", "endpoint_id"),
    *("start_time", "latency", "is_error"),
)
_BYTES: Final = "SELECT data_row, data FROM {table} WHERE data_row = ANY(%(keys)s)"
_TESTS: Final = {
    "service_id": "service_id = %(service_id)s",
    "instance_id": "service_instance_id = %(instance_id)s",
    "endpoint_id": "endpoint_id = %(endpoint_id)s",
    "trace_id": "trace_id = %(trace_id)s",
    "latency_min_ms": "latency >= %(latency_min_ms)s",
    "latency_max_ms": "latency <= %(latency_max_ms)s",
    "is_error": "is_error = %(is_error)s",
}


class _Found(NamedTuple):
    brief: SegmentBrief
    kind: int
    place: Place


class TraceReads(ABC):
    _zone: tzinfo
    _read_timeout_s: float

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Cursor]: ...

    def trace(self, trace_id: str, segments_max: int, bytes_max: int) -> list[StoredSegment]:
        with self._reading() as cursor:
            tables = schema.day_tables(cursor, segments.NAME)
            if not tables:
                return []
            search = Search(cursor, self._read_timeout_s)
            found = _found(search, tables, trace_id, segments_max)
            found.sort(key=lambda one: (one.brief.start_time, one.brief.segment_id))
            data = blobs(search, _BYTES, [one.place for one in found], bytes_max)
            pairs = zip(found, data, strict=True)
            return [StoredSegment(one.brief, one.kind, some) for one, some in pairs]

    def traces(
        self, condition: TraceCondition, order: TraceOrder, offset: int, limit: int
    ) -> list[SegmentBrief]:
        tests, values = asked(condition, _TESTS, condition.tags)
        tests += implied(condition, values, TraceOrder.START_TIME.value, self._zone)
        listing = Listing(_BRIEF, [(order.value, True), ("segment_id", False)])
        with self._reading() as cursor:
            tables = schema.day_tables(cursor, segments.NAME, condition.between)[::-1]
            search = Search(cursor, self._read_timeout_s)
            page = listing.page(search, tables, tests, values, offset + limit)
            return [SegmentBrief(*row[:-1]) for row in page[offset:]]

    def tag_keys(self, between: tuple[int, int], limit: int) -> list[str]:
        with self._reading() as cursor:
            return tags.keys(Search(cursor, self._read_timeout_s), tags.TRACE, between, limit)

    def tag_values(self, key: str, between: tuple[int, int], limit: int) -> list[str]:
        with self._reading() as cursor:
            search = Search(cursor, self._read_timeout_s)
            return tags.values(search, tags.TRACE, key, between, limit)


def _found(search: Search, tables: Sequence[str], trace_id: str, rows_max: int) -> list[_Found]:
    """One statement for all days: each is a look into an index, whatever the trace."""
    days = (
        f"""SELECT '{segments.data_of(table)}', data_row, size, kind, {", ".join(_BRIEF)}
        FROM {table} WHERE trace_id = %(trace_id)s"""
        for table in tables
    )
    statement = f"{' UNION ALL '.join(days)} LIMIT %(rows_max)s"
    values = {"trace_id": stored(trace_id), "rows_max": rows_max}
    rows = search.rows(statement, values, prepare=True)
    return [_Found(SegmentBrief(*row[4:]), row[3], Place(*row[:3])) for row in rows]
