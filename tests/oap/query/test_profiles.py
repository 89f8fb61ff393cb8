"""Profile tasks, the requests they sampled and the trees of their stacks, through the HTTP door."""

from __future__ import annotations

from typing import Any

import pytest

from oap.query.conftest import NOW_MS
from skyfarer.oap.core import ids
from skyfarer.oap.query import limits
from skyfarer.oap.query.profiles.stacks import Stack, trees
from skyfarer.testing.traces import segment
from skyfarer.wire.messages import profile
from skyfarer.wire.rpc import Kind

CREATE = """
mutation ($request: ProfileTaskCreationRequest) {
  task: createProfileTask(creationRequest: $request) { id errorReason }
}"""
LIST = """
query ($serviceId: ID, $endpointName: String) {
  tasks: getProfileTaskList(serviceId: $serviceId, endpointName: $endpointName) {
    id serviceId serviceName endpointName startTime duration minDurationThreshold dumpPeriod
    maxSamplingCount logs { id instanceId instanceName operationType operationTime }
  }
}"""
SEGMENTS = """
query ($id: ID!) {
  segments: getProfileTaskSegments(taskID: $id) {
    traceId instanceId instanceName endpointNames duration start
    spans { spanId segmentId endpointName profiled refs { traceId } }
  }
}"""
ANALYSE = """
query ($queries: [SegmentProfileAnalyzeQuery!]!) {
  analysis: getSegmentsProfileAnalyze(queries: $queries) {
    tip
    trees { elements { id parentId codeSignature duration durationChildExcluded count } }
  }
}"""


def request(service: str, **other: Any) -> dict[str, Any]:
    return {
        "serviceId": ids.service_id(service),
        "endpointName": "/pay",
        "duration": 5,
        "minDurationThreshold": 100,
        "dumpPeriod": 10,
        "maxSamplingCount": 3,
    } | other


def created(shelf, service: str, **other: Any) -> str:
    task = shelf.ask(CREATE, request=request(service, **other))["task"]
    assert task["errorReason"] is None
    return str(task["id"])


def snapshot(task: str, of: str, number: int, at_ms: int, *frames: str) -> profile.ThreadSnapshot:
    stack = profile.ThreadStack(codeSignatures=frames)
    return profile.ThreadSnapshot(
        taskId=task, traceSegmentId=of, sequence=number, time=at_ms, stack=stack
    )


def test_a_task_that_was_created_is_listed_with_what_was_asked(shelf, fresh):
    first = created(shelf, fresh)
    later = created(shelf, fresh, endpointName="/buy", startTime=NOW_MS + 600_000)
    listed = shelf.ask(LIST, serviceId=ids.service_id(fresh))["tasks"]
    assert [task["id"] for task in listed] == [later, first]
    assert listed[1] == {
        "id": first,
        "serviceName": fresh,
        "startTime": NOW_MS,
        "logs": [],
        **request(fresh),
    }
    (only,) = shelf.ask(LIST, serviceId=ids.service_id(fresh), endpointName="/buy")["tasks"]
    assert (only["id"], only["startTime"]) == (later, NOW_MS + 600_000)
    assert shelf.ask(LIST, serviceId=ids.service_id(f"no {fresh}"))["tasks"] == []


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"duration": 16}, "a task lasts 1 to 15 minutes"),
        ({"dumpPeriod": 9}, "stacks are dumped every 10 ms at most"),
        ({"maxSamplingCount": 10}, "1 to 9 requests are profiled"),
        ({"endpointName": " "}, "an endpoint has 1 to 512 characters"),
        ({"startTime": NOW_MS + 31 * 86_400_000}, "a task starts within 30 days"),
    ],
)
def test_a_task_that_no_agent_could_do_is_refused_with_a_reason(shelf, fresh, other, why):
    answer = shelf.ask(CREATE, request=request(fresh, **other))["task"]
    assert answer == {"id": None, "errorReason": why}
    assert shelf.ask(LIST, serviceId=ids.service_id(fresh))["tasks"] == []


def test_a_service_has_one_task_at_a_time(shelf, fresh):
    task = created(shelf, fresh)
    again = shelf.ask(CREATE, request=request(fresh))["task"]
    assert again["id"] is None
    assert again["errorReason"] == f"service {fresh} is profiled at that time already: {task}"
    assert shelf.ask(CREATE)["task"]["errorReason"] == "the request is missing"


def test_a_server_without_storage_for_tasks_has_none_and_says_so(oap):
    assert oap.ask(LIST)["tasks"] == []
    refused = oap.ask(CREATE, request=request("shop"))["task"]
    assert refused["errorReason"] == "this server has nowhere to keep a task"


def test_who_has_finished_a_task_is_told_by_its_logs(shelf, fresh):
    task = created(shelf, fresh)
    report = profile.ProfileTaskFinishReport(service=fresh, serviceInstance="i-1", taskId=task)
    other = profile.ProfileTaskFinishReport(service=fresh, serviceInstance="i-2", taskId="other")
    shelf.put_records(Kind.PROFILE_FINISH, NOW_MS, report, other)
    finished = {
        "id": task,
        "instanceId": ids.instance_id(ids.service_id(fresh), "i-1"),
        "instanceName": "i-1",
        "operationType": "EXECUTION_FINISHED",
        "operationTime": NOW_MS // 60_000 * 60_000,
    }
    (listed,) = shelf.ask(LIST, serviceId=ids.service_id(fresh))["tasks"]
    assert listed["logs"] == [finished]
    query = """query ($id: String) { logs: getProfileTaskLogs(taskID: $id) {
      id instanceId instanceName operationType operationTime } }"""
    assert shelf.ask(query, id=task)["logs"] == [finished]
    assert shelf.ask(query, id="none")["logs"] == shelf.ask(query)["logs"] == []


def test_the_requests_that_a_task_sampled_are_shown_with_their_spans(shelf, fresh):
    task, at_ms = created(shelf, fresh), NOW_MS + 1000
    sampled = segment(fresh, "i", "/pay", at_ms, 90, trace_id=f"t-{fresh}", segment_id=fresh)
    passed = segment(fresh, "i", "/pay", at_ms, 90, segment_id=f"{fresh}-unsampled")
    shelf.put(sampled, passed)
    shelf.put_records(
        Kind.PROFILE_SNAPSHOT,
        at_ms,
        snapshot(task, fresh, 0, at_ms + 10, "main"),
        snapshot("other", f"{fresh}-unsampled", 0, at_ms + 10, "main"),
    )
    (shown,) = shelf.ask(SEGMENTS, id=task)["segments"]
    assert shown.pop("spans") == [
        {
            "spanId": 0,
            "segmentId": fresh,
            "endpointName": "/pay",
            "profiled": True,
            "refs": [],
        }
    ]
    assert shown == {
        "traceId": f"t-{fresh}",
        "instanceId": ids.instance_id(ids.service_id(fresh), "i"),
        "instanceName": "i",
        "endpointNames": ["/pay"],
        "duration": 90,
        "start": str(at_ms),
    }
    assert shelf.ask(SEGMENTS, id="none")["segments"] == []


def test_stacks_of_a_request_become_a_tree_with_the_time_of_each_frame(shelf, fresh):
    shelf.put_records(
        Kind.PROFILE_SNAPSHOT,
        NOW_MS,
        *(
            snapshot("task", fresh, number, NOW_MS + 10 * number, "main", *frames)
            for number, frames in enumerate((["a"], ["a", "b"], ["c"], ["a"], ["a"], []))
        ),
        snapshot("task", f"{fresh}-other", 0, NOW_MS, "elsewhere"),
    )

    def analysed(start_ms: int, end_ms: int) -> dict[str, Any]:
        time_range = {"start": start_ms, "end": end_ms}
        queries = [{"segmentId": fresh, "timeRange": time_range}]
        analysis = shelf.ask(ANALYSE, queries=queries * 2)["analysis"]
        assert isinstance(analysis, dict)
        return analysis

    whole = analysed(NOW_MS, NOW_MS + 1000)
    (tree,) = whole["trees"]
    shown = [tuple(element.values()) for element in tree["elements"]]
    assert whole["tip"] is None
    assert shown == [
        ("1", "0", "main", 50, 30, 6),
        ("2", "1", "a", 20, 20, 4),
        ("3", "1", "c", 0, 0, 1),
        ("4", "2", "b", 0, 0, 1),
    ]
    (part,) = analysed(NOW_MS + 30, NOW_MS + 40)["trees"]
    assert [element["count"] for element in part["elements"]] == [2, 2]
    assert analysed(NOW_MS + 500, NOW_MS + 600) == {"tip": "Data not found", "trees": []}
    assert shelf.ask(ANALYSE, queries=[])["analysis"]["tip"] == "Data not found"


def test_an_analysis_of_more_than_it_looks_at_says_so(shelf, fresh, monkeypatch):
    dumps = [snapshot("task", fresh, n, NOW_MS + n, "main") for n in range(3)]
    shelf.put_records(Kind.PROFILE_SNAPSHOT, NOW_MS - 30_000, *dumps)
    monkeypatch.setattr(limits, "SNAPSHOTS_MAX", 2)
    query = {"segmentId": fresh, "timeRange": {"start": NOW_MS, "end": NOW_MS + 9}}
    analysis = shelf.ask(ANALYSE, queries=[query])["analysis"]
    assert analysis["tip"] == "only the first 2 snapshots of that time were looked at"
    for time_range, why in (
        ({"start": 0, "end": 10**17}, "lie within a day"),
        ({"start": 9, "end": 5}, "is no time in milliseconds since the epoch"),
    ):
        asked = [{"segmentId": fresh, "timeRange": time_range}]
        (error,) = shelf.errors(ANALYSE, queries=asked)
        assert why in error
    (error,) = shelf.errors(ANALYSE, queries=[query] * 101)
    assert error == "101 segments are more than the 100 allowed"


def test_time_does_not_run_from_one_request_to_another():
    dumps = [Stack(of, n, 1000 * len(of) + 10 * n, ("main",)) for of in ("a", "bb") for n in (0, 1)]
    (tree,) = trees(dumps)
    assert [element["duration"] for element in tree["elements"]] == [20]
