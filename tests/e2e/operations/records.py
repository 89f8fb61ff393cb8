"""Traces, logs, events, errors of browsers, and profiles of slow requests."""

from __future__ import annotations

from typing import Any, Final

from e2e.operations.stage import (
    EVENT,
    INSTANCE,
    INSTANCE_ID,
    SHOP,
    SHOP_ID,
    SLOW,
    VISITS,
    WEB,
    Answer,
    Checks,
    Stage,
    endpoint_id,
)
from e2e.reading import tree
from skyfarer.oap.core import ids

NAMED: Final = {"serviceName": SHOP}
LOGGED: Final = "asked for the catalogue"
BASKET: Final = [
    f"{SHOP} Entry /basket",
    f"  {SHOP} Exit /stock",
    f"    {SHOP} Entry /stock",
]


def page(number: int = 1, size: int = 20) -> dict[str, int]:
    return {"pageNum": number, "pageSize": size}


def traced(stage: Stage, **asked: Any) -> dict[str, Any]:
    return {
        "traceState": "ALL",
        "queryOrder": "BY_START_TIME",
        "queryDuration": stage.seconds,
        "minTraceDuration": None,
        "paging": page(),
    } | asked


def of_page(name: str) -> dict[str, str]:
    return {"serviceId": SHOP_ID, "endpointId": endpoint_id(name)}


def listed(stage: Stage, **asked: Any) -> list[Answer]:
    found = stage.ask("queryBasicTraces", condition=traced(stage, **asked))["traces"]
    assert isinstance(found, list)
    return found


def segments(stage: Stage) -> None:
    failed = listed(stage, serviceId=SHOP_ID, traceState="ERROR")
    assert [one["endpointNames"] for one in failed] == VISITS["/checkout"] * [["/checkout"]]
    assert all(one["isError"] and one["key"] == one["segmentId"] for one in failed)
    starts = [int(one["start"]) for one in listed(stage, serviceId=SHOP_ID)]
    assert starts == sorted(starts, reverse=True)
    pages = [listed(stage, **of_page("/basket"), paging=page(number, 2)) for number in (1, 2)]
    assert [len(one) for one in pages] == [2, 1]
    slow = listed(stage, serviceId=SHOP_ID, minTraceDuration=250, queryOrder="BY_DURATION")
    spent_ms = [one["duration"] for one in slow]
    assert spent_ms == sorted(spent_ms, reverse=True) and min(spent_ms) >= 250
    assert [SLOW] in [one["endpointNames"] for one in slow]
    tagged = [{"key": "http.status_code", "value": "500"}]
    assert listed(stage, serviceId=SHOP_ID, tags=tagged) == failed


def segments_by_name(stage: Stage) -> None:
    asked = {"service": NAMED, "endpoint": NAMED | {"endpointName": "/checkout"}}
    found = stage.ask("queryBasicTracesByName", condition=traced(stage, **asked))["traces"]
    assert [one["endpointNames"] for one in found] == VISITS["/checkout"] * [["/checkout"]]


def one_trace(stage: Stage) -> None:
    for one in listed(stage, **of_page("/basket")):
        (trace_id,) = one["traceIds"]
        spans = stage.ask("queryTrace", traceId=trace_id)["spans"]
        assert tree(spans) == BASKET
        assert {span["traceId"] for span in spans} == {trace_id}
        root = spans[0]
        assert (root["component"], root["layer"], root["refs"]) == ("Flask", "Http", [])
        tags = {tag["key"]: tag["value"] for tag in root["tags"]}
        assert (tags["http.method"], tags["http.status_code"]) == ("GET", "200")
    assert stage.ask("queryTrace", traceId="none")["spans"] == []


def whole_traces(stage: Stage) -> None:
    asked = traced(stage, **of_page("/basket"))
    found = stage.ask("queryTraces", condition=asked)
    assert [tree(one["spans"]) for one in found["traces"]] == VISITS["/basket"] * [BASKET]
    ids_found = [one["spans"][0]["traceId"] for one in found["traces"]]
    assert ids_found == [one["traceIds"][0] for one in listed(stage, **of_page("/basket"))]
    starts = [span["startTime"] for one in found["traces"] for span in one["spans"]]
    assert found["retrievedTimeRange"]["startTime"] == min(starts)


def no_v2(stage: Stage) -> None:
    assert stage.ask("hasQueryTracesV2Support") is False


def trace_tags(stage: Stage) -> None:
    assert "http.status_code" in stage.ask("queryTraceTagAutocompleteKeys", duration=stage.seconds)


def trace_tag_values(stage: Stage) -> None:
    asked = {"tagKey": "http.status_code", "duration": stage.seconds}
    assert {"200", "500"} <= set(stage.ask("queryTraceTagAutocompleteValues", **asked))


def logged(stage: Stage, **asked: Any) -> dict[str, Any]:
    return {
        "queryDuration": stage.seconds,
        "paging": page(1, 21),
        "keywordsOfContent": [],
        "excludingKeywordsOfContent": [],
    } | asked


def logs_of_the_catalogue(logs: list[Answer]) -> None:
    assert len(logs) == VISITS["/catalogue"]
    for one in logs:
        assert one["content"].endswith(LOGGED) and one["contentType"] == "TEXT"
        assert (one["serviceName"], one["serviceId"]) == (SHOP, SHOP_ID)
        assert (one["serviceInstanceName"], one["serviceInstanceId"]) == (INSTANCE, INSTANCE_ID)
        assert (one["endpointName"], one["endpointId"]) == ("/catalogue", endpoint_id("/catalogue"))
        assert {"key": "level", "value": "WARNING"} in one["tags"]
    times = [one["timestamp"] for one in logs]
    assert times == sorted(times, reverse=True)


def logs(stage: Stage) -> None:
    def found(**asked: Any) -> list[Answer]:
        condition = logged(stage, serviceId=SHOP_ID, **asked)
        answer = stage.ask("queryLogs", condition=condition)["logs"]
        assert isinstance(answer, list)
        return answer

    logs_of_the_catalogue(found())
    logs_of_the_catalogue(found(tags=[{"key": "level", "value": "WARNING"}]))
    logs_of_the_catalogue(found(keywordsOfContent=["CATALOGUE", "asked for"]))
    logs_of_the_catalogue(found(excludingKeywordsOfContent=["basket"]))
    assert found(keywordsOfContent=["/catalogue"]) == []
    assert found(excludingKeywordsOfContent=["catalogue"]) == []
    assert found(tags=[{"key": "level", "value": "ERROR"}]) == []
    (trace_id,) = listed(stage, **of_page("/catalogue"))[0]["traceIds"]
    (one,) = found(relatedTrace={"traceId": trace_id})
    assert one["traceId"] == trace_id


def logs_by_name(stage: Stage) -> None:
    condition = logged(stage, service=NAMED, instance=NAMED | {"instanceName": INSTANCE})
    logs_of_the_catalogue(stage.ask("queryLogsByName", condition=condition)["logs"])


def keywords(stage: Stage) -> None:
    assert stage.ask("supportQueryLogsByKeywords") is True


def log_tags(stage: Stage) -> None:
    assert "level" in stage.ask("queryLogTagAutocompleteKeys", duration=stage.seconds)


def log_tag_values(stage: Stage) -> None:
    asked = {"tagKey": "level", "duration": stage.seconds}
    assert "WARNING" in stage.ask("queryLogTagAutocompleteValues", **asked)


def events(stage: Stage) -> None:
    source = {"service": SHOP, "serviceInstance": INSTANCE}
    asked = {"source": source, "time": stage.minutes, "paging": page()}
    (one,) = stage.ask("queryEvents", condition=asked)["events"]
    assert (one["uuid"], one["name"], one["type"]) == (EVENT, "Restart", "Normal")
    assert one["source"] == {**source, "endpoint": ""}
    assert (one["startTime"], one["message"]) == (stage.now_ms, "again")
    assert stage.ask("queryEvents", condition=asked | {"type": "Error"})["events"] == []


def browser_errors(stage: Stage) -> None:
    web = ids.service_id(WEB)
    asked = {"serviceId": web, "queryDuration": stage.minutes, "paging": page()}
    (one,) = stage.ask("queryBrowserErrorLogs", condition=asked)["logs"]
    assert (one["service"], one["serviceVersion"], one["pagePath"]) == (WEB, "v1", "/cart")
    assert (one["category"], one["message"]) == ("JS", "asked for nothing")
    assert one["time"] == stage.now_ms
    none = stage.ask("queryBrowserErrorLogs", condition=asked | {"category": "AJAX"})["logs"]
    assert none == []


def tasks(stage: Stage) -> None:
    (task,) = stage.ask("getProfileTaskList", serviceId=SHOP_ID, endpointName=SLOW)
    assert (task["id"], task["serviceId"], task["endpointName"]) == (stage.task, SHOP_ID, SLOW)
    assert (task["duration"], task["dumpPeriod"], task["maxSamplingCount"]) == (5, 10, 9)
    assert [one["instanceName"] for one in task["logs"]] == [INSTANCE]


def task_logs(stage: Stage) -> None:
    (one,) = stage.ask("getProfileTaskLogs", taskID=stage.task)
    assert (one["id"], one["instanceId"]) == (stage.task, INSTANCE_ID)
    assert one["operationType"] == "EXECUTION_FINISHED"


def profiled(stage: Stage) -> list[Answer]:
    found = stage.ask("getProfileTaskSegments", taskID=stage.task)
    assert isinstance(found, list) and found
    return found


def task_segments(stage: Stage) -> None:
    traces = {one["traceIds"][0] for one in listed(stage, **of_page(SLOW), paging=page(1, 200))}
    for one in profiled(stage):
        assert one["traceId"] in traces
        assert (one["instanceId"], one["instanceName"]) == (INSTANCE_ID, INSTANCE)
        assert one["endpointNames"] == [SLOW] and one["duration"] >= 250
        (span,) = one["spans"]
        assert span["profiled"] and span["endpointName"] == SLOW


def task_analysis(stage: Stage) -> None:
    """The page that sleeps is in the stacks, under all that called it."""
    spans = [span for one in profiled(stage) for span in one["spans"]]
    queries = [
        {
            "segmentId": span["segmentId"],
            "timeRange": {"start": span["startTime"], "end": span["endTime"]},
        }
        for span in spans
    ]
    found = stage.ask("getSegmentsProfileAnalyze", queries=queries)
    assert found["tip"] is None
    (tree_of_all,) = found["trees"]
    elements = {element["id"]: element for element in tree_of_all["elements"]}
    asleep = [one for one in elements.values() if "stocktaking" in one["codeSignature"]]
    spent_ms = sum(span["endTime"] - span["startTime"] for span in spans)
    assert 0 < sum(one["duration"] for one in asleep) <= spent_ms
    for one in asleep:
        assert elements[one["parentId"]]["duration"] >= one["duration"]


def another_task(stage: Stage) -> None:
    """The set-up has made one; there is no other at the same time."""
    request = {
        "serviceId": SHOP_ID,
        "endpointName": "/basket",
        "duration": 1,
        "minDurationThreshold": 0,
        "dumpPeriod": 10,
        "maxSamplingCount": 1,
    }
    refused = stage.ask("createProfileTask", creationRequest=request)
    assert refused["id"] is None
    assert refused["errorReason"].endswith(f"is profiled at that time already: {stage.task}")


CHECKS: Final[Checks] = {
    "queryBasicTraces": segments,
    "queryBasicTracesByName": segments_by_name,
    "queryTrace": one_trace,
    "queryTraces": whole_traces,
    "hasQueryTracesV2Support": no_v2,
    "queryTraceTagAutocompleteKeys": trace_tags,
    "queryTraceTagAutocompleteValues": trace_tag_values,
    "queryLogs": logs,
    "queryLogsByName": logs_by_name,
    "supportQueryLogsByKeywords": keywords,
    "queryLogTagAutocompleteKeys": log_tags,
    "queryLogTagAutocompleteValues": log_tag_values,
    "queryEvents": events,
    "queryBrowserErrorLogs": browser_errors,
    "getProfileTaskList": tasks,
    "getProfileTaskLogs": task_logs,
    "getProfileTaskSegments": task_segments,
    "getSegmentsProfileAnalyze": task_analysis,
    "createProfileTask": another_task,
}
