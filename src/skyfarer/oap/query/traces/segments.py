"""A stored segment's spans, by the kind of its bytes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from google.protobuf.message import DecodeError

from skyfarer.oap.core.components import UNKNOWN
from skyfarer.oap.core.inventory import InventoryReader
from skyfarer.oap.core.traces import SegmentBrief, StoredSegment
from skyfarer.oap.query.mending import parsed
from skyfarer.oap.query.naming import part_name, service_name
from skyfarer.oap.query.traces import native, otlp, registered
from skyfarer.oap.query.traces.registered import Names, Owner
from skyfarer.oap.query.traces.span import LOCAL, Allowance, Span, name
from skyfarer.wire.messages import SegmentObject, otlp_trace, v2_trace
from skyfarer.wire.rpc import Kind

log = logging.getLogger(__name__)

WHY_TAG = "skyfarer.unreadable"


class Segments:
    """For one trace and one thread; blocks on the inventories."""

    def __init__(self, inventories: InventoryReader | None, allowance: Allowance) -> None:
        self._names = Names(inventories)
        self._allowance = allowance
        self._readers: dict[int, Callable[[StoredSegment, bytes], Iterable[Span]]] = {
            Kind.SEGMENT: self._native,
            Kind.V2_SEGMENT: self._registered,
            Kind.OTLP_TRACES: self._otlp,
        }

    def spans(self, stored: StoredSegment) -> list[Span]:
        """Never raises for what is in the bytes: then it is one span that says so."""
        if stored.data is None:
            return self._stand_in(stored.brief, "the trace is too large to be read whole")
        read = self._readers.get(stored.kind)
        if read is None:
            return self._stand_in(stored.brief, f"records of kind {stored.kind} are unknown")
        try:
            return list(read(stored, stored.data))
        except DecodeError as error:
            log.warning("segment %s cannot be decoded: %s", stored.brief.segment_id[:80], error)
            return self._stand_in(stored.brief, str(error))

    def _native(self, stored: StoredSegment, data: bytes) -> Iterable[Span]:
        return native.spans(parsed(SegmentObject, data), self._allowance)

    def _registered(self, stored: StoredSegment, data: bytes) -> Iterable[Span]:
        envelope = parsed(v2_trace.UpstreamSegment, data)
        segment = parsed(v2_trace.SegmentObject, envelope.segment)
        brief = stored.brief
        owner = Owner(
            name(brief.trace_id), service_name(brief.service_id), part_name(brief.instance_id)
        )
        return registered.spans(segment, owner, self._names, self._allowance)

    def _otlp(self, stored: StoredSegment, data: bytes) -> Iterable[Span]:
        return otlp.spans(parsed(otlp_trace.ResourceSpans, data), self._allowance)

    def _stand_in(self, brief: SegmentBrief, why: str) -> list[Span]:
        span = Span(
            trace_id=name(brief.trace_id),
            segment_id=name(brief.segment_id),
            span_id=0,
            parent_span_id=-1,
            service=service_name(brief.service_id),
            instance=part_name(brief.instance_id),
            start_ms=brief.start_time,
            end_ms=brief.start_time + brief.latency,
            operation=part_name(brief.endpoint_id),
            type=LOCAL,
            peer="",
            component=UNKNOWN,
            is_error=brief.is_error,
            layer=UNKNOWN,
            tags=((WHY_TAG, why),),
        )
        return list(self._allowance.spans([span]))
