"""`make test` splits the tests into lanes, and none may fall between two of them."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[1]


def takes(command: list[str], file: str) -> bool:
    def under(paths: list[str]) -> bool:
        return any(Path(file).is_relative_to(path) for path in paths)

    ignored = [word.removeprefix("--ignore=") for word in command if word.startswith("--ignore=")]
    return under([word for word in command if word.startswith("tests")]) and not under(ignored)


def test_every_test_file_is_run_by_one_lane() -> None:
    commands = [
        lane.command() for lane in runpy.run_path(str(ROOT / "tools/run_tests.py"))["LANES"]
    ]
    files = [str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")]
    assert files
    lanes = {file: sum(takes(command, file) for command in commands) for file in files}
    assert {file: number for file, number in lanes.items() if number != 1} == {}


def test_every_path_of_a_lane_exists() -> None:
    lanes = runpy.run_path(str(ROOT / "tools/run_tests.py"))["LANES"]
    assert [path for lane in lanes for path in lane.paths if not (ROOT / path).exists()] == []


def test_a_lane_waits_for_lanes_that_come_to_an_end() -> None:
    lanes = runpy.run_path(str(ROOT / "tools/run_tests.py"))["LANES"]
    waiting, ended = {lane.name: set(lane.after) for lane in lanes}, set[str]()
    while ready := {name for name, after in waiting.items() if after <= ended} - ended:
        ended |= ready
    assert ended == waiting.keys()
