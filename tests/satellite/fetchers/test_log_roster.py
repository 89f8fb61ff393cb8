"""Which file is read when."""

from __future__ import annotations

from pathlib import Path

import pytest

from satellite.fetchers.log_rig import settings
from skyfarer.queue.writer import Writer
from skyfarer.satellite.fetchers.log.collector import Collector
from skyfarer.satellite.fetchers.log.config import LogFetcherConfig, MultilineConfig
from skyfarer.satellite.fetchers.log.positions import Positions
from skyfarer.satellite.fetchers.log.roster import Roster
from skyfarer.satellite.fetchers.log.sighting import is_rotated_name
from skyfarer.telemetry.metrics import Registry

MULTILINE = MultilineConfig(first_line="E")


@pytest.fixture
def roster(tmp_path: Path):
    writer = Writer(settings(tmp_path / "queue"))
    writer.start()
    positions = Positions(tmp_path / "fetcher", writer)
    positions.start()
    config = LogFetcherConfig((str(tmp_path / "app.log*"),), "orders", multiline=MULTILINE)
    made = Roster(config, positions, Registry())
    made.start(0.0)
    yield made
    made.stop()
    positions.stop()
    writer.stop(0.0)


def due(roster: Roster, now_s: float) -> list[str]:
    return [Path(collector.place.path).name for collector in roster.due(now_s)]


def read(roster: Roster, collector: Collector, now_s: float) -> list[bytes]:
    """As the fetcher does, but for the queue."""
    found = []
    assert roster.ready(collector)
    while (haul := collector.read(now_s)) is not None:
        found += haul.cut.texts
        collector.place.offset += haul.cut.used - sum(piece.width for piece in haul.pieces[:-1])
    return found


def test_of_a_row_of_rotated_files_only_the_oldest_is_due(roster, tmp_path: Path) -> None:
    """The unfinished end of one goes to its heir only when all before it are at their end."""
    app = tmp_path / "app.log"
    for number in range(3):
        app.write_text(f"E{number}\n" * 200_000)
        roster.survey(number / 10)
        app.rename(tmp_path / f"app.log.{number}")
    app.write_text("E3\n")
    roster.survey(0.3)

    assert due(roster, 0.3) == ["app.log.0"]
    assert len(read(roster, roster.due(0.3)[0], 0.3)) == 199_999
    assert due(roster, 0.3) == ["app.log.1"]


def test_a_rotated_file_that_goes_on_growing_keeps_its_end(roster, tmp_path: Path) -> None:
    app, old = tmp_path / "app.log", tmp_path / "app.log.1"
    app.write_text("E1\n at\n")
    roster.survey(0.0)
    read(roster, roster.due(0.0)[0], 0.0)
    app.rename(old)
    app.write_text("E2\nE3\n")
    roster.survey(1.0)
    (heir,) = roster.due(1.0)
    with old.open("a") as file:
        file.write(" at\nE4\n at ha")

    assert read(roster, heir, 1.0) == []
    assert due(roster, 1.0) == ["app.log.1"]


def test_a_file_renamed_since_the_last_survey_keeps_its_heir_waiting(
    roster, tmp_path: Path
) -> None:
    """It cannot be opened by its old name; that does not mean that it is at its end."""
    app = tmp_path / "app.log"
    app.write_text("E1\n" * 1000)
    roster.survey(0.0)
    (old,) = roster.due(0.0)
    app.rename(tmp_path / "app.log.1")
    app.write_text("E2\n")
    assert not roster.ready(old)
    assert due(roster, 0.0) == []
    roster.survey(0.1)

    assert due(roster, 0.1) == ["app.log.1"]


@pytest.mark.parametrize(
    ("name", "other", "rotated"),
    [
        ("/a/app.log", "/a/app.log.1", True),
        ("/a/app.log", "/a/app-2026-01-01.log", True),
        ("/a/app.log", "/a/app.log", False),
        ("/a/app.log", "/b/app.log.1", False),
        ("/a/app.log", "/a/sub/app.log.1", False),
        ("/a/app-1.log", "/a/app-2.log", False),
        ("/a/app", "/a/app.1", True),
        ("/a/1.log", "/a/10.log", False),
        ("/a/a.log", "/a/app.log", False),
    ],
)
def test_names_that_a_rotation_makes_are_known(name: str, other: str, rotated: bool) -> None:
    assert is_rotated_name(name, other) is rotated
