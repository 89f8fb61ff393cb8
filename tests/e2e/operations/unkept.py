"""What is not kept: the answer is as empty as the original's, or says why there is none."""

from __future__ import annotations

from typing import Any, Final

from e2e.operations.stage import INSTANCE, INSTANCE_ID, SHOP, SHOP_ID, Answer, Check, Checks, Stage
from skyfarer.oap.query.unkept import LAYER_LEVELS, NO_LAL, NO_PODS, NO_PROFILER

PAGE: Final = {"pageNum": 1, "pageSize": 20}
NO_MAP: Final[Answer] = {"nodes": [], "calls": []}
NO_PROGRESS: Final[Answer] = {"logs": [], "errorInstanceIds": [], "successInstanceIds": []}
UNMADE: Final[Answer] = {"code": "ARGUMENT_ERROR", "errorReason": NO_PROFILER, "id": None}
REFUSED: Final[Answer] = {"status": False, "errorReason": NO_PROFILER, "id": None}


def answers(operation: str, expected: Answer, **asked: Any) -> Check:
    """Times are those of the check."""

    def check(stage: Stage) -> None:
        times = {key: stage.minutes for key, value in asked.items() if value == "minutes"}
        found = stage.ask(operation, **asked | times)
        if isinstance(expected, dict):
            assert found == {key: expected[key] for key in found}
            assert found.keys() <= expected.keys()
        else:
            assert found == expected

    return check


def alarms_of_newer_clients(stage: Stage) -> None:
    condition = {"duration": stage.minutes, "paging": PAGE, "layer": "GENERAL", "keyword": "slow"}
    assert stage.ask("queryAlarms", condition=condition) == {"msgs": []}


def levels(stage: Stage) -> None:
    found = stage.ask("listLayerLevels")
    assert {one["layer"]: one["level"] for one in found} == LAYER_LEVELS


def no_lal(stage: Stage) -> None:
    answer = stage.post("test", requests={"log": "{}", "dsl": "filter {}"})
    assert answer["data"] is None
    assert [error["message"] for error in answer["errors"]] == [NO_LAL]


def container_logs(stage: Stage) -> None:
    condition = {"serviceInstanceId": INSTANCE_ID, "container": "c", "duration": stage.minutes}
    found = stage.ask("ondemandPodLogs", condition=condition)
    assert found == {"errorReason": NO_PODS, "logs": []}


POLICY: Final = {"type": "PROCESS_CPU", "threshold": "90", "period": 10, "count": 3}
CREATED: Final = {"serviceId": SHOP_ID, "serviceInstanceIds": [INSTANCE_ID], "duration": 60}
CHECKS: Final[Checks] = {
    "getAlarm": answers("getAlarm", {"items": []}, duration="minutes", paging=PAGE),
    "queryAlarms": alarms_of_newer_clients,
    "queryAlarmTagAutocompleteKeys": answers(
        "queryAlarmTagAutocompleteKeys", [], duration="minutes"
    ),
    "queryAlarmTagAutocompleteValues": answers(
        "queryAlarmTagAutocompleteValues", [], tagKey="level", duration="minutes"
    ),
    "getServiceHierarchy": answers(
        "getServiceHierarchy", {"relations": []}, serviceId=SHOP_ID, layer="GENERAL"
    ),
    "getInstanceHierarchy": answers(
        "getInstanceHierarchy", {"relations": []}, instanceId=INSTANCE_ID, layer="GENERAL"
    ),
    "listLayerLevels": levels,
    "listProcesses": answers("listProcesses", [], duration="minutes", instanceId=INSTANCE_ID),
    "getProcess": answers("getProcess", None, processId="p"),
    "estimateProcessScale": answers("estimateProcessScale", 0, serviceId=SHOP_ID, labels=["a"]),
    "getProcessTopology": answers(
        "getProcessTopology", NO_MAP, serviceInstanceId=INSTANCE_ID, duration="minutes"
    ),
    "getProcessTopologyByName": answers(
        "getProcessTopologyByName",
        NO_MAP,
        instance={"serviceName": SHOP, "instanceName": INSTANCE},
        duration="minutes",
    ),
    "test": no_lal,
    "listContainers": answers(
        "listContainers",
        {"errorReason": NO_PODS, "containers": []},
        condition={"serviceInstanceId": INSTANCE_ID},
    ),
    "ondemandPodLogs": container_logs,
    "queryAsyncProfilerTaskList": answers(
        "queryAsyncProfilerTaskList",
        {"errorReason": None, "tasks": []},
        request={"serviceId": SHOP_ID, "limit": 10},
    ),
    "queryAsyncProfilerTaskProgress": answers(
        "queryAsyncProfilerTaskProgress", NO_PROGRESS, taskId="t"
    ),
    "queryAsyncProfilerAnalyze": answers(
        "queryAsyncProfilerAnalyze",
        {"tree": None},
        request={"taskId": "t", "instanceIds": [INSTANCE_ID], "eventType": "EXECUTION_SAMPLE"},
    ),
    "createAsyncProfilerTask": answers(
        "createAsyncProfilerTask",
        UNMADE,
        asyncProfilerTaskCreationRequest=CREATED | {"events": ["CPU"]},
    ),
    "queryPprofTaskList": answers(
        "queryPprofTaskList", {"errorReason": None, "tasks": []}, request={"serviceId": SHOP_ID}
    ),
    "queryPprofTaskProgress": answers("queryPprofTaskProgress", NO_PROGRESS, taskId="t"),
    "queryPprofAnalyze": answers(
        "queryPprofAnalyze", {"tree": None}, request={"taskId": "t", "instanceIds": [INSTANCE_ID]}
    ),
    "createPprofTask": answers(
        "createPprofTask", UNMADE, pprofTaskCreationRequest=CREATED | {"events": "CPU"}
    ),
    "queryPrepareCreateEBPFProfilingTaskData": answers(
        "queryPrepareCreateEBPFProfilingTaskData",
        {"couldProfiling": False, "processLabels": []},
        serviceId=SHOP_ID,
    ),
    "queryEBPFProfilingTasks": answers(
        "queryEBPFProfilingTasks", [], serviceId=SHOP_ID, targets=["ON_CPU"]
    ),
    "queryEBPFProfilingSchedules": answers("queryEBPFProfilingSchedules", [], taskId="t"),
    "analysisEBPFProfilingResult": answers(
        "analysisEBPFProfilingResult",
        {"tip": NO_PROFILER, "trees": []},
        scheduleIdList=["s"],
        timeRanges=[{"start": 1, "end": 2}],
        aggregateType="COUNT",
    ),
    "createEBPFProfilingFixedTimeTask": answers(
        "createEBPFProfilingFixedTimeTask",
        REFUSED,
        request={
            "serviceId": SHOP_ID,
            "processLabels": [],
            "startTime": 0,
            "duration": 60,
            "targetType": "ON_CPU",
        },
    ),
    "createEBPFNetworkProfiling": answers(
        "createEBPFNetworkProfiling", REFUSED, request={"instanceId": INSTANCE_ID, "samplings": []}
    ),
    "keepEBPFNetworkProfiling": answers("keepEBPFNetworkProfiling", REFUSED, taskId="t"),
    "queryContinuousProfilingServiceTargets": answers(
        "queryContinuousProfilingServiceTargets", [], serviceId=SHOP_ID
    ),
    "queryContinuousProfilingMonitoringInstances": answers(
        "queryContinuousProfilingMonitoringInstances", [], serviceId=SHOP_ID, target="ON_CPU"
    ),
    "setContinuousProfilingPolicy": answers(
        "setContinuousProfilingPolicy",
        REFUSED,
        request={
            "serviceId": SHOP_ID,
            "targets": [{"targetType": "ON_CPU", "checkItems": [POLICY]}],
        },
    ),
}
