"""`skyfarer oap ttl` against the door of an OAP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import pytest

from contracts.expiry_contract import NOON
from contracts.storage_contract import batch, segment
from oap.ttl.cluster_of import DAYS, PERIOD_S, Told
from skyfarer.cli.main import main
from skyfarer.oap.admin.door import Door
from skyfarer.oap.admin.ttl import TtlDesk
from skyfarer.oap.core.cluster import Node
from skyfarer.oap.storage.embedded import EmbeddedStorage
from skyfarer.oap.ttl.keeper import Keeper, KeeperSettings
from skyfarer.oap.ttl.sight import Sight
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.clock import HandClock

DAY_MS = 86_400_000
HEADS = "model             kept    would go                  waits     stays"


class Rig:
    """Seven days of segments, three of which are kept."""

    def __init__(self, directory: Path) -> None:
        self.clock, self.coordinator = HandClock(NOON), Told([Node("a", 1, is_self=True)])
        self.storage = EmbeddedStorage(clock=self.clock)
        self.storage.start(directory / "skyfarer.duckdb", UTC)
        for ago in range(7):
            self.storage.apply(batch(ago, ago + 1, [segment(f"s{ago}", NOON - ago * DAY_MS)]))
        desk, registry = TtlDesk(), Registry()
        desk.open(
            Keeper(
                KeeperSettings(DAYS, PERIOD_S, "a"),
                *(self.storage, self.coordinator),
                Sight(DAYS, PERIOD_S, registry, Health(), self.clock),
                *(registry, self.clock),
            )
        )
        self.door = Door(directory, desk.verbs)
        self.door.start()

    def stop(self) -> None:
        self.door.stop(10)
        self.storage.stop()


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    monkeypatch.setenv("SKYFARER_DATA_DIR", str(tmp_path))
    rig = Rig(tmp_path)
    yield rig
    rig.stop()


def run(*arguments: str) -> int:
    return main(["oap", "ttl", *arguments])


def test_dry_run_shows_what_would_go_and_changes_nothing(
    rig: Rig, capsys: pytest.CaptureFixture[str]
) -> None:
    before = rig.storage.day_tables()
    assert run("--dry-run") == 0
    assert capsys.readouterr().out.splitlines() == [
        HEADS,
        "segment           record  20261109 to 20261111 (3)  20261112  20261113 to 20261115 (3)",
        "tag_autocomplete  record  20261109 to 20261111 (3)  20261112  20261113 to 20261115 (3)",
        "",
        "today is 20261115: records are kept from 20261113 on, metrics from 20261109",
        "6 tables would go with the next run",
        "2 more have expired, and wait for the runs after it, or for --force",
    ]
    rig.coordinator.listed = []
    assert run("--dry-run", "--force") == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "8 tables would go with the next run",
        "not by this node: the list of nodes is empty, and this node cannot tell whether it is one"
        " of them",
    ]
    assert rig.storage.day_tables() == before


def test_dry_run_tells_of_a_clock_that_no_data_confirms(
    rig: Rig, capsys: pytest.CaptureFixture[str]
) -> None:
    rig.clock.seconds += DAY_MS / 1000
    assert run("--dry-run") == 0
    assert capsys.readouterr().out.splitlines()[-4:] == [
        "today is 20261115: records are kept from 20261113 on, metrics from 20261109",
        "6 tables would go with the next run",
        "the clock says 20261116, and there is no data of a day after 20261115: what has expired by"
        " the clock alone waits for it, or for --force",
        "2 more have expired, and wait for the runs after it, or for --force",
    ]
    assert run("--dry-run", "--force") == 0
    assert "10 tables would go with the next run" in capsys.readouterr().out


def test_now_runs_the_keeper_once_under_its_rules(
    rig: Rig, capsys: pytest.CaptureFixture[str]
) -> None:
    rig.coordinator.listed = [Node("0", 1), Node("a", 1, is_self=True)]
    assert run("--now") == 1
    assert capsys.readouterr().out == (
        "0 tables dropped, 8 expired ones left;"
        " the first node is 0_1, and this one is number 2 of the list\n"
    )
    rig.coordinator.listed = [Node("a", 1, is_self=True)]
    assert run("--now") == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "dropped segment of 20261109"
    assert said[-1] == "6 tables dropped, 2 expired ones left"
    assert run("--now", "--force") == 0
    assert run("--now") == 0
    assert capsys.readouterr().out.endswith("0 tables dropped, 0 expired ones left\n")
    assert {one.day for one in rig.storage.day_tables()} == {20261113, 20261114, 20261115}
    assert run("--dry-run") == 0
    assert "nothing has expired" in capsys.readouterr().out


def test_both_speak_json(rig: Rig, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--dry-run", "--json") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[0]["model"] == {
        "model": "segment",
        "kept": "record",
        "goes": [20261109, 20261110, 20261111],
        "waits": [20261112],
        "stays": [20261113, 20261114, 20261115],
    }
    assert lines[-1] == {
        "today": 20261115,
        "clocks_day": 20261115,
        "first_days": {"record": 20261113, "metrics": 20261109},
        "why": "",
    }
    assert run("--now", "--json") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == {"dropped": {"model": "segment", "day": 20261109, "kept": "record"}}
    assert lines[-1] == {"outcome": "dropped", "why": "", "left": 2}


def test_t05_a_clock_that_was_set_is_told_by_both(
    rig: Rig, capsys: pytest.CaptureFixture[str]
) -> None:
    rig.clock.set_ahead(DAY_MS)
    assert run("--dry-run") == 1
    assert "clock was set ahead by 1 day, 0:00:00 since the last run" in capsys.readouterr().err
    assert run("--now") == 1
    assert "0 tables dropped" in capsys.readouterr().out


def test_it_wants_to_be_told_which(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ((), ("--dry-run", "--now")):
        with pytest.raises(SystemExit) as end:
            run(*arguments)
        assert end.value.code == 2
    assert "--dry-run" in capsys.readouterr().err
