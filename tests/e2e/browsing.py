"""Everything that can be read of an OAP by GraphQL, as a person would who opens every page."""

from __future__ import annotations

from typing import Any, Final

from skyfarer.testing.programs import Oap

PAGE, PAGES_MAX, NAMES_MAX = 100, 5, 25
SPAN: Final = """traceId segmentId spanId parentSpanId
  refs { traceId parentSegmentId parentSpanId type }
  serviceCode serviceInstanceName startTime endTime endpointName type peer component
  isError layer tags { key value } logs { time data { key value } }
  attachedEvents { startTime { seconds nanos } event endTime { seconds nanos }
    tags { key value } summary { key value } }"""
PAGED: Final = {
    "queryBasicTraces": (
        "TraceQueryCondition",
        "traces { segmentId endpointNames duration start isError traceIds }",
        {"traceState": "ALL", "queryOrder": "BY_DURATION"},
    ),
    "queryLogs": (
        "LogQueryCondition",
        "errorReason logs { serviceName serviceId serviceInstanceName endpointName traceId"
        " timestamp contentType content tags { key value } }",
        {},
    ),
    "queryBrowserErrorLogs": (
        "BrowserErrorLogQueryCondition",
        "logs { service serviceVersion time pagePath category grade message line col stack errorUrl"
        " firstReportedError }",
        {},
    ),
}
NAMES: Final = """query ($id: ID!, $duration: Duration!) {
  listInstances(serviceId: $id, duration: $duration) { id name language attributes { name value } }
  findEndpoint(serviceId: $id, keyword: "", limit: 100, duration: $duration) { id name }
  getServiceTopology(serviceId: $id, duration: $duration) {
    nodes { id name type isReal } calls { id source target detectPoints } } }"""
WHOLE: Final = """query ($duration: Duration!, $seconds: Duration!) {
  getGlobalTopology(duration: $duration) {
    nodes { id name type isReal } calls { id source target detectPoints } }
  queryTraceTagAutocompleteKeys(duration: $seconds)
  queryLogTagAutocompleteKeys(duration: $seconds)
  queryEvents(condition: {time: $seconds, paging: {pageNum: 1, pageSize: 100}}) {
    events { uuid source { service serviceInstance endpoint } name type message
      parameters { key value } startTime endTime layer } } }"""


def browse(oap: Oap, day: str) -> int:
    """Opens every page of that day, and returns how many rows all of them had. AssertionError for
    the first that is answered with an error."""
    whole = {"start": day, "end": day, "step": "DAY"}
    seconds = {"start": f"{day} 000000", "end": f"{day} 235959", "step": "SECOND"}
    answer = oap.graphql(WHOLE, duration=whole, seconds=seconds)
    rows = _rows(answer) + sum(_services(oap, layer, whole) for layer in _layers(oap))
    for field in PAGED:
        for number in range(1, PAGES_MAX + 1):
            found = _page(oap, field, number, seconds)
            rows += len(found)
            if field == "queryBasicTraces":
                ids = [identifier for one in found for identifier in one["traceIds"]]
                rows += sum(_spans(oap, identifier) for identifier in ids[:NAMES_MAX])
            if len(found) < PAGE:
                break
    return rows


def _layers(oap: Oap) -> list[str]:
    layers: list[str] = oap.graphql("{ listLayers }")["listLayers"]
    return layers


def _services(oap: Oap, layer: str, duration: dict[str, str]) -> int:
    query = "query ($layer: String!) { listServices(layer: $layer) { id name layers normal } }"
    found = oap.graphql(query, layer=layer)["listServices"][:NAMES_MAX]
    return len(found) + sum(
        _rows(oap.graphql(NAMES, id=one["id"], duration=duration)) for one in found
    )


def _page(oap: Oap, field: str, number: int, seconds: dict[str, str]) -> list[dict[str, Any]]:
    kind, selected, condition = PAGED[field]
    paging = {"pageNum": number, "pageSize": PAGE}
    answer = oap.graphql(
        f"query ($asked: {kind}) {{ {field}(condition: $asked) {{ {selected} }} }}",
        asked={**condition, "queryDuration": seconds, "paging": paging},
    )[field]
    found: list[dict[str, Any]] = answer.get("traces", answer.get("logs"))
    return found


def _spans(oap: Oap, trace_id: str) -> int:
    query = f"query ($id: ID!) {{ queryTrace(traceId: $id) {{ spans {{ {SPAN} }} }} }}"
    return len(oap.graphql(query, id=trace_id)["queryTrace"]["spans"])


def _rows(answer: Any) -> int:
    """Everything that is listed anywhere in an answer."""
    if isinstance(answer, list):
        return len(answer)
    return sum(map(_rows, answer.values())) if isinstance(answer, dict) else 0
