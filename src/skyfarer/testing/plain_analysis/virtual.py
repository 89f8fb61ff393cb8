"""Databases, caches, queues and models, which no agent sits in: they are known by their users.

`skipAnalysis` and `traceAnalysis` are not asked here, as in the original.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final, TypeVar

from skyfarer.oap.core.entities import ENDPOINT_META, SERVICE_META
from skyfarer.oap.core.layers import Layer
from skyfarer.testing.plain_analysis import spans
from skyfarer.testing.plain_analysis.rows import Row, row
from skyfarer.testing.plain_analysis.rules import Rules
from skyfarer.wire.messages import SegmentObject, SpanLayer, SpanObject, SpanType

_CACHE_OPERATIONS: Final = {"read": "Read", "write": "Write"}
T = TypeVar("T")
_MQ_OPERATIONS: Final = {SpanType.Entry: "Consume", SpanType.Exit: "Produce"}


def rows_of(_: SegmentObject, span: SpanObject, rules: Rules) -> Iterator[Row]:
    if span.spanLayer == SpanLayer.Database:
        yield from _database(span, rules)
    elif span.spanLayer == SpanLayer.Cache:
        yield from _cache(span, rules)
    elif span.spanLayer == SpanLayer.MQ:
        yield from _queue(span, rules)
    elif span.spanLayer == SpanLayer.GenAI:
        yield from _model(span, rules)


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


def _model(span: SpanObject, rules: Rules) -> Iterator[Row]:
    """Here the first of a repeated tag counts. A model is no instance that calls are counted of, as
    it is in the original, where each of them has failed at once."""
    tags = {tag.key: tag.value for tag in reversed(span.tags)}
    model, provider = (tags.get(f"gen_ai.{key}", "") for key in ("response.model", "provider.name"))
    if spans.blank(model):
        return
    if spans.blank(provider):
        provider = _longest(model, rules.providers) or "unknown"
    tokens = [
        spans.java_number(tags.get(f"gen_ai.usage.{end}_tokens", ""), 64) or 0
        for end in ("input", "output")
    ]
    named = {"service": rules.service(provider), "layer": Layer.VIRTUAL_GENAI}
    access = {
        **_access(span),
        "input_tokens": tokens[0],
        "output_tokens": tokens[1],
        "cost": _cost(tokens, _longest(model, rules.prices) or (0.0, 0.0)),
    }
    first = spans.java_number(tags.get("gen_ai.server.time_to_first_token", ""), 32) or 0
    timed = {**named, **access, "first_token": first}
    yield row("GenAIProviderAccess", span, **timed)
    yield row("GenAIModelAccess", span, **timed, instance=rules.instance(model))


def _longest(text: str, table: Mapping[str, T]) -> T | None:
    prefixes = [prefix for prefix in table if text.startswith(prefix)]
    return table[max(prefixes, key=len)] if prefixes else None


def _cost(tokens: list[int], prices: tuple[float, float]) -> int:
    """Rounded half up, to what 64 bits hold and a double is."""
    cost = sum(number * price for number, price in zip(tokens, prices, strict=True))
    return max(-(2**63), min(2**63 - 1024, math.floor(cost + 0.5)))


def _access(span: SpanObject) -> dict[str, object]:
    return {"latency": spans.latency(span), "status": not span.isError}
