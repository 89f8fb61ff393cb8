"""The root fields about traces, from the protocol's arguments to its shapes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from skyfarer.oap.core.inventory import InventoryReader
from skyfarer.oap.core.traces import SegmentBrief, TraceCondition, TraceOrder, TraceReader
from skyfarer.oap.query import conditions, limits
from skyfarer.oap.query.durations import Duration
from skyfarer.oap.query.errors import QueryError
from skyfarer.oap.query.naming import part_name
from skyfarer.oap.query.traces.segments import Segments
from skyfarer.oap.query.traces.span import Allowance, View, whole
from skyfarer.oap.query.traces.tree import in_tree_order
from skyfarer.oap.query.traces.wholes import WholeTraces

log = logging.getLogger(__name__)

_STATES: Mapping[str, bool | None] = {"ALL": None, "SUCCESS": False, "ERROR": True}
_ORDERS = {"BY_START_TIME": TraceOrder.START_TIME, "BY_DURATION": TraceOrder.DURATION}


class Traces:
    """Any thread; blocks on storage. Without `inventories` the ids of v2 segments stay unnamed."""

    def __init__(self, reader: TraceReader, inventories: InventoryReader | None = None) -> None:
        self._reader = reader
        self._inventories = inventories
        self._wholes = WholeTraces(reader, inventories)

    def table(self) -> dict[str, Callable[..., object]]:
        return {
            "queryBasicTraces": self.basic,
            "queryBasicTracesByName": self.basic_by_name,
            "queryTrace": self.whole,
            "queryTraces": self.wholes,
            "hasQueryTracesV2Support": lambda: False,
            "queryTraceTagAutocompleteKeys": self.tag_keys,
            "queryTraceTagAutocompleteValues": self.tag_values,
        }

    def basic(self, condition: Mapping[str, Any] | None = None, debug: bool | None = None) -> View:
        if condition is None:
            raise QueryError("the condition is missing")
        offset, limit = conditions.page(condition["paging"], "traces")
        asked, order = _condition(condition), _ORDERS[condition["queryOrder"]]
        found = self._reader.traces(asked, order, offset, limit) if limit else []
        return {"traces": [_basic(brief) for brief in found]}

    def basic_by_name(
        self, condition: Mapping[str, Any] | None = None, debug: bool | None = None
    ) -> View:
        return self.basic(
            None if condition is None else {**condition, **conditions.ids_of(condition)}
        )

    def whole(
        self,
        traceId: str,  # noqa: N803
        duration: Mapping[str, str] | None = None,
        debug: bool | None = None,
    ) -> View:
        stored = self._reader.trace(traceId, limits.TRACE_SEGMENTS_MAX, limits.TRACE_BYTES_MAX)
        allowance = Allowance(limits.TRACE_SPANS_MAX, limits.TRACE_ENTRIES_MAX)
        segments = Segments(self._inventories, allowance)
        spans = [span for segment in stored for span in segments.spans(segment)]
        if len(spans) == limits.TRACE_SPANS_MAX:
            log.warning("trace %s is shown up to %d spans", traceId[:80], len(spans))
        return {"spans": [span.view() for span in in_tree_order(spans)]}

    def wholes(self, condition: Mapping[str, Any] | None = None, debug: bool | None = None) -> View:
        if condition is None:
            raise QueryError("the condition is missing")
        offset, limit = conditions.page(condition["paging"], "traces", limits.WHOLE_TRACES_MAX)
        order = _ORDERS[condition["queryOrder"]]
        return self._wholes.page(_condition(condition), order, offset, limit)

    def tag_keys(self, duration: Mapping[str, str]) -> list[str]:
        return self._reader.tag_keys(Duration.of(duration).seconds, limits.TAGS_PROPOSED_MAX)

    def tag_values(self, tagKey: str, duration: Mapping[str, str]) -> list[str]:  # noqa: N803
        between = Duration.of(duration).seconds
        return self._reader.tag_values(tagKey, between, limits.TAGS_PROPOSED_MAX)


def _condition(condition: Mapping[str, Any]) -> TraceCondition:
    trace_id, duration = condition.get("traceId") or None, condition.get("queryDuration")
    if trace_id is None and duration is None:
        raise QueryError("the condition needs a traceId or a queryDuration")
    return TraceCondition(
        between=None if duration is None else Duration.of(duration).seconds,
        service_id=condition.get("serviceId") or None,
        instance_id=condition.get("serviceInstanceId") or None,
        endpoint_id=condition.get("endpointId") or None,
        trace_id=trace_id,
        latency_min_ms=condition.get("minTraceDuration") or None,
        latency_max_ms=condition.get("maxTraceDuration") or None,
        is_error=_STATES[condition["traceState"]],
        tags=tuple(conditions.tags(condition.get("tags") or ())),
    )


def _basic(brief: SegmentBrief) -> View:
    return {
        "segmentId": brief.segment_id,
        "endpointNames": [part_name(brief.endpoint_id)],
        "duration": whole(brief.latency),
        "start": str(brief.start_time),
        "isError": brief.is_error,
        "traceIds": [brief.trace_id],
    }
