"""Spans of databases and caches that took too long.

A database tells its type, or it is never slow; a cache likewise, and whether it was read or
written. Of a tag that is there several times the last one holds. Nearly all spans are fast: no tag
is read of one that is below every threshold of its layer, and no span looked at of a segment that
is, as a whole, for Spark interprets what looks at one element after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from skyfarer.oap.core.slow import STATEMENT_CHARS_MAX, Slow
from skyfarer.oap.pipeline.analysis.latency import latency_ms
from skyfarer.oap.pipeline.expressions import any_of
from skyfarer.wire.messages import SpanType

DATABASE: Final = 1
CACHE: Final = 5
DEFAULT: Final = "default"
_TYPE: Final = """array<struct<span_id:int,what:string,service:string,statement:string,
    latency:bigint,start_time:bigint>>"""


@dataclass(frozen=True)
class SlowSettings:
    """Milliseconds by type, in lower case, or by `default`; what takes longer than them is slow,
    and what has none never is."""

    database_ms: Mapping[str, int] = field(default_factory=dict)
    cache_read_ms: Mapping[str, int] = field(default_factory=dict)
    cache_write_ms: Mapping[str, int] = field(default_factory=dict)


def slow_spans(spans: Column, settings: SlowSettings) -> Column:
    """What each slow one is (the name of a `Slow`, a database's own for both of its), and whom it
    asked for what; in the order of the spans."""
    lowest_ms = {
        DATABASE: min(settings.database_ms.values(), default=None),
        CACHE: min(
            (*settings.cache_read_ms.values(), *settings.cache_write_ms.values()), default=None
        ),
    }
    layers = [(layer, ms) for layer, ms in lowest_ms.items() if ms is not None]
    if not layers:
        return F.array().cast(_TYPE)
    whole = latency_ms(F.array_min(spans["startTime"]), F.array_max(spans["endTime"]))
    possible = any_of(
        F.array_contains(spans["spanLayer"], layer) & (whole > ms) for layer, ms in layers
    )

    def candidate(span: Column) -> Column:
        return any_of((span["spanLayer"] == layer) & (_latency(span) > ms) for layer, ms in layers)

    judged = F.transform(F.filter(spans, candidate), lambda span: _judged(span, settings))
    slow = F.filter(judged, lambda one: one["what"].isNotNull()).cast(_TYPE)
    return F.when(possible, slow).otherwise(F.array().cast(_TYPE))


def _judged(span: Column, settings: SlowSettings) -> Column:
    """`what` is null for one that is not slow."""
    query = _last(span, "db.statement")
    of_cache, operation = _last(span, "cache.type"), _last(span, "cache.op")
    command = F.concat_ws(" ", _last(span, "cache.cmd"), _last(span, "cache.key"))
    peer, of_database = span["peer"], span["spanLayer"] == DATABASE
    long_query = _took_long(span, _last(span, "db.type"), settings.database_ms) & _shows(query)
    long_read = _took_long(span, of_cache, settings.cache_read_ms) & (operation == "read")
    long_write = _took_long(span, of_cache, settings.cache_write_ms) & (operation == "write")
    what = (
        F.when(of_database, F.when(long_query, Slow.DATABASE.name))
        .when(~_shows(of_cache), None)
        .when(long_read, Slow.CACHE_READ.name)
        .when(long_write, Slow.CACHE_WRITE.name)
    )
    local = F.when(of_database | _shows(peer), peer).otherwise(F.concat(of_cache, F.lit("-local")))
    statement = F.when(of_database, query).otherwise(command)
    return F.struct(
        span["spanId"].alias("span_id"),
        what.alias("what"),
        local.alias("service"),
        F.substring(statement, 1, STATEMENT_CHARS_MAX).alias("statement"),
        _latency(span).alias("latency"),
        span["startTime"].alias("start_time"),
    )


def _took_long(span: Column, type_: Column, by_type: Mapping[str, int]) -> Column:
    """A type without a threshold of its own has that of `default`, if there is."""
    most_ms = F.lit(by_type.get(DEFAULT)).cast("bigint")
    for name, ms in by_type.items():
        if name != DEFAULT:
            most_ms = F.when(F.lower(type_) == name, F.lit(ms)).otherwise(most_ms)
    return type_.isNotNull() & F.coalesce(_latency(span) > most_ms, F.lit(False))


def _last(span: Column, key: str) -> Column:
    tags = F.filter(span["tags"], lambda tag: tag["key"] == key)
    return F.try_element_at(tags, F.lit(-1))["value"]


def _shows(text: Column) -> Column:
    return F.coalesce(text.rlike(r"\S"), F.lit(False))


def _latency(span: Column) -> Column:
    """Null of a span whose type only newer agents know: nothing is made of it."""
    known = span["spanType"].isin(SpanType.Entry, SpanType.Exit, SpanType.Local)
    return F.when(known, latency_ms(span["startTime"], span["endTime"]))
