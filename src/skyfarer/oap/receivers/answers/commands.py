"""Agents ask what there is to do: dynamic configuration and the tasks of profilers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from skyfarer.oap.core.tasks import AgentCommand, TaskKind, TaskQuery, TaskReader
from skyfarer.oap.receivers.answers.outcome import Handler, Outcome, decoded
from skyfarer.wire.messages import (
    Command,
    Commands,
    KeyStringValuePair,
    configuration,
    profile,
    profiler,
)

Query = Callable[[bytes], TaskQuery]


def handler(query: Query, tasks: TaskReader) -> Handler:
    def answered(request: bytes) -> Outcome:
        return Outcome(_encoded(tasks.commands(query(request))))

    return answered


def configuration_query(request: bytes) -> TaskQuery:
    told = decoded(configuration.ConfigurationSyncRequest(), request)
    return TaskQuery(TaskKind.CONFIGURATION, told.service, digest=told.uuid)


def profile_query(request: bytes) -> TaskQuery:
    """A v2 agent sends ids where this message has names, which leaves the names empty."""
    told = decoded(profile.ProfileTaskCommandQuery(), request)
    return TaskQuery(
        TaskKind.PROFILE, told.service, told.serviceInstance, after_ms=told.lastCommandTime
    )


def async_profiler_query(request: bytes) -> TaskQuery:
    told = decoded(profiler.AsyncProfilerTaskCommandQuery(), request)
    return TaskQuery(
        TaskKind.ASYNC_PROFILER, told.service, told.serviceInstance, after_ms=told.lastCommandTime
    )


def pprof_query(request: bytes) -> TaskQuery:
    told = decoded(profiler.PprofTaskCommandQuery(), request)
    return TaskQuery(
        TaskKind.PPROF, told.service, told.serviceInstance, after_ms=told.lastCommandTime
    )


def undescribed_query(kind: TaskKind) -> Query:
    """Of a protocol whose messages we have no description of."""
    return partial(_bare, kind)


def _bare(kind: TaskKind, _request: bytes) -> TaskQuery:
    return TaskQuery(kind)


def _encoded(commands: Sequence[AgentCommand]) -> bytes:
    return Commands(
        commands=[
            Command(
                command=one.name,
                args=[KeyStringValuePair(key=key, value=value) for key, value in one.arguments],
            )
            for one in commands
        ]
    ).SerializeToString()
