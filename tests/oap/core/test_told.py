"""What agents are told of settings and tasks, and how often storage is asked for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contracts.tasks_contract import MINUTE, NOW, TASK
from skyfarer.oap.core.tasks import (
    AgentCommand,
    AgentSettings,
    ProfileTask,
    TaskKind,
    TaskQuery,
)
from skyfarer.oap.core.told import REFRESH_S, StoredTasks, digest
from skyfarer.testing.clock import HandClock


class Tables:
    """`TaskTables` in memory."""

    def __init__(self) -> None:
        self.settings: AgentSettings = {}
        self.tasks: list[ProfileTask] = []
        self.reads = 0

    def agent_settings(self) -> AgentSettings:
        self.reads += 1
        return self.settings

    def replace_agent_settings(self, settings: AgentSettings) -> None:
        self.settings = settings

    def profile_tasks(self, ending_after_ms: int) -> list[ProfileTask]:
        return [task for task in self.tasks if task.end_ms > ending_after_ms]

    def add_profile_task(self, task: ProfileTask) -> ProfileTask:
        self.tasks.append(task)
        return task


class Rig:
    def __init__(self) -> None:
        self.tables = Tables()
        self.clock = HandClock(NOW)
        self._tasks = StoredTasks(self.tables, self.clock)

    def told(self, query: TaskQuery) -> list[AgentCommand]:
        """As told a moment after all that was written."""
        self.clock.seconds += REFRESH_S
        return list(self._tasks.commands(query))

    def settings(self, digest: str = "", service: str = "shop") -> list[dict[str, str]]:
        commands = self.told(TaskQuery(TaskKind.CONFIGURATION, service, digest=digest))
        assert all(one.name == "ConfigurationDiscoveryCommand" for one in commands)
        return [dict(one.arguments) for one in commands]

    def profiles(self, after_ms: int = 0, service: str = "shop") -> list[dict[str, str]]:
        commands = self.told(TaskQuery(TaskKind.PROFILE, service, "shop-1", after_ms=after_ms))
        assert all(one.name == "ProfileTaskQuery" for one in commands)
        return [dict(one.arguments) for one in commands]


def test_where_nothing_is_configured_nobody_is_told_anything() -> None:
    rig = Rig()
    assert [rig.told(TaskQuery(kind, "shop")) for kind in TaskKind] == [[]] * len(TaskKind)


def test_settings_are_told_until_the_agent_has_them() -> None:
    rig = Rig()
    rig.tables.settings = {"shop": {"b": "2", "a": "1"}}
    (told,) = rig.settings()
    assert list(told) == ["SerialNumber", "UUID", "a", "b"]
    assert (told["a"], told["b"]) == ("1", "2")
    assert rig.settings(told["UUID"]) == []
    assert rig.settings(service="cart") == []
    rig.tables.settings = {"shop": {"a": "1"}}
    (changed,) = rig.settings(told["UUID"])
    assert changed["UUID"] != told["UUID"]


def test_an_agent_whose_settings_are_gone_is_told_so_once() -> None:
    rig = Rig()
    (told,) = rig.settings(digest({"a": "1"}))
    assert list(told) == ["SerialNumber", "UUID"]
    assert rig.settings(told["UUID"]) == []


def test_a_digest_depends_on_the_settings_alone() -> None:
    assert digest({"a": "1", "b": "2"}) == digest({"b": "2", "a": "1"})
    assert len({digest(one) for one in ({}, {"a": "1"}, {"a": "1,b"}, {"a": "", "1": ""})}) == 4


def test_a_profile_task_is_told_to_who_has_not_heard_of_it_until_it_is_over() -> None:
    rig = Rig()
    rig.tables.tasks = [replace(TASK, id="t")]
    (told,) = rig.profiles()
    del told["SerialNumber"]
    assert told == {
        "TaskId": "t",
        "EndpointName": "/pay",
        "Duration": "5",
        "MinDurationThreshold": "100",
        "DumpPeriod": "10",
        "MaxSamplingCount": "3",
        "StartTime": str(NOW),
        "CreateTime": str(NOW),
    }
    assert rig.profiles(after_ms=NOW) == []
    assert rig.profiles(service="cart") == []
    rig.clock.seconds += 5 * MINUTE / 1000
    assert rig.profiles() == []


def test_a_task_that_ends_between_two_looks_is_not_told_any_more() -> None:
    rig = Rig()
    rig.tables.tasks = [replace(TASK, start_ms=NOW - TASK.duration_min * MINUTE + 4000)]
    assert len(rig.profiles()) == 1
    rig.clock.seconds += REFRESH_S / 2
    assert rig._tasks.commands(TaskQuery(TaskKind.PROFILE, "shop")) == []


def test_storage_is_asked_at_most_every_few_seconds_however_many_agents_ask() -> None:
    rig = Rig()
    for _ in range(100):
        rig._tasks.commands(TaskQuery(TaskKind.CONFIGURATION, "shop"))
    assert rig.tables.reads == 1
    rig.settings()
    assert rig.tables.reads == 2


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"service": ""}, "a service has"),
        ({"endpoint": " "}, "an endpoint has"),
        ({"duration_min": 0}, "1 to 15 minutes"),
        ({"duration_min": 16}, "1 to 15 minutes"),
        ({"threshold_ms": -1}, "the threshold"),
        ({"dump_period_ms": 9}, "every 10 ms"),
        ({"samples_max": 0}, "1 to 9 requests"),
        ({"samples_max": 10}, "1 to 9 requests"),
        ({}, ""),
    ],
)
def test_a_task_that_no_agent_can_do_is_known(wrong: dict[str, int], problem: str) -> None:
    said = replace(TASK, **wrong).problem()
    assert said.find(problem) == 0 or problem in said
    assert bool(said) == bool(problem)
