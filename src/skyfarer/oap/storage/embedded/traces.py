"""Segments read back: one trace whole, and pages of the segments that fit a condition.

DuckDB uses the index on `trace_id` for a plain selection, not below a sort with a limit, so a
selection by trace stands alone and is sorted afterwards.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import NamedTuple

import duckdb

from skyfarer.oap.core.traces import SegmentBrief, StoredSegment, TraceCondition, TraceOrder
from skyfarer.oap.storage.embedded import schema, tags
from skyfarer.oap.storage.embedded.searching import Place, asked, blobs, bounded

_BRIEF = """segment_id, trace_id, service_id, service_instance_id, endpoint_id, start_time, latency,
    is_error"""

_TESTS = {
    "service_id": "service_id = $service_id",
    "instance_id": "service_instance_id = $instance_id",
    "endpoint_id": "endpoint_id = $endpoint_id",
    "trace_id": "trace_id = $trace_id",
    "latency_min_ms": "latency >= $latency_min_ms",
    "latency_max_ms": "latency <= $latency_max_ms",
    "is_error": "is_error = $is_error",
}


class _Found(NamedTuple):
    brief: SegmentBrief
    kind: int
    place: Place


class TraceReads(ABC):
    @abstractmethod
    def _cursor(self) -> duckdb.DuckDBPyConnection: ...

    def trace(self, trace_id: str, segments_max: int, bytes_max: int) -> list[StoredSegment]:
        cursor = self._cursor()
        with bounded(cursor):
            found = sorted(_found(cursor, trace_id, segments_max), key=_by_start)
            data = blobs(cursor, "data_binary", [one.place for one in found], bytes_max)
            pairs = zip(found, data, strict=True)
            return [StoredSegment(one.brief, one.kind, some) for one, some in pairs]

    def traces(
        self, condition: TraceCondition, order: TraceOrder, offset: int, limit: int
    ) -> list[SegmentBrief]:
        tests, values = asked(condition, _TESTS, condition.tags)
        cursor = self._cursor()
        with bounded(cursor):
            tables = schema.day_tables(cursor, schema.SEGMENT, condition.between)
            if not tables:
                return []
            where = " AND ".join(tests)
            days = [f"SELECT {_BRIEF} FROM {table} WHERE {where}" for table in tables]
            alone = "MATERIALIZED" if condition.trace_id is not None else "NOT MATERIALIZED"
            rows = cursor.execute(
                f"""WITH found AS {alone} ({" UNION ALL ".join(days)})
                FROM found ORDER BY {order.value} DESC, segment_id LIMIT $limit OFFSET $offset""",
                {**values, "limit": limit, "offset": offset},
            )
            return [SegmentBrief(*row) for row in rows.fetchall()]

    def tag_keys(self, between: tuple[int, int], limit: int) -> list[str]:
        cursor = self._cursor()
        with bounded(cursor):
            return tags.keys(cursor, tags.TRACE, between, limit)

    def tag_values(self, key: str, between: tuple[int, int], limit: int) -> list[str]:
        cursor = self._cursor()
        with bounded(cursor):
            return tags.values(cursor, tags.TRACE, key, between, limit)


def _found(cursor: duckdb.DuckDBPyConnection, trace_id: str, segments_max: int) -> Iterable[_Found]:
    left = segments_max
    for table in schema.day_tables(cursor, schema.SEGMENT):
        rows = cursor.execute(
            f"SELECT {_BRIEF}, kind, rowid FROM {table} WHERE trace_id = ? LIMIT ?",
            [trace_id, left],
        ).fetchall()
        left -= len(rows)
        for *brief, kind, row in rows:
            yield _Found(SegmentBrief(*brief), kind, Place(table, row))


def _by_start(found: _Found) -> tuple[int, str]:
    return found.brief.start_time, found.brief.segment_id
