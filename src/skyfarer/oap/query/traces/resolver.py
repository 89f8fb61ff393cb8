"""The root fields about traces, from the protocol's arguments to its shapes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from skyfarer.oap.core.inventory import InventoryReader
from skyfarer.oap.core.traces import (
    TAG_SEPARATOR,
    SegmentBrief,
    TraceCondition,
    TraceOrder,
    TraceReader,
)
from skyfarer.oap.query import limits
from skyfarer.oap.query.durations import Duration
from skyfarer.oap.query.errors import QueryError
from skyfarer.oap.query.traces.segments import Segments, part_name
from skyfarer.oap.query.traces.span import Allowance, View
from skyfarer.oap.query.traces.tree import in_tree_order

log = logging.getLogger(__name__)

_STATES: Mapping[str, bool | None] = {"ALL": None, "SUCCESS": False, "ERROR": True}
_ORDERS = {"BY_START_TIME": TraceOrder.START_TIME, "BY_DURATION": TraceOrder.DURATION}
_INT_MAX = 2**31 - 1


class Traces:
    """Any thread; blocks on storage. Without `inventories` the ids of v2 segments stay unnamed."""

    def __init__(self, reader: TraceReader, inventories: InventoryReader | None = None) -> None:
        self._reader = reader
        self._inventories = inventories

    def table(self) -> dict[str, Callable[..., object]]:
        return {
            "queryBasicTraces": self.basic,
            "queryTrace": self.whole,
            "hasQueryTracesV2Support": lambda: False,
            "queryTraceTagAutocompleteKeys": self.tag_keys,
            "queryTraceTagAutocompleteValues": self.tag_values,
        }

    def basic(self, condition: Mapping[str, Any] | None = None, debug: bool | None = None) -> View:
        if condition is None:
            raise QueryError("the condition is missing")
        offset, limit = _page(condition["paging"])
        asked, order = _condition(condition), _ORDERS[condition["queryOrder"]]
        found = self._reader.traces(asked, order, offset, limit) if limit else []
        return {"traces": [_basic(brief) for brief in found]}

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

    def tag_keys(self, duration: Mapping[str, str]) -> list[str]:
        return self._reader.tag_keys(Duration.of(duration).seconds, limits.TAGS_PROPOSED_MAX)

    def tag_values(self, tagKey: str, duration: Mapping[str, str]) -> list[str]:  # noqa: N803
        between = Duration.of(duration).seconds
        return self._reader.tag_values(tagKey, between, limits.TAGS_PROPOSED_MAX)


def _page(paging: Mapping[str, int | None]) -> tuple[int, int]:
    """Offset and limit; QueryError where a page lies further than anyone pages."""
    number, size = max(paging.get("pageNum") or 1, 1), max(paging["pageSize"] or 0, 0)
    if size > limits.TRACES_PAGE_MAX:
        raise QueryError(f"a page of {size} traces is larger than {limits.TRACES_PAGE_MAX}")
    if number * size > limits.TRACES_REACH_MAX:
        raise QueryError(
            f"page {number} of {size} lies beyond the first {limits.TRACES_REACH_MAX} traces; "
            "ask for a shorter duration or for more of the segment"
        )
    return (number - 1) * size, size


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
        tags=tuple(_tags(condition.get("tags") or ())),
    )


def _tags(asked: Sequence[Mapping[str, str | None]]) -> Iterator[str]:
    if len(asked) > limits.TAGS_ASKED_MAX:
        raise QueryError(f"{len(asked)} tags are more than the {limits.TAGS_ASKED_MAX} allowed")
    for tag in asked:
        if tag.get("value") is None:
            raise QueryError(f"the tag {tag['key']!r} needs a value to be searched for")
        yield f"{tag['key']}{TAG_SEPARATOR}{tag['value']}"


def _basic(brief: SegmentBrief) -> View:
    return {
        "segmentId": brief.segment_id,
        "endpointNames": [part_name(brief.endpoint_id)],
        "duration": max(-_INT_MAX, min(brief.latency, _INT_MAX)),
        "start": str(brief.start_time),
        "isError": brief.is_error,
        "traceIds": [brief.trace_id],
    }
