"""The root fields about profiles, from the protocol's arguments to its shapes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import tzinfo
from typing import Any, Final

from skyfarer.base.clock import Clock
from skyfarer.base.errors import PermanentError
from skyfarer.oap.core import ids
from skyfarer.oap.core.inventory import InventoryReader
from skyfarer.oap.core.storage import Reader
from skyfarer.oap.core.tasks import ProfileTask, TaskTables
from skyfarer.oap.core.time_bucket import epoch_ms
from skyfarer.oap.query import limits
from skyfarer.oap.query.errors import QueryError
from skyfarer.oap.query.naming import service_name
from skyfarer.oap.query.profiles.sampled import Sampled
from skyfarer.oap.query.profiles.snapshots import EARLY_MS, SPAN_MS_MAX, Snapshots
from skyfarer.oap.query.profiles.stacks import Stack, trees
from skyfarer.oap.query.traces.span import View
from skyfarer.wire.messages import profile

NO_TABLES: Final = "this server has nowhere to keep a task"
NOTHING_FOUND: Final = "Data not found"
TOO_MANY: Final = "only the first {} snapshots of that time were looked at"
DAYS_MS: Final = 24 * 3_600_000


class Profiles:
    """Any thread; blocks on storage. Without `tables` there are no tasks, and none can be made."""

    def __init__(
        self,
        reader: Reader,
        clock: Clock,
        zone: tzinfo,
        tables: TaskTables | None = None,
        inventories: InventoryReader | None = None,
    ) -> None:
        self._tables = tables
        self._clock = clock
        self._zone = zone
        self._snapshots = Snapshots(reader, zone)
        self._sampled = Sampled(reader, zone, inventories)

    def table(self) -> dict[str, Callable[..., object]]:
        return {
            "getProfileTaskList": self.tasks,
            "getProfileTaskLogs": self.logs,
            "getProfileTaskSegments": self.segments,
            "getSegmentsProfileAnalyze": self.analysis,
        }

    def changes(self) -> dict[str, Callable[..., object]]:
        return {"createProfileTask": self.create}

    def tasks(
        self,
        serviceId: str | None = None,  # noqa: N803
        endpointName: str | None = None,  # noqa: N803
    ) -> list[View]:
        service = service_name(serviceId) if serviceId else None
        found = [
            task
            for task in self._stored()
            if service in (None, task.service) and endpointName in (None, "", task.endpoint)
        ]
        logs = self._logs(found)
        found.sort(key=lambda task: task.start_ms, reverse=True)
        return [_task(task, logs[task.id]) for task in found]

    def logs(self, taskID: str | None = None) -> list[View]:  # noqa: N803
        return self._logs(self._named(taskID))[taskID or ""]

    def segments(self, taskID: str) -> list[View]:  # noqa: N803
        return [view for task in self._named(taskID) for view in self._sampled.of(task)]

    def analysis(self, queries: Sequence[Mapping[str, Any]]) -> View:
        """Of several segments together; a dump that two queries ask for is one."""
        if not queries:
            return {"tip": NOTHING_FOUND, "trees": []}
        if len(queries) > limits.IDS_MAX:
            raise QueryError(f"{len(queries)} segments are more than the {limits.IDS_MAX} allowed")
        start_ms = min(one["timeRange"]["start"] for one in queries)
        end_ms = max(one["timeRange"]["end"] for one in queries)
        if end_ms - start_ms > SPAN_MS_MAX:
            raise QueryError("the segments of one analysis lie within a day: ask for fewer of them")
        found = self._snapshots.between(start_ms, end_ms)
        stacks = {
            _stack(one)
            for one in found
            if any(_within(one.traceSegmentId, one.time, query) for query in queries)
        }
        tip = None if stacks else NOTHING_FOUND
        if len(found) >= limits.SNAPSHOTS_MAX:
            tip = TOO_MANY.format(len(found))
        return {"tip": tip, "trees": trees(sorted(stacks))}

    def create(self, creationRequest: Mapping[str, Any] | None = None) -> View:  # noqa: N803
        if creationRequest is None:
            return _refused("the request is missing")
        if self._tables is None:
            return _refused(NO_TABLES)
        now_ms = self._clock.now_ms()
        task = _asked(creationRequest, now_ms)
        if problem := task.problem() or _untimely(task, now_ms):
            return _refused(problem)
        try:
            return {"errorReason": None, "id": self._tables.add_profile_task(task).id}
        except PermanentError as error:
            return _refused(str(error))

    def _stored(self) -> list[ProfileTask]:
        return [] if self._tables is None else self._tables.profile_tasks(0)

    def _named(self, task_id: str | None) -> list[ProfileTask]:
        return [task for task in self._stored() if task.id == task_id]

    def _logs(self, tasks: Iterable[ProfileTask]) -> Mapping[str, list[View]]:
        """By task. Reports are as old as other records may be, so older ones are not looked for."""
        logs, now_ms = defaultdict[str, list[View]](list), self._clock.now_ms()
        starts = [task.start_ms for task in tasks if task.start_ms <= now_ms]
        oldest_ms = now_ms - limits.PROFILE_LOG_DAYS_MAX * DAYS_MS
        if starts:
            start_ms = max(min(starts), oldest_ms, EARLY_MS)
            for record, task_id, service, instance in self._snapshots.finished(start_ms, now_ms):
                at_ms = epoch_ms(record.time_bucket, self._zone)
                logs[task_id].append(_log(task_id, service, instance, at_ms))
        return logs


def _within(segment_id: str, time_ms: int, query: Mapping[str, Any]) -> bool:
    between = query["timeRange"]
    asked: bool = segment_id == query["segmentId"]
    return asked and int(between["start"]) <= time_ms <= int(between["end"])


def _stack(snapshot: profile.ThreadSnapshot) -> Stack:
    frames = tuple(snapshot.stack.codeSignatures[: limits.FRAMES_MAX])
    return Stack(snapshot.traceSegmentId, snapshot.sequence, snapshot.time, frames)


def _asked(request: Mapping[str, Any], now_ms: int) -> ProfileTask:
    """A start that lies behind is now, as none is."""
    return ProfileTask(
        id="",
        service=service_name(request["serviceId"]),
        endpoint=request["endpointName"],
        start_ms=max(request.get("startTime") or now_ms, now_ms),
        duration_min=request["duration"],
        threshold_ms=request["minDurationThreshold"],
        dump_period_ms=request["dumpPeriod"],
        samples_max=request["maxSamplingCount"],
        created_ms=now_ms,
    )


def _untimely(task: ProfileTask, now_ms: int) -> str:
    ahead_max = limits.PROFILE_DAYS_AHEAD_MAX
    late = task.start_ms - now_ms > ahead_max * DAYS_MS
    return f"a task starts within {ahead_max} days" if late else ""


def _refused(why: str) -> View:
    return {"errorReason": why, "id": None}


def _task(task: ProfileTask, logs: list[View]) -> View:
    return {
        "id": task.id,
        "serviceId": ids.service_id(task.service),
        "serviceName": task.service,
        "endpointName": task.endpoint,
        "startTime": task.start_ms,
        "duration": task.duration_min,
        "minDurationThreshold": task.threshold_ms,
        "dumpPeriod": task.dump_period_ms,
        "maxSamplingCount": task.samples_max,
        "logs": logs,
    }


def _log(task_id: str, service: str, instance: str, at_ms: int) -> View:
    return {
        "id": task_id,
        "instanceId": ids.instance_id(ids.service_id(service), instance),
        "instanceName": instance,
        "operationType": "EXECUTION_FINISHED",
        "operationTime": at_ms,
    }
