"""Spans of databases and caches that took long: what they asked for, of whom.

A database tells its type, or it is never slow; a cache likewise, and whether it was read or
written. Of a tag that is there several times the last one holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from skyfarer.oap.core.slow import STATEMENT_CHARS_MAX, Slow

DATABASE: Final = 1
CACHE: Final = 5
DEFAULT: Final = "default"
_TYPE: Final = """array<struct<what:string,service:string,statement:string,latency:bigint,
    span_id:int,start_time:bigint>>"""


@dataclass(frozen=True)
class SlowSettings:
    """Milliseconds by type, in lower case, or by `default`; what takes longer than them is slow,
    and what has none never is."""

    database_ms: Mapping[str, int] = field(default_factory=dict)
    cache_read_ms: Mapping[str, int] = field(default_factory=dict)
    cache_write_ms: Mapping[str, int] = field(default_factory=dict)


def slow_spans(spans: Column, settings: SlowSettings, service_chars_max: int) -> Column:
    """One of each slow span. Nearly all are fast, and left out before their tags are read."""
    every = (settings.database_ms, settings.cache_read_ms, settings.cache_write_ms)
    fastest_ms = min((ms for one in every for ms in one.values()), default=None)
    if fastest_ms is None:
        return F.array().cast(_TYPE)

    def candidate(span: Column) -> Column:
        return span["spanLayer"].isin(DATABASE, CACHE) & (_latency(span) > fastest_ms)

    made = F.transform(F.filter(spans, candidate), lambda s: _slow(s, settings, service_chars_max))
    return F.filter(made, lambda one: one["what"].isNotNull())


def _slow(span: Column, settings: SlowSettings, service_chars_max: int) -> Column:
    asked, type_ = _last(span, "db.statement"), _last(span, "cache.type")
    command = F.concat_ws(" ", _last(span, "cache.cmd"), _last(span, "cache.key"))
    database = span["spanLayer"] == DATABASE
    peer = F.when(span["peer"].rlike(r"\S") | database, span["peer"])
    service = F.coalesce(peer, F.concat(type_, F.lit("-local")))
    return F.struct(
        _what(span, settings, asked, type_).alias("what"),
        F.substring(service, 1, service_chars_max).alias("service"),
        F.substring(F.when(database, asked).otherwise(command), 1, STATEMENT_CHARS_MAX).alias(
            "statement"
        ),
        _latency(span).alias("latency"),
        span["spanId"].alias("span_id"),
        span["startTime"].alias("start_time"),
    )


def _what(span: Column, settings: SlowSettings, asked: Column, type_: Column) -> Column:
    """The name of a `Slow`, or null."""
    operation, cache = _last(span, "cache.op"), span["spanLayer"] == CACHE
    cache = cache & type_.rlike(r"\S")
    query = (span["spanLayer"] == DATABASE) & asked.rlike(r"\S")
    slow_query = _latency(span) > _threshold_ms(_last(span, "db.type"), settings.database_ms)
    slow_read = _latency(span) > _threshold_ms(type_, settings.cache_read_ms)
    slow_write = _latency(span) > _threshold_ms(type_, settings.cache_write_ms)
    return (
        F.when(query & slow_query, Slow.DATABASE.name)
        .when(cache & (operation == "read") & slow_read, Slow.CACHE_READ.name)
        .when(cache & (operation == "write") & slow_write, Slow.CACHE_WRITE.name)
    )


def _threshold_ms(type_: Column, by_type: Mapping[str, int]) -> Column:
    found = F.when(type_.isNotNull(), F.lit(by_type.get(DEFAULT)).cast("long"))
    for name, ms in by_type.items():
        if name != DEFAULT:
            found = F.when(F.lower(type_) == name, F.lit(ms)).otherwise(found)
    return found


def _latency(span: Column) -> Column:
    """Null beyond 64 bits: a span with such times is parked, and must not stop the batch here."""
    return F.try_subtract(span["endTime"], span["startTime"])


def _last(span: Column, key: str) -> Column:
    these = F.filter(span["tags"], lambda tag: tag["key"] == key)
    return F.try_element_at(these, F.lit(-1))["value"]
