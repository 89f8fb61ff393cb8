"""OpenTelemetry's spans: each is a segment of its own, with ids made of the span alone.

segment id   <trace id>.<span id>, in hex
span id      0
reference    to the parent's segment, when there is a parent
tags         attributes, and the status' message as otel.status_description
logs         events: `event` is the name, then the attributes
component    the instrumentation's name
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from skyfarer.oap.core.components import UNKNOWN
from skyfarer.oap.query.traces.span import (
    ENTRY,
    EXIT,
    LOCAL,
    Allowance,
    Log,
    Ref,
    RefType,
    Span,
    name,
    text,
)
from skyfarer.wire.messages import otlp_trace as otlp

UNKNOWN_SERVICE = "unknown_service"
NANOS_OF_MS = 1_000_000
_TYPES = {
    otlp.Span.SPAN_KIND_SERVER: ENTRY,
    otlp.Span.SPAN_KIND_CONSUMER: ENTRY,
    otlp.Span.SPAN_KIND_CLIENT: EXIT,
    otlp.Span.SPAN_KIND_PRODUCER: EXIT,
}
_LAYERS = {"db.system": "Database", "messaging.system": "MQ", "rpc.system": "RPCFramework"}
_NAMING = frozenset(
    {
        *_LAYERS,
        *("service.name", "service.instance.id", "host.name"),
        *("server.address", "server.port", "net.peer.name", "net.peer.port", "peer.service"),
    }
)


def spans(whole: otlp.ResourceSpans, allowance: Allowance) -> Iterator[Span]:
    resource = _telling(whole.resource.attributes)
    for scope in whole.scope_spans:
        component = name(scope.scope.name) or UNKNOWN
        for span in allowance.spans(scope.spans):
            yield _span(span, resource, component, allowance)


def _span(
    span: otlp.Span, resource: Mapping[str, str], component: str, allowance: Allowance
) -> Span:
    service = resource.get("service.name") or UNKNOWN_SERVICE
    host = resource.get("host.name") or service
    telling, kind = _telling(span.attributes), _TYPES.get(span.kind, LOCAL)
    return Span(
        trace_id=name(span.trace_id.hex()),
        segment_id=_segment_id(span.trace_id, span.span_id),
        span_id=0,
        parent_span_id=-1,
        service=name(service),
        instance=name(resource.get("service.instance.id") or host),
        start_ms=span.start_time_unix_nano // NANOS_OF_MS,
        end_ms=span.end_time_unix_nano // NANOS_OF_MS,
        operation=name(span.name),
        type=kind,
        peer=name(_peer(telling)) if kind == EXIT else "",
        component=component,
        is_error=span.status.code == otlp.Status.STATUS_CODE_ERROR,
        layer=_layer(span, telling),
        refs=_refs(span, kind),
        tags=_tags(span, allowance),
        logs=tuple(_log(event, allowance) for event in allowance.entries(span.events)),
    )


def _segment_id(trace_id: bytes, span_id: bytes) -> str:
    return name(f"{trace_id.hex()}.{span_id.hex()}")


def _refs(span: otlp.Span, kind: str) -> tuple[Ref, ...]:
    if not any(span.parent_span_id):
        return ()
    parent = _segment_id(span.trace_id, span.parent_span_id)
    crossing = RefType.CROSS_PROCESS if kind == ENTRY else RefType.CROSS_THREAD
    return (Ref(name(span.trace_id.hex()), parent, 0, crossing),)


def _layer(span: otlp.Span, telling: Mapping[str, str]) -> str:
    """By what the span says of itself; a database or a queue may be spoken to by HTTP."""
    for key, layer in _LAYERS.items():
        if telling.get(key):
            return layer
    return "Http" if any(one.key.startswith("http.") for one in span.attributes) else UNKNOWN


def _peer(telling: Mapping[str, str]) -> str:
    host = telling.get("server.address") or telling.get("net.peer.name")
    if not host:
        return telling.get("peer.service", "")
    port = telling.get("server.port") or telling.get("net.peer.port")
    return f"{host}:{port}" if port else host


def _tags(span: otlp.Span, allowance: Allowance) -> tuple[tuple[str, str], ...]:
    tags = pairs(span.attributes, allowance)
    if span.status.message:
        tags += (("otel.status_description", text(span.status.message)),)
    return tags


def _log(event: otlp.Span.Event, allowance: Allowance) -> Log:
    data = (("event", text(event.name)), *pairs(event.attributes, allowance))
    return Log(event.time_unix_nano // NANOS_OF_MS, data)


def pairs(attributes: Iterable[otlp.KeyValue], allowance: Allowance) -> tuple[tuple[str, str], ...]:
    return tuple((name(one.key), text(shown(one.value))) for one in allowance.entries(attributes))


def _telling(attributes: Iterable[otlp.KeyValue]) -> dict[str, str]:
    """The attributes that names and layers are made of; the first of a key counts."""
    found: dict[str, str] = {}
    for one in attributes:
        if one.key in _NAMING:
            found.setdefault(one.key, shown(one.value))
    return found


def shown(value: otlp.AnyValue) -> str:
    plain = _plain(value)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _plain(value: otlp.AnyValue) -> object:
    """What JSON has for it; bytes in hex. As deep as protobuf lets a message be."""
    match value.WhichOneof("value"):
        case None:
            return ""
        case "array_value":
            return [_plain(one) for one in value.array_value.values]
        case "kvlist_value":
            return {one.key: _plain(one.value) for one in value.kvlist_value.values}
        case "bytes_value":
            return value.bytes_value.hex()
        case other:
            plain: object = getattr(value, other)
            return plain
