"""SkyWalking's own segments, version 3: every name is in them."""

from __future__ import annotations

from collections.abc import Iterator

from skyfarer.oap.core.components import component_named
from skyfarer.oap.query.traces.span import Allowance, Log, Ref, RefType, Span, label, name
from skyfarer.wire.messages import (
    RefType as WireRefType,
)
from skyfarer.wire.messages import (
    SegmentObject,
    SegmentReference,
    SpanLayer,
    SpanObject,
    SpanType,
)

_TYPES = {number: text for text, number in SpanType.items()}
_LAYERS = {number: text for text, number in SpanLayer.items()}


def spans(segment: SegmentObject, allowance: Allowance) -> Iterator[Span]:
    for span in allowance.spans(segment.spans):
        yield _span(segment, span, allowance)


def _span(segment: SegmentObject, span: SpanObject, allowance: Allowance) -> Span:
    return Span(
        trace_id=name(segment.traceId),
        segment_id=name(segment.traceSegmentId),
        span_id=span.spanId,
        parent_span_id=span.parentSpanId,
        service=name(segment.service),
        instance=name(segment.serviceInstance),
        start_ms=span.startTime,
        end_ms=span.endTime,
        operation=name(span.operationName),
        type=label(_TYPES, span.spanType),
        peer=name(span.peer),
        component=component_named(span.componentId),
        is_error=span.isError,
        layer=label(_LAYERS, span.spanLayer),
        refs=tuple(_ref(ref) for ref in allowance.entries(span.refs)),
        tags=allowance.pairs(span.tags),
        logs=tuple(
            Log(log.time, allowance.pairs(log.data)) for log in allowance.entries(span.logs)
        ),
    )


def _ref(ref: SegmentReference) -> Ref:
    crosses_thread = ref.refType == WireRefType.CrossThread
    return Ref(
        name(ref.traceId),
        name(ref.parentTraceSegmentId),
        ref.parentSpanId,
        RefType.CROSS_THREAD if crosses_thread else RefType.CROSS_PROCESS,
    )
