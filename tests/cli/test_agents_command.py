"""`skyfarer oap settings …` and `skyfarer oap profile …` against the door of an OAP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import pytest

from contracts.tasks_contract import NOW
from skyfarer.base.errors import PermanentError
from skyfarer.cli.main import main
from skyfarer.oap.admin.door import Door, ask
from skyfarer.oap.admin.tasks import TaskDesk
from skyfarer.oap.core.tasks import TaskKind, TaskQuery
from skyfarer.oap.core.told import StoredTasks
from skyfarer.oap.storage.embedded import EmbeddedStorage
from skyfarer.testing.clock import HandClock

FILE = """\
configurations:
  shop:
    trace.sample_rate: 1000
    trace.ignore_path: "/health/${x}/*"
    enabled: true
  cart: {a: "0.50"}
"""


class Rig:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.clock = HandClock(NOW)
        self.storage = EmbeddedStorage()
        self.door = Door(directory, TaskDesk(self.storage, self.clock).verbs)

    def told(self, query: TaskQuery) -> list[dict[str, str]]:
        commands = StoredTasks(self.storage, self.clock).commands(query)
        return [dict(one.arguments) for one in commands]


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    monkeypatch.setenv("SKYFARER_DATA_DIR", str(tmp_path))
    rig = Rig(tmp_path)
    rig.storage.start(tmp_path / "storage.duckdb", UTC)
    rig.door.start()
    yield rig
    rig.door.stop(10)
    rig.storage.stop()


def run(*arguments: str) -> int:
    return main(["oap", *arguments])


def test_a_file_of_settings_is_applied_and_told_to_agents(
    rig: Rig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "agents.yaml"
    file.write_text(FILE)
    assert run("settings", "list") == 0
    assert run("settings", "apply", str(file)) == 0
    assert run("settings", "list") == 0
    assert capsys.readouterr().out.splitlines() == [
        "no agent has settings",
        "settings of 2 services; agents have them when they ask next",
        "service  key                value",
        "cart     a                  0.50",
        "shop     enabled            true",
        "shop     trace.ignore_path  /health/${x}/*",
        "shop     trace.sample_rate  1000",
    ]
    (told,) = rig.told(TaskQuery(TaskKind.CONFIGURATION, "shop"))
    assert told["trace.sample_rate"] == "1000"
    file.write_text("configurations:\n")
    assert run("settings", "apply", str(file)) == 0
    capsys.readouterr()
    assert run("settings", "list", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("shop: {a: 1}", "must have 'configurations' at its top"),
        ("configurations: {shop: x}", "configurations.shop must have keys and values"),
        ("configurations: {shop: {a: [1]}}", "configurations.shop.a must be one value"),
        ("configurations: [", "is not YAML"),
    ],
)
def test_a_wrong_file_changes_nothing_and_is_one_sentence(
    rig: Rig, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, complaint: str
) -> None:
    rig.storage.replace_agent_settings({"shop": {"a": "1"}})
    file = tmp_path / "agents.yaml"
    file.write_text(text)
    assert run("settings", "apply", str(file)) == 2
    said = capsys.readouterr().err
    assert complaint in said
    assert said.count("\n") == 1
    assert rig.storage.agent_settings() == {"shop": {"a": "1"}}


def test_a_profile_task_is_created_listed_and_told(
    rig: Rig, capsys: pytest.CaptureFixture[str]
) -> None:
    create = ("profile", "create", "--service", "shop", "--endpoint", "/pay", "--minutes", "2")
    assert run("profile", "list") == 0
    assert run(*create) == 0
    assert run("profile", "list") == 0
    identifier = f"{NOW}_c2hvcA==.1"
    assert capsys.readouterr().out.splitlines() == [
        "no agent is to profile anything",
        f"task {identifier}; agents have it when they ask next",
        "id" + " " * 24 + "service  endpoint  starts                minutes  threshold ms  samples",
        f"{identifier}  shop     /pay      2025-11-15 12:00:00Z        2             0        5",
    ]
    (told,) = rig.told(TaskQuery(TaskKind.PROFILE, "shop"))
    assert (told["TaskId"], told["Duration"]) == (identifier, "2")
    assert run(*create) == 1
    assert "is profiled at that time already" in capsys.readouterr().err
    rig.clock.seconds += 120
    assert run("profile", "list", "--json") == 0
    assert capsys.readouterr().out == ""
    assert run("profile", "list", "--json", "--all") == 0
    assert json.loads(capsys.readouterr().out)["id"] == identifier


def test_a_task_that_no_agent_can_do_is_refused(
    rig: Rig, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("profile", "create", "--service", "s", "--endpoint", "/", "--period", "9") == 1
    assert "every 10 ms" in capsys.readouterr().err
    assert rig.storage.profile_tasks(0) == []


@pytest.mark.parametrize(
    "question",
    [
        {"ask": "settings.apply"},
        {"ask": "settings.apply", "settings": {"shop": {"a": 1}}},
        {"ask": "settings.apply", "settings": {"shop": dict.fromkeys(map(str, range(101)), "")}},
        {"ask": "profile.create", "service": 7},
        {"ask": "profile.create", "start_ms": 0, "service": "s", "endpoint": "e"},
    ],
)
def test_a_question_that_makes_no_sense_is_refused(rig: Rig, question: dict[str, object]) -> None:
    with pytest.raises(PermanentError, match=r'the OAP answers: (settings are|a service has|")'):
        list(ask(rig.directory, question))
