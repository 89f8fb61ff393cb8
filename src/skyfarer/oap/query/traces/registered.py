"""Segments of the v2 protocol: what was registered is an id, and its name is in the inventories.

A name that the agent sent wins; an id that nobody knows is an empty name. Service and instance
have the names that the segment was stored under.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from skyfarer.oap.core.components import component_named
from skyfarer.oap.core.deadline import left_s
from skyfarer.oap.core.inventory import InventoryReader, InventoryScope
from skyfarer.oap.query import limits
from skyfarer.oap.query.traces.span import Allowance, Log, Ref, RefType, Span, label, name
from skyfarer.wire.messages import v2_trace as v2

ENDPOINT, ADDRESS = InventoryScope.ENDPOINT, InventoryScope.NETWORK_ADDRESS
_TYPES = {number: text for text, number in v2.SpanType.items()}
_LAYERS = {number: text for text, number in v2.SpanLayer.items()}


@dataclass(frozen=True)
class Owner:
    """What storage knows of a segment."""

    trace_id: str
    service: str
    instance: str


class Names:
    """Id → name, as far as the inventories go. For one trace and one thread; blocks on storage."""

    def __init__(self, inventories: InventoryReader | None) -> None:
        self._inventories = inventories
        self._known: dict[tuple[InventoryScope, int], str] = {}
        self._reads_left = limits.TRACE_LOOKUPS_MAX

    def learn(self, scope: InventoryScope, numbers: Iterable[int]) -> None:
        """Reads those that are new, all at once."""
        wanted = sorted({number for number in numbers if (scope, number) not in self._known} - {0})
        if self._inventories is None or not wanted or not self._reads_left:
            return
        left_s()  # there may be hundreds of them for one trace
        self._reads_left -= 1
        self._known |= {(scope, number): "" for number in wanted}
        for number, inventory in self._inventories.inventories_by_id(scope, wanted).items():
            self._known[scope, number] = inventory.name

    def of(self, scope: InventoryScope, number: int) -> str:
        return self._known.get((scope, number), "")


def spans(
    segment: v2.SegmentObject, owner: Owner, names: Names, allowance: Allowance
) -> Iterator[Span]:
    shown = list(allowance.spans(segment.spans))
    names.learn(ENDPOINT, (span.operationNameId for span in shown if not span.operationName))
    names.learn(ADDRESS, (span.peerId for span in shown if not span.peer))
    segment_id = name(_joined(segment.traceSegmentId))
    for span in shown:
        yield _span(segment_id, span, owner, names, allowance)


def _joined(unique: v2.UniqueId) -> str:
    return ".".join(map(str, unique.idParts))


def _span(
    segment_id: str, span: v2.SpanObjectV2, owner: Owner, names: Names, allowance: Allowance
) -> Span:
    return Span(
        trace_id=owner.trace_id,
        segment_id=segment_id,
        span_id=span.spanId,
        parent_span_id=span.parentSpanId,
        service=owner.service,
        instance=owner.instance,
        start_ms=span.startTime,
        end_ms=span.endTime,
        operation=name(span.operationName or names.of(ENDPOINT, span.operationNameId)),
        type=label(_TYPES, span.spanType),
        peer=name(span.peer or names.of(ADDRESS, span.peerId)),
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
        trace_id,
        name(_joined(ref.parentTraceSegmentId)),
        ref.parentSpanId,
        RefType.CROSS_THREAD if crosses_thread else RefType.CROSS_PROCESS,
    )
