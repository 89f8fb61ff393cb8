"""Segments read back: one trace whole, and pages of the segments that fit a condition.

DuckDB uses the index on `trace_id` for a plain selection, not below a sort with a limit, so a
selection by trace stands alone and is sorted afterwards. Bytes are fetched a few rows at a time:
one row may be several MiB, and a trace may have thousands.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from threading import Timer
from typing import NamedTuple

import duckdb

from skyfarer.base.errors import RetryableError
from skyfarer.oap.core.time_bucket import day_of
from skyfarer.oap.core.traces import SegmentBrief, StoredSegment, TraceCondition, TraceOrder
from skyfarer.oap.storage.embedded import schema, tags

READ_TIMEOUT_S = 10.0
ROWS_PER_FETCH = 32

_BRIEF = """segment_id, trace_id, service_id, service_instance_id, endpoint_id, start_time, latency,
    is_error"""

# Field of a condition → what it asks of a row; the value is bound under the field's name.
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
    table: str
    row: int


class TraceReads(ABC):
    @abstractmethod
    def _cursor(self) -> duckdb.DuckDBPyConnection: ...

    def trace(self, trace_id: str, segments_max: int, bytes_max: int) -> list[StoredSegment]:
        cursor = self._cursor()
        with bounded(cursor):
            cursor.begin()  # row numbers hold within a transaction
            try:
                found = sorted(_found(cursor, trace_id, segments_max), key=_by_start)
                return list(_filled(cursor, found, bytes_max))
            finally:
                cursor.rollback()

    def traces(
        self, condition: TraceCondition, order: TraceOrder, offset: int, limit: int
    ) -> list[SegmentBrief]:
        tests, values = _asked(condition)
        cursor = self._cursor()
        with bounded(cursor):
            tables = _tables(cursor, condition.between)
            if not tables:
                return []
            where = " AND ".join(["true", *tests])
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
            return tags.keys(cursor, between, limit)

    def tag_values(self, key: str, between: tuple[int, int], limit: int) -> list[str]:
        cursor = self._cursor()
        with bounded(cursor):
            return tags.values(cursor, key, between, limit)


@contextmanager
def bounded(cursor: duckdb.DuckDBPyConnection, timeout_s: float = READ_TIMEOUT_S) -> Iterator[None]:
    """Ends what the cursor does when its time is over, as RetryableError."""
    timer = Timer(timeout_s, cursor.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    except duckdb.InterruptException as error:
        raise RetryableError(
            f"storage was searched for {timeout_s:g} s without an end; ask for a shorter time"
        ) from error
    finally:
        timer.cancel()


def _tables(cursor: duckdb.DuckDBPyConnection, between: tuple[int, int] | None = None) -> list[str]:
    days = schema.segment_days(schema.present(cursor))
    if between is not None:
        first, last = (day_of(second // 100) for second in between)
        days = [day for day in days if first <= day <= last]
    return [schema.segment_table(day) for day in days]


def _asked(condition: TraceCondition) -> tuple[list[str], dict[str, object]]:
    values = {name: getattr(condition, name) for name in _TESTS}
    values = {name: value for name, value in values.items() if value is not None}
    tests = [_TESTS[name] for name in values]
    for number, tag in enumerate(condition.tags):
        tests.append(f"list_contains(tags, $tag_{number})")  # faster than list_has_all of one
        values[f"tag_{number}"] = tag
    if condition.between is not None:
        tests.append("time_bucket BETWEEN $first AND $last")
        values["first"], values["last"] = condition.between
    return tests, values


def _found(cursor: duckdb.DuckDBPyConnection, trace_id: str, segments_max: int) -> Iterable[_Found]:
    left = segments_max
    for table in _tables(cursor):
        rows = cursor.execute(
            f"SELECT {_BRIEF}, kind, rowid FROM {table} WHERE trace_id = ? LIMIT ?",
            [trace_id, left],
        ).fetchall()
        left -= len(rows)
        for *brief, kind, row in rows:
            yield _Found(SegmentBrief(*brief), kind, table, row)


def _by_start(found: _Found) -> tuple[int, str]:
    return found.brief.start_time, found.brief.segment_id


def _filled(
    cursor: duckdb.DuckDBPyConnection, found: Sequence[_Found], bytes_max: int
) -> Iterator[StoredSegment]:
    left = bytes_max
    for table, members in groupby(found, key=lambda one: one.table):
        rows = list(members)
        for start in range(0, len(rows), ROWS_PER_FETCH):
            some = rows[start : start + ROWS_PER_FETCH]
            blobs = _blobs(cursor, table, [one.row for one in some]) if left > 0 else {}
            for one in some:
                data = blobs.get(one.row)
                left -= len(data or b"")
                yield StoredSegment(one.brief, one.kind, data if left >= 0 else None)


def _blobs(cursor: duckdb.DuckDBPyConnection, table: str, rows: Sequence[int]) -> dict[int, bytes]:
    query = f"SELECT rowid, data_binary FROM {table} WHERE rowid IN (SELECT unnest(?))"
    return dict(cursor.execute(query, [rows]).fetchall())
