"""Segments as agents send them: children first, the root span (spanId 0) last in `spans`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from skyfarer.wire.messages import (
    KeyStringValuePair,
    Log,
    SegmentObject,
    SegmentReference,
    SpanObject,
)

# Component ids of SkyWalking's component library.
HTTP_CLIENT = 2
TOMCAT = 1
POSTGRESQL = 22
REDIS = 7
KAFKA_PRODUCER = 40
KAFKA_CONSUMER = 41

_numbers = count(1)


@dataclass(frozen=True)
class Exit:
    """A call a segment makes; `offset_ms` counts from the start of its root span."""

    operation: str
    peer: str
    offset_ms: int
    latency_ms: int
    layer: str = "Http"
    component: int = HTTP_CLIENT
    error: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Caller:
    """The exit span a segment answers to; it becomes the root span's reference."""

    trace_id: str
    segment_id: str
    span_id: int
    service: str
    instance: str
    endpoint: str
    address: str


def segment(
    service: str,
    instance: str,
    endpoint: str,
    start_ms: int,
    latency_ms: int,
    error: bool = False,
    *,
    trace_id: str = "",
    segment_id: str = "",
    callers: Sequence[Caller] = (),
    exits: Sequence[Exit] = (),
    layer: str = "Http",
    component: int = TOMCAT,
    tags: Mapping[str, str] | None = None,
) -> SegmentObject:
    """One segment with an entry span over all of it and an exit span for each of `exits`.

    Ids left empty are numbered in the order of the calls, which is enough to be unique in a run.
    """
    number = next(_numbers)
    root = SpanObject(
        spanId=0,
        parentSpanId=-1,
        startTime=start_ms,
        endTime=start_ms + latency_ms,
        refs=[_reference(caller) for caller in callers],
        operationName=endpoint,
        spanType="Entry",
        spanLayer=layer,
        componentId=component,
        isError=error,
        tags=_pairs(tags if tags is not None else _http_tags(endpoint, error)),
        logs=_error_logs(endpoint, start_ms + latency_ms) if error else (),
    )
    spans = [_exit_span(n, one, start_ms) for n, one in enumerate(exits, start=1)]
    return SegmentObject(
        traceId=trace_id or f"{number:032x}.1.{start_ms}0000",
        traceSegmentId=segment_id or f"{number:032x}.1.{start_ms}0001",
        spans=[*spans, root],
        service=service,
        serviceInstance=instance,
    )


def caller(parent: SegmentObject, span_id: int) -> Caller:
    """What the called service is told of the exit span `span_id` of `parent`."""
    span = next(span for span in parent.spans if span.spanId == span_id)
    return Caller(
        trace_id=parent.traceId,
        segment_id=parent.traceSegmentId,
        span_id=span_id,
        service=parent.service,
        instance=parent.serviceInstance,
        endpoint=parent.spans[-1].operationName,
        address=span.peer,
    )


def database(peer: str, statement: str, offset_ms: int, latency_ms: int) -> Exit:
    tags = {"db.type": "PostgreSQL", "db.instance": "shop", "db.statement": statement}
    return Exit(
        "PostgreSQL/JDBC/execute", peer, offset_ms, latency_ms, "Database", POSTGRESQL, tags=tags
    )


def cache(peer: str, command: str, key: str, offset_ms: int, latency_ms: int) -> Exit:
    operation = "read" if command in ("GET", "MGET", "HGET") else "write"
    tags = {
        "cache.type": "Redis",
        "cache.op": operation,
        "cache.cmd": command,
        "cache.key": key,
    }
    return Exit(f"Redis/{command}", peer, offset_ms, latency_ms, "Cache", REDIS, tags=tags)


def produce(brokers: str, topic: str, offset_ms: int, latency_ms: int) -> Exit:
    tags = {"mq.broker": brokers, "mq.topic": topic}
    return Exit(
        f"Kafka/{topic}/Producer", brokers, offset_ms, latency_ms, "MQ", KAFKA_PRODUCER, tags=tags
    )


def _exit_span(span_id: int, one: Exit, root_start_ms: int) -> SpanObject:
    start = root_start_ms + one.offset_ms
    return SpanObject(
        spanId=span_id,
        parentSpanId=0,
        startTime=start,
        endTime=start + one.latency_ms,
        operationName=one.operation,
        peer=one.peer,
        spanType="Exit",
        spanLayer=one.layer,
        componentId=one.component,
        isError=one.error,
        tags=_pairs(one.tags),
    )


def _reference(caller: Caller) -> SegmentReference:
    return SegmentReference(
        refType="CrossProcess",
        traceId=caller.trace_id,
        parentTraceSegmentId=caller.segment_id,
        parentSpanId=caller.span_id,
        parentService=caller.service,
        parentServiceInstance=caller.instance,
        parentEndpoint=caller.endpoint,
        networkAddressUsedAtPeer=caller.address,
    )


def _http_tags(endpoint: str, error: bool) -> dict[str, str]:
    method, _, path = endpoint.partition(":")
    return {
        "http.method": method,
        "url": f"http://shop.example{path}",
        "http.status_code": "500" if error else "200",
    }


def _error_logs(endpoint: str, at_ms: int) -> list[Log]:
    data = {
        "event": "error",
        "error.kind": "RuntimeError",
        "message": f"{endpoint} failed",
        "stack": f"RuntimeError: {endpoint} failed\n  at handle",
    }
    return [Log(time=at_ms, data=_pairs(data))]


def _pairs(values: Mapping[str, str]) -> Iterable[KeyStringValuePair]:
    return [KeyStringValuePair(key=key, value=value) for key, value in values.items()]
