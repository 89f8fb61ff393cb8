"""Databases, caches and queues, which no agent sits in: they are known by those that use them.

`skipAnalysis` and `traceAnalysis` are not asked here, as in the original.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from skyfarer.oap.core.entities import ENDPOINT_META, SERVICE_META
from skyfarer.oap.core.layers import Layer
from skyfarer.testing.plain_analysis import spans
from skyfarer.testing.plain_analysis.rows import Row, row
from skyfarer.testing.plain_analysis.rules import Rules
from skyfarer.wire.messages import SegmentObject, SpanLayer, SpanObject, SpanType

_CACHE_OPERATIONS: Final = {"read": "Read", "write": "Write"}
_MQ_OPERATIONS: Final = {SpanType.Entry: "Consume", SpanType.Exit: "Produce"}


def rows_of(_: SegmentObject, span: SpanObject, rules: Rules) -> Iterator[Row]:
    if span.spanLayer == SpanLayer.Database:
        yield from _database(span, rules)
    elif span.spanLayer == SpanLayer.Cache:
        yield from _cache(span, rules)
    elif span.spanLayer == SpanLayer.MQ:
        yield from _queue(span, rules)


def _database(span: SpanObject, rules: Rules) -> Iterator[Row]:
    named = {"service": rules.service(span.peer), "layer": Layer.VIRTUAL_DATABASE}
    yield row(SERVICE_META, span, **named)
    yield row("DatabaseAccess", span, **named, **_access(span))


def _cache(span: SpanObject, rules: Rules) -> Iterator[Row]:
    """A tag that is there twice stops the original; here its last value counts."""
    tags = spans.tag_map(span)
    kind = tags.get("cache.type", "")
    if spans.blank(kind):
        return
    name = f"{kind}-local" if spans.blank(span.peer) else span.peer
    named = {"service": rules.service(name), "layer": Layer.VIRTUAL_CACHE}
    operation = _CACHE_OPERATIONS.get(tags.get("cache.op", ""), "Others")
    yield row(SERVICE_META, span, **named)
    yield row("CacheAccess", span, **named, **_access(span), operation=operation)


def _queue(span: SpanObject, rules: Rules) -> Iterator[Row]:
    """A transmission latency that is no number stops the original; here it is 0."""
    operation = _MQ_OPERATIONS.get(span.spanType)
    peer = _broker(span)
    if operation is None or spans.blank(peer):
        return
    tags = spans.tag_map(span)
    named = {"service": rules.service(peer), "layer": Layer.VIRTUAL_MQ}
    access = {
        **_access(span),
        "operation": operation,
        "transmission_latency": spans.java_number(tags.get("transmission.latency", ""), 64) or 0,
    }
    yield row(SERVICE_META, span, **named)
    yield row("MQAccess", span, **named, **access)
    parts = [tags.get(key, "") for key in ("mq.topic", "mq.queue")]
    if endpoint := rules.endpoint("/".join(part for part in parts if not spans.blank(part))):
        yield row(ENDPOINT_META, span, **named, endpoint=endpoint)
        yield row("MQEndpointAccess", span, **named, **access, endpoint=endpoint)


def _broker(span: SpanObject) -> str:
    """A consumer knows it from its first message, if at all."""
    if span.spanType == SpanType.Entry and span.refs:
        address = span.refs[0].networkAddressUsedAtPeer
        return span.peer if spans.blank(address) else address
    return span.peer


def _access(span: SpanObject) -> dict[str, object]:
    return {"latency": spans.latency(span), "status": not span.isError}
