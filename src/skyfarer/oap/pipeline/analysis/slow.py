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
_KEYS: Final = {
    "db.type": "db_type",
    "db.statement": "asked",
    "cache.type": "cache_type",
    "cache.op": "operation",
    "cache.cmd": "command",
    "cache.key": "key",
}
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
    """One of each slow span. Nearly all are fast, and left out before their tags are read.

    What a lambda uses twice is written into its expression twice, and every batch pays for the
    size of that: so it goes step by step, each of which names what the next one uses.
    """
    every = (settings.database_ms, settings.cache_read_ms, settings.cache_write_ms)
    fastest_ms = min((ms for one in every for ms in one.values()), default=None)
    if fastest_ms is None:
        return F.array().cast(_TYPE)

    def candidate(span: Column) -> Column:
        return span["spanLayer"].isin(DATABASE, CACHE) & (_latency(span) > fastest_ms)

    tagged = F.transform(F.filter(spans, candidate), _tagged)
    read = F.transform(tagged, _read)
    made = F.transform(read, lambda one: _named(one, settings, service_chars_max))
    return F.filter(made, lambda one: one["what"].isNotNull())


def _tagged(span: Column) -> Column:
    """With the tags that are wanted, the last first."""
    wanted = F.filter(span["tags"], lambda tag: tag["key"].isin(*_KEYS))
    return F.struct(span.alias("span"), F.reverse(wanted).alias("tags"))


def _read(tagged: Column) -> Column:
    span, tags = tagged["span"], tagged["tags"]
    values = {
        name: F.get(tags, (F.array_position(tags["key"], key) - 1).cast("int"))["value"]
        for key, name in _KEYS.items()
    }
    return F.struct(
        span.alias("span"),
        _latency(span).alias("latency"),
        F.lower(values["db_type"]).alias("db_type"),
        F.lower(values["cache_type"]).alias("cache_type_lower"),
        *(values[name].alias(name) for name in ("cache_type", "asked", "operation")),
        F.concat_ws(" ", values["command"], values["key"]).alias("command"),
    )


def _named(read: Column, settings: SlowSettings, service_chars_max: int) -> Column:
    span = read["span"]
    database = span["spanLayer"] == DATABASE
    peer = F.when(span["peer"].rlike(r"\S") | database, span["peer"])
    service = F.coalesce(peer, F.concat(read["cache_type"], F.lit("-local")))
    statement = F.when(database, read["asked"]).otherwise(read["command"])
    return F.struct(
        _what(read, settings).alias("what"),
        F.substring(service, 1, service_chars_max).alias("service"),
        F.substring(statement, 1, STATEMENT_CHARS_MAX).alias("statement"),
        read["latency"].alias("latency"),
        span["spanId"].alias("span_id"),
        span["startTime"].alias("start_time"),
    )


def _what(read: Column, settings: SlowSettings) -> Column:
    """The name of a `Slow`, or null."""
    layer = read["span"]["spanLayer"]
    query = (layer == DATABASE) & read["asked"].rlike(r"\S")
    cache = (layer == CACHE) & read["cache_type"].rlike(r"\S")

    def slow(type_: str, by_type: Mapping[str, int]) -> Column:
        return read["latency"] > _threshold_ms(read[type_], by_type)

    reads, writes = settings.cache_read_ms, settings.cache_write_ms
    was_read, was_written = (cache & (read["operation"] == one) for one in ("read", "write"))
    return (
        F.when(query & slow("db_type", settings.database_ms), Slow.DATABASE.name)
        .when(was_read & slow("cache_type_lower", reads), Slow.CACHE_READ.name)
        .when(was_written & slow("cache_type_lower", writes), Slow.CACHE_WRITE.name)
    )


def _threshold_ms(type_: Column, by_type: Mapping[str, int]) -> Column:
    found = F.when(type_.isNotNull(), F.lit(by_type.get(DEFAULT)).cast("long"))
    for name, ms in by_type.items():
        if name != DEFAULT:
            found = F.when(type_ == name, F.lit(ms)).otherwise(found)
    return found


def _latency(span: Column) -> Column:
    """Null beyond 64 bits: a span with such times is parked, and must not stop the batch here."""
    return F.try_subtract(span["endTime"], span["startTime"])
