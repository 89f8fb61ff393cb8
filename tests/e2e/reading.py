"""What an OAP has seen, read back through GraphQL as any client would."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from skyfarer.testing.programs import Oap

TRACES_MAX = 100
Span = dict[str, Any]


def duration(step: str = "MINUTE") -> dict[str, str]:
    """The last forty minutes and the one to come: what a busy machine takes for all tests of a
    file must fit."""
    now = datetime.now(UTC)
    shape = {"MINUTE": "%Y-%m-%d %H%M", "SECOND": "%Y-%m-%d %H%M%S"}[step]
    start, end = now - timedelta(minutes=40), now + timedelta(minutes=1)
    return {"start": start.strftime(shape), "end": end.strftime(shape), "step": step}


def services(oap: Oap) -> dict[str, dict[str, Any]]:
    """By name."""
    found = oap.graphql('{ listServices(layer: "GENERAL") { id name layers } }')["listServices"]
    return {service["name"]: service for service in found}


def seen(oap: Oap, service: str) -> dict[str, Any]:
    """Layers, instances, endpoints and the number of calls of each; empty of an unknown service."""
    found = services(oap).get(service)
    if found is None:
        return {}
    answer = oap.graphql(
        """query ($id: ID!, $duration: Duration!) {
          listInstances(serviceId: $id, duration: $duration) { name language }
          findEndpoint(serviceId: $id, keyword: "", limit: 100, duration: $duration) { name } }""",
        id=found["id"],
        duration=duration(),
    )
    endpoints = [endpoint["name"] for endpoint in answer["findEndpoint"]]
    return {
        "layers": found["layers"],
        "instances": answer["listInstances"],
        "calls": calls(oap, "service_cpm", service),
        "endpoints": {
            name: calls(oap, "endpoint_cpm", service, endpointName=name) for name in endpoints
        },
    }


def calls(oap: Oap, metric: str, service: str, **entity: str) -> int:
    """The values of the minutes, summed: of calls per minute, all of them."""
    answer = oap.graphql(
        """query ($metric: String!, $entity: Entity!, $duration: Duration!) {
          execExpression(expression: $metric, entity: $entity, duration: $duration) {
            error results { values { value } } } }""",
        metric=metric,
        entity={"serviceName": service, "normal": True, **entity},
        duration=duration(),
    )["execExpression"]
    assert answer["error"] is None, answer
    return sum(int(point["value"] or 0) for point in answer["results"][0]["values"])


def traces_of(oap: Oap, service: str, endpoint: str) -> list[list[Span]]:
    """The whole traces in which that endpoint was called."""
    answer = oap.graphql(
        """query ($condition: TraceQueryCondition) {
          queryBasicTraces(condition: $condition) { traces { endpointNames traceIds } } }""",
        condition={
            "serviceId": services(oap)[service]["id"],
            "traceState": "ALL",
            "queryOrder": "BY_START_TIME",
            "queryDuration": duration("SECOND"),
            "paging": {"pageNum": 1, "pageSize": TRACES_MAX},
        },
    )["queryBasicTraces"]["traces"]
    found = [one["traceIds"][0] for one in answer if one["endpointNames"] == [endpoint]]
    return [trace(oap, trace_id) for trace_id in found]


def logs_of(oap: Oap, service: str, **tags: str) -> list[dict[str, Any]]:
    """Those with these tags, newest first; none of an unknown service."""
    found = services(oap).get(service)
    if found is None:
        return []
    logs: list[dict[str, Any]] = oap.graphql(
        """query ($condition: LogQueryCondition) { queryLogs(condition: $condition) {
          logs { serviceName serviceInstanceName endpointName traceId content } } }""",
        condition={
            "serviceId": found["id"],
            "queryDuration": duration("SECOND"),
            "tags": [{"key": key, "value": value} for key, value in tags.items()],
            "paging": {"pageNum": 1, "pageSize": TRACES_MAX},
        },
    )["queryLogs"]["logs"]
    return logs


def trace(oap: Oap, trace_id: str) -> list[Span]:
    spans: list[Span] = oap.graphql(
        """query ($id: ID!) { queryTrace(traceId: $id) { spans {
          traceId segmentId spanId parentSpanId
          refs { traceId parentSegmentId parentSpanId type }
          serviceCode serviceInstanceName startTime endTime endpointName type peer component
          isError layer tags { key value } logs { time data { key value } } } } }""",
        id=trace_id,
    )["queryTrace"]["spans"]
    return spans


def tree(spans: list[Span]) -> list[str]:
    """A line a span under its parent's, the parents found as a page would find them."""

    def below(parent: tuple[str, int] | None, depth: int) -> list[str]:
        children = sorted(
            (line(one), one["segmentId"], one["spanId"]) for one in of.get(parent, ())
        )
        return [
            text
            for shown, segment, span in children
            for text in ("  " * depth + shown, *below((segment, span), depth + 1))
        ]

    of: dict[tuple[str, int] | None, list[Span]] = {}
    for span in spans:
        of.setdefault(_parent(span), []).append(span)
    lines = below(None, 0)
    assert len(lines) == len(spans), f"spans whose parents are not there: {spans}"
    return lines


def line(span: Span) -> str:
    failed = " failed" if span["isError"] else ""
    return f"{span['serviceCode']} {span['type']} {span['endpointName']}{failed}"


def _parent(span: Span) -> tuple[str, int] | None:
    if span["parentSpanId"] >= 0:
        return span["segmentId"], span["parentSpanId"]
    refs = span["refs"]
    return (refs[0]["parentSegmentId"], refs[0]["parentSpanId"]) if refs else None


def normal(spans: list[Span], service: str) -> list[Span]:
    """What is left of a trace when names, ids, times and ports no longer tell two runs apart."""
    timeless = [{**span, "startTime": 0, "endTime": 0} for span in spans]
    ordered = sorted(timeless, key=line)
    text = json.dumps(ordered).replace(service, "shop")
    for number, span in enumerate(ordered):
        text = text.replace(span["segmentId"], f"segment {number}")
    text = text.replace(ordered[0]["traceId"], "trace") if ordered else text
    return list(json.loads(re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:port", text)))
