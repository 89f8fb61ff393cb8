"""Segments read back: one trace whole, and pages of the segments that fit a condition.

A page is found by what it is sorted by, and then fetched (`pages`). A trace is found by an index.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import NamedTuple

import duckdb

from skyfarer.oap.core.streams.records import SEGMENT
from skyfarer.oap.core.traces import SegmentBrief, StoredSegment, TraceCondition, TraceOrder
from skyfarer.oap.storage.embedded import models, pages, schema, signatures, tags
from skyfarer.oap.storage.embedded.pages import Candidate
from skyfarer.oap.storage.embedded.searching import Place, asked, blobs, by_day, tagged

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


_PLACES: Mapping[TraceOrder, Callable[[SegmentBrief], tuple[int, str]]] = {
    TraceOrder.START_TIME: lambda brief: (-brief.start_time, brief.segment_id),
    TraceOrder.DURATION: lambda brief: (-brief.latency, brief.segment_id),
}


class _Found(NamedTuple):
    brief: SegmentBrief
    kind: int
    place: Place


class _Search(NamedTuple):
    condition: TraceCondition
    order: TraceOrder
    wanted: int
    """Rows from the first on, those before the page included."""


class TraceReads(ABC):
    @abstractmethod
    def _reading(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]: ...

    def trace(self, trace_id: str, segments_max: int, bytes_max: int) -> list[StoredSegment]:
        with self._reading() as cursor:
            found = sorted(_found(cursor, trace_id, segments_max), key=_by_start)
            data = blobs(cursor, "data_binary", [one.place for one in found], bytes_max)
            pairs = zip(found, data, strict=True)
            return [StoredSegment(one.brief, one.kind, some) for one, some in pairs]

    def traces(
        self, condition: TraceCondition, order: TraceOrder, offset: int, limit: int
    ) -> list[SegmentBrief]:
        search = _Search(condition, order, offset + limit)
        with self._reading() as cursor:
            read = partial(_page, cursor, search)
            rows = schema.of_days(cursor, models.SEGMENT.name, condition.between, read)
        briefs = sorted((SegmentBrief(*row) for row in rows), key=_PLACES[order])
        return briefs[offset : search.wanted]

    def tag_keys(self, between: tuple[int, int], limit: int) -> list[str]:
        with self._reading() as cursor:
            return tags.keys(cursor, SEGMENT.tag_type, between, limit)

    def tag_values(self, key: str, between: tuple[int, int], limit: int) -> list[str]:
        with self._reading() as cursor:
            return tags.values(cursor, SEGMENT.tag_type, key, between, limit)


def _page(
    cursor: duckdb.DuckDBPyConnection, search: _Search, tables: Sequence[str]
) -> list[pages.Row]:
    """The rows that a page is of. By duration all days are read for their tags: there signatures
    are read instead, and the tags of the page alone; if they deny it one of its rows, the signature
    has misled, and all is read after all."""
    condition = search.condition
    tests, values = asked(condition, _TESTS)
    having, bound = tagged(condition.tags)
    if search.order is TraceOrder.DURATION and condition.tags:
        tests.append(signatures.test(condition.tags))
        places = _candidates(cursor, search, tables, tests, values)
        rows = pages.fetched(cursor, _BRIEF, places, having, bound)
        if len(rows) == len(places):
            return rows
    places = _candidates(cursor, search, tables, [*tests, *having], {**values, **bound})
    return pages.fetched(cursor, _BRIEF, places)


def _candidates(
    cursor: duckdb.DuckDBPyConnection,
    search: _Search,
    tables: Sequence[str],
    tests: Sequence[str],
    values: Mapping[str, object],
) -> list[Place]:
    found, wanted = list[Candidate](), search.wanted
    sorting, indexed = (search.order.value, "segment_id"), search.condition.trace_id is not None
    for some in _in_turn(tables, search) if wanted > 0 else ():
        days, bound = by_day(some, tests, values, search.condition.between)
        found += pages.candidates(cursor, days, bound, sorting, wanted, indexed)
        found = pages.leading(found, wanted)
        if search.order is TraceOrder.START_TIME and len(found) >= wanted:
            break
    return [one.place for one in found]


def _in_turn(tables: Sequence[str], search: _Search) -> list[Sequence[str]]:
    """Tables to be searched together. By time a day is before the next one, and the newest mostly
    has all that is wanted; by duration they are all alike. A trace is found by an index, in all at
    once."""
    if search.order is TraceOrder.START_TIME and search.condition.trace_id is None:
        return [[table] for table in reversed(tables)]
    return [tables] if tables else []


def _found(cursor: duckdb.DuckDBPyConnection, trace_id: str, segments_max: int) -> list[_Found]:
    days = [
        f"SELECT {_BRIEF}, kind, '{table}', rowid FROM {table} WHERE trace_id = $trace_id"
        for table in schema.day_tables(cursor, models.SEGMENT.name)
    ]
    if not days:
        return []
    query = f"{' UNION ALL '.join(days)} LIMIT $limit"
    rows = cursor.execute(query, {"trace_id": trace_id, "limit": segments_max}).fetchall()
    return [
        _Found(SegmentBrief(*brief), kind, Place(table, row)) for *brief, kind, table, row in rows
    ]


def _by_start(found: _Found) -> tuple[int, str]:
    return found.brief.start_time, found.brief.segment_id
