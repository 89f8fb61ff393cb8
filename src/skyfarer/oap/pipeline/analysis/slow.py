"""Spans of databases and caches that may have taken too long.

Which of them did depends on their tags. Nearly all are fast: those are left out here, and the few
others are judged by the driver (`pipeline.slow`), since an expression that reads their tags costs
every batch more than all else that is told of a segment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from skyfarer.oap.pipeline.analysis.latency import latency_ms
from skyfarer.wire.messages import SpanType

DATABASE: Final = 1
CACHE: Final = 5
_TYPE: Final = """array<struct<span_id:int,layer:int,peer:string,latency:bigint,start_time:bigint,
    tags:array<struct<key:string,value:string>>>>"""


@dataclass(frozen=True)
class SlowSettings:
    """Milliseconds by type, in lower case, or by `default`; what takes longer than them is slow,
    and what has none never is."""

    database_ms: Mapping[str, int] = field(default_factory=dict)
    cache_read_ms: Mapping[str, int] = field(default_factory=dict)
    cache_write_ms: Mapping[str, int] = field(default_factory=dict)


def slow_spans(spans: Column, settings: SlowSettings) -> Column:
    """Those that took longer than the lowest threshold, with their tags."""
    every = (settings.database_ms, settings.cache_read_ms, settings.cache_write_ms)
    fastest_ms = min((ms for one in every for ms in one.values()), default=None)
    if fastest_ms is None:
        return F.array().cast(_TYPE)

    def candidate(span: Column) -> Column:
        return span["spanLayer"].isin(DATABASE, CACHE) & (_latency(span) > fastest_ms)

    return F.transform(
        F.filter(spans, candidate),
        lambda span: F.struct(
            span["spanId"].alias("span_id"),
            span["spanLayer"].alias("layer"),
            span["peer"].alias("peer"),
            _latency(span).alias("latency"),
            span["startTime"].alias("start_time"),
            span["tags"].alias("tags"),
        ),
    )


def _latency(span: Column) -> Column:
    """Null of a span whose type only newer agents know: nothing is made of it."""
    known = span["spanType"].isin(SpanType.Entry, SpanType.Exit, SpanType.Local)
    return F.when(known, latency_ms(span["startTime"], span["endTime"]))
