"""What the pages of traces ask of the OAP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from skyfarer.ui.api import OapClient
from skyfarer.ui.fields import pairs
from skyfarer.ui.listing import Listed
from skyfarer.ui.model import ServerTime
from skyfarer.ui.traces.model import Search, Span, SpanLog, TraceRow

_LIST = """query traces($condition: TraceQueryCondition) {
  queryBasicTraces(condition: $condition) {
    traces { segmentId endpointNames duration start isError traceIds }
  }
}"""
_TRACE = """query trace($id: ID!) {
  queryTrace(traceId: $id) {
    spans {
      segmentId spanId parentSpanId refs { parentSegmentId parentSpanId }
      serviceCode serviceInstanceName startTime endTime endpointName type peer component isError
      layer tags { key value } logs { time data { key value } }
    }
  }
}"""


async def search(client: OapClient, time: ServerTime, asked: Search) -> Listed[TraceRow]:
    """A service that does not exist has no traces, rather than those of all."""
    services = await client.services()
    named = {service.name: service.id for service in services}
    names = tuple(service.name for service in services if service.normal)
    if asked.service and asked.service not in named:
        return Listed((), names, False)
    condition = _condition(time, asked, named.get(asked.service))
    answer = await client.graphql(_LIST, {"condition": condition})
    rows = tuple(map(_row, answer["queryBasicTraces"]["traces"]))
    return Listed(rows, names, len(rows) == Search.page_rows)


async def trace(client: OapClient, trace_id: str) -> list[Span]:
    """None where nothing of it is stored."""
    answer = await client.graphql(_TRACE, {"id": trace_id})
    return [_span(span) for span in answer["queryTrace"]["spans"]]


def _condition(time: ServerTime, asked: Search, service_id: str | None) -> dict[str, Any]:
    condition: dict[str, Any] = {
        "traceState": asked.state,
        "queryOrder": asked.order,
        "paging": {"pageNum": asked.page, "pageSize": Search.page_rows},
        "queryDuration": asked.window.duration(time),
        "serviceId": service_id,
        "minTraceDuration": asked.min_ms,
        "maxTraceDuration": asked.max_ms,
        "tags": [{"key": key, "value": value} for key, value in pairs(asked.tags)] or None,
    }
    if asked.trace_id:
        condition |= {"traceId": asked.trace_id, "queryDuration": None}
    return {name: value for name, value in condition.items() if value is not None}


def _row(found: Mapping[str, Any]) -> TraceRow:
    return TraceRow(
        segment_id=found["segmentId"],
        trace_id=found["traceIds"][0],
        endpoint=" · ".join(found["endpointNames"]),
        duration_ms=found["duration"],
        start_ms=int(found["start"]),
        is_error=bool(found["isError"]),
    )


def _span(found: Mapping[str, Any]) -> Span:
    return Span(
        key=(found["segmentId"], found["spanId"]),
        parents=tuple(_parents(found)),
        service=found["serviceCode"],
        instance=found["serviceInstanceName"],
        name=found["endpointName"] or found["type"],
        kind=found["type"],
        peer=found["peer"] or "",
        component=found["component"] or "",
        layer=found["layer"] or "",
        start_ms=found["startTime"],
        end_ms=found["endTime"],
        is_error=bool(found["isError"]),
        tags=_pairs(found["tags"]),
        logs=tuple(SpanLog(log["time"], _pairs(log["data"] or ())) for log in found["logs"]),
    )


def _parents(found: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """The last reference is the parent, as the protocol has it; what is not stored is made up for
    by the one before, and by the span's own segment at last."""
    for ref in reversed(found["refs"]):
        yield ref["parentSegmentId"], ref["parentSpanId"]
    if found["parentSpanId"] >= 0:
        yield found["segmentId"], found["parentSpanId"]


def _pairs(found: Any) -> tuple[tuple[str, str], ...]:
    return tuple((pair["key"], pair["value"] or "") for pair in found)
