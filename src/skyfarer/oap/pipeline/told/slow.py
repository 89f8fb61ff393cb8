"""Spans of databases and caches that took too long.

A database tells its type, or it is never slow; a cache likewise, and whether it was read or
written. Of a tag that is there several times the last one holds. Nearly all spans are fast: no tag
is read of one that is below every threshold of its layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.ids import SHOWS
from skyfarer.oap.core.slow import STATEMENT_CHARS_MAX, Slow
from skyfarer.oap.pipeline.analysis.settings import SlowSettings
from skyfarer.oap.pipeline.told.form import SLOW
from skyfarer.oap.pipeline.told.lists import (
    Mask,
    Places,
    bounds_of,
    cut,
    last_of,
    listed,
    mask_of,
    owners_of,
)
from skyfarer.wire.messages import SpanLayer, SpanType

LATENCY_MS_MAX: Final = 2**31 - 1
"""What took longer took that long."""
DEFAULT: Final = "default"
_KNOWN: Final = (SpanType.Entry, SpanType.Exit, SpanType.Local)
"""Of a span whose type only newer agents know nothing is made."""


def slow_spans(spans: pa.StructArray, bounds: Places, settings: SlowSettings) -> pa.ListArray:
    """Of each list its slow ones: what they are, and whom they asked for what."""
    starts, ends = (spans.field(name).to_numpy() for name in ("startTime", "endTime"))
    latency = np.minimum(ends - starts, LATENCY_MS_MAX)
    places = _candidates(spans, latency, settings)
    if not len(places):
        return listed(pa.array([], pa.struct(SLOW)), places, len(bounds) - 1)
    judged = _judged(spans.take(pa.array(places)), latency[places], settings)
    slow = pc.is_valid(judged.field("what"))
    owners = owners_of(places, bounds)[mask_of(slow)]
    return listed(judged.filter(slow), owners, len(bounds) - 1)


def _candidates(spans: pa.StructArray, latency: Places, settings: SlowSettings) -> Places:
    layers, found = spans.field("spanLayer").to_numpy(), np.zeros(len(spans), dtype=bool)
    of_caches = (*settings.cache_read_ms.values(), *settings.cache_write_ms.values())
    lowest_ms = {SpanLayer.Database: settings.database_ms.values(), SpanLayer.Cache: of_caches}
    for layer, thresholds_ms in lowest_ms.items():
        if thresholds_ms:
            found |= (layers == layer) & (latency > min(thresholds_ms))
    places = np.flatnonzero(found)
    return places[np.isin(spans.field("spanType").to_numpy()[places], _KNOWN)]


def _judged(spans: pa.StructArray, latency: Places, settings: SlowSettings) -> pa.StructArray:
    """`what` is null for one that is not slow."""
    asked = _Asked(spans.field("tags"))
    database = spans.field("spanLayer").to_numpy() == SpanLayer.Database
    query, of_cache, operation = map(asked.last, ("db.statement", "cache.type", "cache.op"))
    words = asked.last("cache.cmd"), asked.last("cache.key")
    command = pc.coalesce(pc.binary_join_element_wise(*words, " "), *words, pa.scalar(""))
    long_query = _took_long(latency, asked.last("db.type"), settings.database_ms)
    of_caches = ~database & _shows(of_cache)
    conditions = {
        Slow.DATABASE: database & long_query & _shows(query),
        Slow.CACHE_READ: of_caches
        & _took_long(latency, of_cache, settings.cache_read_ms)
        & mask_of(pc.equal(operation, "read")),
        Slow.CACHE_WRITE: of_caches
        & _took_long(latency, of_cache, settings.cache_write_ms)
        & mask_of(pc.equal(operation, "write")),
    }
    what = pa.nulls(len(spans), pa.string())
    for one, holds in conditions.items():
        what = pc.if_else(pa.array(holds), one.name, what)
    peer, local = spans.field("peer"), pc.binary_join_element_wise(of_cache, "local", "-")
    told = {
        "span_id": spans.field("spanId"),
        "what": what,
        "service": pc.if_else(pa.array(database | _shows(peer)), peer, local),
        "statement": cut(pc.if_else(pa.array(database), query, command), STATEMENT_CHARS_MAX),
        "latency": pa.array(latency),
        "start_time": spans.field("startTime"),
    }
    return pa.StructArray.from_arrays([told[one.name] for one in SLOW], fields=list(SLOW))


class _Asked:
    """Tags of spans, by their names."""

    def __init__(self, tags: pa.ListArray) -> None:
        self._bounds = bounds_of(tags)
        self._keys, self._values = (tags.values.field(name) for name in ("key", "value"))

    def last(self, key: str) -> pa.StringArray:
        """Null where there is none."""
        return self._values.take(last_of(mask_of(pc.equal(self._keys, key)), self._bounds))


def _took_long(latency: Places, types: pa.StringArray, by_type: Mapping[str, int]) -> Mask:
    """A type without a threshold of its own has that of `default`, if there is."""
    most_ms = pa.repeat(pa.scalar(by_type.get(DEFAULT), pa.int64()), len(types))
    names = pc.utf8_lower(types)
    for name, ms in by_type.items():
        if name != DEFAULT:
            most_ms = pc.if_else(pc.fill_null(pc.equal(names, name), False), ms, most_ms)
    return mask_of(pc.and_(pc.is_valid(types), pc.greater(pa.array(latency), most_ms)))


def _shows(texts: pa.StringArray) -> Mask:
    return mask_of(pc.match_substring_regex(texts, SHOWS))
