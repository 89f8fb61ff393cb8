"""Who called whom: services, instances, endpoints, the relations between them, and addresses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from skyfarer.oap.core.entities import ADDRESS_ALIAS, ENDPOINT_META
from skyfarer.oap.core.layers import Layer
from skyfarer.testing.plain_analysis import logic, spans
from skyfarer.testing.plain_analysis.rows import Row, row
from skyfarer.testing.plain_analysis.rules import Rules
from skyfarer.wire.messages import (
    RefType,
    SegmentObject,
    SegmentReference,
    SpanLayer,
    SpanObject,
    SpanType,
)

USER: Final = "User"
_REMOTE: Final = {
    SpanLayer.Database: Layer.VIRTUAL_DATABASE,
    SpanLayer.RPCFramework: Layer.GENERAL,
    SpanLayer.Http: Layer.GENERAL,
    SpanLayer.MQ: Layer.VIRTUAL_MQ,
    SpanLayer.Cache: Layer.VIRTUAL_CACHE,
    SpanLayer.FAAS: Layer.FAAS,
    SpanLayer.GenAI: Layer.VIRTUAL_GENAI,
}


@dataclass(frozen=True)
class _Side:
    """One end of a call. Behind a queue or a gateway the endpoint belongs to another service, its
    `owner`."""

    service: str
    instance: str
    layer: Layer
    endpoint: str = ""
    owner: str | None = None

    def cut(self, rules: Rules) -> _Side:
        owner = None if self.owner is None else rules.service(self.owner)
        instance, endpoint = rules.instance(self.instance), rules.endpoint(self.endpoint)
        return _Side(rules.service(self.service), instance, self.layer, endpoint, owner)


def rows_of(segment: SegmentObject, span: SpanObject, rules: Rules) -> Iterator[Row]:
    if span.spanType == SpanType.Entry:
        if not span.skipAnalysis:
            yield from _entry(segment, span, rules)
            yield from logic.rows_of(segment, span, rules)
            yield from _aliases(segment, span, rules)
        return
    if span.spanType == SpanType.Exit and span.peer and not span.skipAnalysis:
        yield from _exit(segment, span, rules)
    if span.spanType == SpanType.Local:
        yield from logic.rows_of(segment, span, rules)
    if not span.skipAnalysis:
        yield from _other_threads(segment, span, rules)


def _entry(segment: SegmentObject, span: SpanObject, rules: Rules) -> Iterator[Row]:
    own = _own(segment, span, rules)
    for origin in _origins(span, rules):
        origin = origin.cut(rules)
        call = {**_call(span), **_taken(own)}
        service = {"service": own.service, "layer": own.layer}
        yield row("Service", span, **service, **call)
        yield row("ServiceInstance", span, **service, instance=own.instance, **call)
        yield from _relations(span, origin, own, "SERVER")
        if own.layer is not Layer.FAAS:
            yield row("Endpoint", span, **service, endpoint=own.endpoint, **call)
            yield from _endpoint_relation(span, origin, own, _call(span))


def _origins(span: SpanObject, rules: Rules) -> Iterator[_Side]:
    if span.refs:
        yield from (_referred(ref, span, rules) for ref in span.refs)
    elif span.spanLayer == SpanLayer.MQ and not spans.blank(span.peer):
        yield _Side(span.peer, span.peer, Layer.VIRTUAL_MQ)
    else:
        yield _Side(USER, USER, Layer.UNDEFINED, USER)


def _referred(ref: SegmentReference, span: SpanObject, rules: Rules) -> _Side:
    endpoint = ref.parentEndpoint or USER
    address = ref.networkAddressUsedAtPeer
    if span.spanLayer == SpanLayer.MQ:
        return _Side(address, address, Layer.VIRTUAL_MQ, endpoint, ref.parentService)
    if address in rules.gateways:
        return _Side(address, address, Layer.VIRTUAL_GATEWAY, endpoint, ref.parentService)
    return _Side(ref.parentService, ref.parentServiceInstance, Layer.GENERAL, endpoint)


def _own(segment: SegmentObject, span: SpanObject, rules: Rules) -> _Side:
    layer = Layer.FAAS if span.spanLayer == SpanLayer.FAAS else Layer.GENERAL
    own = _Side(segment.service, segment.serviceInstance, layer, span.operationName)
    return own.cut(rules)


def _exit(segment: SegmentObject, span: SpanObject, rules: Rules) -> Iterator[Row]:
    """An address is looked up as it stands in the span."""
    alias = rules.aliases.get(span.peer)
    if alias is None:
        dest = _Side(span.peer, span.peer, _remote_layer(span, rules))
    else:
        hidden = span.componentId in rules.no_upstream_components
        dest = _Side(alias[0], "" if hidden else alias[1], Layer.GENERAL)
    yield from _relations(span, _own(segment, span, rules), dest.cut(rules), "CLIENT")


def _remote_layer(span: SpanObject, rules: Rules) -> Layer:
    if span.spanLayer == SpanLayer.Http and span.peer in rules.gateways:
        return Layer.VIRTUAL_GATEWAY
    return _REMOTE.get(span.spanLayer, Layer.UNDEFINED)


def _relations(span: SpanObject, origin: _Side, dest: _Side, detected: str) -> Iterator[Row]:
    services = {
        "from_service": origin.service,
        "from_layer": origin.layer,
        "service": dest.service,
        "layer": dest.layer,
        "component": span.componentId,
        "detect_point": detected,
        **_call(span),
        "source_instance": origin.instance,
        "dest_instance": dest.instance,
        "dest_endpoint": dest.endpoint or None,
    }
    yield row("ServiceRelation", span, **services)
    if origin.instance and dest.instance:
        instances = {"from_instance": origin.instance, "instance": dest.instance}
        yield row("ServiceInstanceRelation", span, **services, **instances)


def _endpoint_relation(
    span: SpanObject, origin: _Side, dest: _Side, call: dict[str, Any]
) -> Iterator[Row]:
    if not (origin.endpoint and dest.endpoint):
        return
    owner, layer = _owner(origin)
    yield row(
        "EndpointRelation",
        span,
        from_service=owner,
        from_layer=layer,
        from_endpoint=origin.endpoint,
        service=dest.service,
        layer=dest.layer,
        endpoint=dest.endpoint,
        component=span.componentId,
        detect_point="SERVER",
        **call,
        source_instance=origin.instance,
        dest_instance=dest.instance,
    )


def _owner(origin: _Side) -> tuple[str, Layer]:
    if origin.owner is None:
        return origin.service, origin.layer
    return origin.owner, Layer.GENERAL


def _other_threads(segment: SegmentObject, span: SpanObject, rules: Rules) -> Iterator[Row]:
    """Exit and local spans with references: work handed over to another thread."""
    own = _own(segment, span, rules)
    call = {**_call(span), "type": None, "http_code": 0, "rpc_code": None}
    for ref in span.refs:
        origin = _referred(ref, span, rules).cut(rules)
        owner, layer = _owner(origin)
        yield row(ENDPOINT_META, span, service=owner, layer=layer, endpoint=origin.endpoint)
        service = {"service": own.service, "layer": own.layer, **_taken(own)}
        yield row("Endpoint", span, **service, endpoint=own.endpoint, **call)
        yield from _endpoint_relation(span, origin, own, call)


def _aliases(segment: SegmentObject, span: SpanObject, rules: Rules) -> Iterator[Row]:
    """The address by which a caller knew this instance stands for it from now on. A gateway's never
    does: neither one that is too long to be stored whole, nor one that another's is cut to, which
    the original lets pass."""
    if span.spanLayer == SpanLayer.MQ:
        return
    own = _own(segment, span, rules)
    named = {"service": own.service, "layer": Layer.GENERAL, "instance": own.instance}
    for ref in span.refs:
        told = ref.networkAddressUsedAtPeer
        address = rules.service(told)
        gateway = told in rules.gateways or address in rules.gateways
        if ref.refType == RefType.CrossProcess and not gateway:
            yield row(ADDRESS_ALIAS, span, **named, endpoint=address)


def _taken(own: _Side) -> dict[str, Any]:
    return {"dest_instance": own.instance, "dest_endpoint": own.endpoint}


def _call(span: SpanObject) -> dict[str, Any]:
    tags = spans.tag_map(span)
    return {
        "latency": spans.latency(span),
        "status": not span.isError,
        "http_code": spans.http_code(span),
        "rpc_code": tags.get("rpc.status_code"),
        "type": spans.request_type(span),
        "tag": tags,
        "tags": spans.tag_list(span),
    }
