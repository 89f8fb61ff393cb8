"""Segments of the v2 protocol: what was registered is an id, and its name is in the inventories.

A name that the agent sent wins; an id that nobody knows any more is an empty name. Service and
instance were named when the segment was stored, so an unknown one keeps that name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from skyfarer.oap.core.components import component_named
from skyfarer.oap.core.inventory import InventoryReader, InventoryScope
from skyfarer.oap.query.traces.span import Allowance, Log, Ref, RefType, Span, label, name
from skyfarer.wire.messages import v2_trace as v2

_TYPES = {number: text for text, number in v2.SpanType.items()}
_LAYERS = {number: text for text, number in v2.SpanLayer.items()}


@dataclass(frozen=True)
class Owner:
    """What storage knows of a segment."""

    trace_id: str
    service: str
    instance: str


class Names:
    """Id → name, as far as the inventories go: one read a scope and segment. Any thread."""

    def __init__(self, inventories: InventoryReader | None) -> None:
        self._inventories = inventories

    def of(self, scope: InventoryScope, ids: Iterable[int]) -> Mapping[int, str]:
        wanted = sorted(set(ids) - {0})
        if self._inventories is None or not wanted:
            return {}
        found = self._inventories.inventories_by_id(scope, wanted)
        return {number: inventory.name for number, inventory in found.items()}


@dataclass(frozen=True)
class _Known:
    """The names of one segment's ids."""

    service: str
    instance: str
    operations: Mapping[int, str]
    peers: Mapping[int, str]


def spans(
    segment: v2.SegmentObject, owner: Owner, names: Names, allowance: Allowance
) -> Iterator[Span]:
    shown = list(allowance.spans(segment.spans))
    known = _known(segment, shown, owner, names)
    for span in shown:
        yield _span(segment, span, owner, known, allowance)


def joined(parts: v2.UniqueId) -> str:
    return ".".join(map(str, parts.idParts))


def _known(
    segment: v2.SegmentObject, shown: list[v2.SpanObjectV2], owner: Owner, names: Names
) -> _Known:
    services = names.of(InventoryScope.SERVICE, [segment.serviceId])
    instances = names.of(InventoryScope.SERVICE_INSTANCE, [segment.serviceInstanceId])
    return _Known(
        service=services.get(segment.serviceId, owner.service),
        instance=instances.get(segment.serviceInstanceId, owner.instance),
        operations=names.of(
            InventoryScope.ENDPOINT,
            [span.operationNameId for span in shown if not span.operationName],
        ),
        peers=names.of(
            InventoryScope.NETWORK_ADDRESS, [span.peerId for span in shown if not span.peer]
        ),
    )


def _span(
    segment: v2.SegmentObject,
    span: v2.SpanObjectV2,
    owner: Owner,
    known: _Known,
    allowance: Allowance,
) -> Span:
    return Span(
        trace_id=name(owner.trace_id),
        segment_id=name(joined(segment.traceSegmentId)),
        span_id=span.spanId,
        parent_span_id=span.parentSpanId,
        service=name(known.service),
        instance=name(known.instance),
        start_ms=span.startTime,
        end_ms=span.endTime,
        operation=name(span.operationName or known.operations.get(span.operationNameId, "")),
        type=label(_TYPES, span.spanType),
        peer=name(span.peer or known.peers.get(span.peerId, "")),
        component=name(span.component) or component_named(span.componentId),
        is_error=span.isError,
        layer=label(_LAYERS, span.spanLayer),
        refs=tuple(_ref(ref, owner.trace_id) for ref in allowance.entries(span.refs)),
        tags=allowance.pairs(span.tags),
        logs=tuple(
            Log(log.time, allowance.pairs(log.data)) for log in allowance.entries(span.logs)
        ),
    )


def _ref(ref: v2.SegmentReference, trace_id: str) -> Ref:
    crosses_thread = ref.refType == v2.RefType.CrossThread
    return Ref(
        name(trace_id),
        name(joined(ref.parentTraceSegmentId)),
        ref.parentSpanId,
        RefType.CROSS_THREAD if crosses_thread else RefType.CROSS_PROCESS,
    )
