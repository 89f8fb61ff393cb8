"""Root fields about what this program does not keep: what the original answers where it has none.

A client that asks for them on every page (SkyWalking's does) is told that there is nothing, not
that it has asked for something strange.

    alarms     no rule raises any
    hierarchy  no service is known in two layers; which layer stands on which is known
    profilers  of JVMs, Go programs and processes: no task can be made
    pods       no Kubernetes is asked
    LAL        no log is analysed by scripts: the one who tries one is told so
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from skyfarer.oap.query.errors import QueryError

NO_PROFILER: Final = "this server profiles requests alone: see createProfileTask"
NO_PODS: Final = "this server does not ask Kubernetes for logs: let an agent send them"
NO_LAL: Final = "this server has no LAL: it keeps every log as it came"
LAYER_LEVELS: Final = {
    **dict.fromkeys(("MESH", "GENERAL", "SO11Y_OAP", "VIRTUAL_DATABASE", "VIRTUAL_MQ"), 3),
    **dict.fromkeys(
        (
            *("MYSQL", "POSTGRESQL", "APISIX", "NGINX", "ROCKETMQ", "CLICKHOUSE", "RABBITMQ"),
            *("KAFKA", "PULSAR", "ACTIVEMQ", "KONG", "AIRFLOW"),
        ),
        2,
    ),
    **dict.fromkeys(("MESH_DP", "CILIUM_SERVICE"), 1),
    "K8S_SERVICE": 0,
}
"""SkyWalking's: what stands higher is nearer to the user."""


def table() -> dict[str, Callable[..., object]]:
    levels = [{"layer": layer, "level": level} for layer, level in LAYER_LEVELS.items()]
    return {
        "getAlarm": lambda **_: {"msgs": []},
        "queryAlarms": lambda **_: {"msgs": []},
        "queryAlarmTagAutocompleteKeys": lambda **_: [],
        "queryAlarmTagAutocompleteValues": lambda **_: [],
        "getServiceHierarchy": lambda **_: {"relations": []},
        "getInstanceHierarchy": lambda **_: {"relations": []},
        "listLayerLevels": lambda: levels,
        "listContainers": lambda **_: {"errorReason": NO_PODS, "containers": []},
        "ondemandPodLogs": lambda **_: {"errorReason": NO_PODS, "logs": []},
        "test": _no_lal,
        **_profilers(),
    }


def _profilers() -> dict[str, Callable[..., object]]:
    no_progress: dict[str, object] = {"logs": [], "errorInstanceIds": [], "successInstanceIds": []}
    unprepared = {"couldProfiling": False, "processLabels": []}
    return {
        "queryAsyncProfilerTaskList": lambda **_: {"tasks": []},
        "queryAsyncProfilerTaskProgress": lambda **_: no_progress,
        "queryAsyncProfilerAnalyze": lambda **_: {"tree": None},
        "queryPprofTaskList": lambda **_: {"tasks": []},
        "queryPprofTaskProgress": lambda **_: no_progress,
        "queryPprofAnalyze": lambda **_: {"tree": None},
        "queryPrepareCreateEBPFProfilingTaskData": lambda **_: unprepared,
        "queryEBPFProfilingTasks": lambda **_: [],
        "queryEBPFProfilingSchedules": lambda **_: [],
        "analysisEBPFProfilingResult": lambda **_: {"tip": NO_PROFILER, "trees": []},
        "queryContinuousProfilingServiceTargets": lambda **_: [],
        "queryContinuousProfilingMonitoringInstances": lambda **_: [],
    }


def changes() -> dict[str, Callable[..., object]]:
    """What would be made is refused where the protocol has a place to say why."""
    unmade = {"code": "ARGUMENT_ERROR", "errorReason": NO_PROFILER, "id": None}
    refused = {"status": False, "errorReason": NO_PROFILER, "id": None}
    return {
        "createAsyncProfilerTask": lambda **_: unmade,
        "createPprofTask": lambda **_: unmade,
        "createEBPFProfilingFixedTimeTask": lambda **_: refused,
        "createEBPFNetworkProfiling": lambda **_: refused,
        "keepEBPFNetworkProfiling": lambda **_: refused,
        "setContinuousProfilingPolicy": lambda **_: refused,
    }


def _no_lal(**_: object) -> object:
    raise QueryError(NO_LAL)
