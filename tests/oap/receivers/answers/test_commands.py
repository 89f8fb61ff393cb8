"""What agents are told to do, and that every call which is asked has an answer."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oap.receivers.answers.agent import Agent, Told
from oap.receivers.answers.shelf import Shelf
from skyfarer.base.errors import PermanentError
from skyfarer.oap.core.tasks import AgentCommand, TaskKind, TaskQuery
from skyfarer.oap.receivers.answers.desk import Desk
from skyfarer.oap.receivers.answers.naming import NameLengths
from skyfarer.oap.receivers.process import KEPT
from skyfarer.testing.clock import HandClock
from skyfarer.wire.messages import Commands, configuration, profile, profiler
from skyfarer.wire.rpc import RPCS, Handling, Streaming

PROFILE = profile.ProfileTaskCommandQuery(
    service="shop", serviceInstance="till", lastCommandTime=7
).SerializeToString()
ASYNC = profiler.AsyncProfilerTaskCommandQuery(service="shop").SerializeToString()
PPROF = profiler.PprofTaskCommandQuery(serviceInstance="till").SerializeToString()
SYNC = configuration.ConfigurationSyncRequest(service="shop", uuid="d1").SerializeToString()

QUERIES = {
    "/skywalking.v3.ConfigurationDiscoveryService/fetchConfigurations": (
        SYNC,
        TaskQuery(TaskKind.CONFIGURATION, "shop", digest="d1"),
    ),
    "/skywalking.v3.ProfileTask/getProfileTaskCommands": (
        PROFILE,
        TaskQuery(TaskKind.PROFILE, "shop", "till", after_ms=7),
    ),
    "/ProfileTask/getProfileTaskCommands": (
        b"\x08\x02\x10\x03\x18\x07",  # ids, as a v2 agent has them
        TaskQuery(TaskKind.PROFILE, after_ms=7),
    ),
    "/skywalking.v10.AsyncProfilerTask/getAsyncProfilerTaskCommands": (
        ASYNC,
        TaskQuery(TaskKind.ASYNC_PROFILER, "shop"),
    ),
    "/skywalking.v10.PprofTask/getPprofTaskCommands": (
        PPROF,
        TaskQuery(TaskKind.PPROF, instance="till"),
    ),
    "/skywalking.v3.EBPFProfilingService/queryTasks": (
        b"anything",
        TaskQuery(TaskKind.EBPF_PROFILING),
    ),
    "/skywalking.v3.ContinuousProfilingService/queryPolicies": (
        b"anything",
        TaskQuery(TaskKind.CONTINUOUS_PROFILING),
    ),
}


@pytest.mark.parametrize("path", QUERIES)
def test_what_there_is_to_do_is_told_as_commands(path: str) -> None:
    request, query = QUERIES[path]
    tasks = Told(AgentCommand("ProfileTaskQuery", (("SerialNumber", "1"), ("TaskId", "t"))))
    outcome = Desk(Shelf(), tasks, NameLengths(), HandClock()).handlers[path](request)
    (command,) = Commands.FromString(outcome.payload).commands
    assert command.command == "ProfileTaskQuery"
    assert [(one.key, one.value) for one in command.args] == [
        ("SerialNumber", "1"),
        ("TaskId", "t"),
    ]
    assert tasks.queries == [query]


@settings(max_examples=300, deadline=None)
@given(path=st.sampled_from(sorted(Agent().desk.handlers)), request=st.binary(max_size=64))
def test_whatever_bytes_come_they_are_answered_or_refused_for_good(
    path: str, request: bytes
) -> None:
    try:
        outcome = Agent().desk.handlers[path](request)
    except PermanentError:
        return
    assert len(outcome.keep) <= 64


def test_every_call_that_is_asked_is_answered_and_no_other() -> None:
    asked = {
        rpc.path
        for rpc in RPCS
        if rpc.handling is Handling.ASK
        and rpc.path not in KEPT
        and rpc.streaming is not Streaming.BIDI
    }
    assert set(Agent().desk.handlers) == asked
