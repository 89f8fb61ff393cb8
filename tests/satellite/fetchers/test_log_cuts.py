"""A log file that is cut off, copied or written anew: each line once, whatever it begins with."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from satellite.fetchers.log_rig import Rig, expected, numbered
from skyfarer.satellite.fetchers.log.positions import Positions


async def copy_truncate(rig: Rig, to: Path) -> None:
    shutil.copy(rig.app, to)
    os.truncate(rig.app, 0)


@pytest.mark.parametrize("glob", ["app.log", "app.log*"])
def test_of_a_file_cut_off_the_copy_is_read_to_its_end(rig, run, glob: str) -> None:
    async def scenario() -> None:
        rig.append(numbered(0, 30))
        await rig.start(paths=(str(rig.logs / glob),))
        rig.append(numbered(30, 50))
        await copy_truncate(rig, rig.logs / "app.log.1")
        rig.append(numbered(50, 53))
        await rig.look()
        rig.append(numbered(53, 55))
        await rig.look()
        await rig.look(30)
        await rig.stop()

    run(scenario())
    assert rig.texts() == expected(0, 55)


def test_a_file_cut_off_and_grown_beyond_its_old_size_is_noticed(rig, run) -> None:
    async def scenario() -> None:
        rig.append(numbered(0, 10))
        await rig.start(paths=(str(rig.logs / "app.log*"),))
        await copy_truncate(rig, rig.logs / "app.log-20260101")
        rig.append(numbered(10, 100))
        await rig.look()
        await rig.look(30)
        await rig.stop()

    run(scenario())
    assert rig.texts() == expected(0, 100)


def test_a_file_written_anew_that_begins_alike_is_noticed(rig, run) -> None:
    banner = ["the same banner " + "x" * 100] * 20

    async def scenario() -> None:
        rig.append("\n".join(banner) + "\nold line\n")
        await rig.start()
        rig.app.write_text("\n".join(banner) + "\nnew line\nand one more\n")
        await rig.look()
        await rig.stop()

    run(scenario())
    assert rig.texts() == [*banner, "old line", *banner, "new line", "and one more"]


def test_a_file_written_anew_with_lines_that_end_alike_is_noticed(rig, run) -> None:
    def lines(first: int) -> list[str]:
        return [f"{number:04d} {'order taken; ' * 30}" for number in range(first, first + 100)]

    async def scenario() -> None:
        rig.append("\n".join(lines(0)) + "\n")
        await rig.start()
        rig.app.write_text("\n".join([*lines(100), *lines(200)]) + "\n")
        await rig.look()
        await rig.stop()

    run(scenario())
    assert rig.texts() == [*lines(0), *lines(100), *lines(200)]


def test_what_a_read_finds_out_is_written_down_before_its_records(rig, run) -> None:
    async def scenario() -> dict[str, int]:
        rig.append(numbered(0, 10))
        await rig.start()
        rig.append(numbered(10, 20))
        await copy_truncate(rig, rig.logs / "app.log.1")
        rig.append(numbered(20, 100))
        await rig.look()
        left_behind = Positions(rig.place / "fetcher", rig.writer)
        left_behind.start()
        await rig.stop()
        return {Path(one.path).name: one.offset for one in left_behind.places.values()}

    offsets = run(scenario())
    assert offsets == {path.name: path.stat().st_size for path in rig.logs.iterdir()}
    assert rig.texts() == expected(0, 100)


def test_a_file_cut_off_while_nobody_looked_is_noticed(rig, run) -> None:
    async def scenario() -> None:
        rig.append(numbered(0, 10))
        await rig.start()
        await rig.stop()
        rig.append(numbered(10, 20))
        await copy_truncate(rig, rig.logs / "app.log.1")
        rig.append(numbered(20, 60))
        await rig.start()
        await rig.look(30)
        await rig.stop()

    run(scenario())
    assert rig.texts() == expected(0, 60)


def test_a_copy_still_being_made_is_not_read_as_a_file_of_its_own(rig, run) -> None:
    async def scenario() -> None:
        rig.append(numbered(0, 50))
        await rig.start(paths=(str(rig.logs / "app.log*"),))
        content, copy = rig.app.read_bytes(), rig.logs / "app.log.1"
        for end in (0, 100, len(content)):
            copy.write_bytes(content[:end])
            await rig.look()
        os.truncate(rig.app, 0)
        rig.append(numbered(50, 51))
        await rig.look()
        await rig.stop()

    run(scenario())
    assert rig.texts() == expected(0, 51)


def test_a_large_copy_that_takes_long_is_not_read_as_a_file_of_its_own(rig, run) -> None:
    async def scenario() -> None:
        rig.append(numbered(0, 50))
        content, copy = rig.app.read_bytes(), rig.logs / "app.log.1"
        copy.write_bytes(content[:10])
        # Neither file was ever seen before.
        await rig.start(paths=(str(rig.logs / "app.log*"),))
        for end in (100, 200, len(content)):
            copy.write_bytes(content[:end])
            await rig.look(4)
        os.truncate(rig.app, 0)
        rig.append(numbered(50, 51))
        await rig.look()
        await rig.stop()

    run(scenario())
    assert rig.texts() == expected(0, 51)


def test_a_file_cut_off_and_then_renamed_between_two_looks_is_told_from_its_copy(rig, run) -> None:
    async def scenario() -> None:
        rig.append(numbered(0, 30))
        await rig.start(paths=(str(rig.logs / "app.log*"),))
        rig.append(numbered(30, 40))
        await copy_truncate(rig, rig.logs / "app.log.1")
        rig.append(numbered(40, 99))
        rig.app.rename(rig.logs / "app.log.2")
        rig.append(numbered(99, 101))
        await rig.look()
        await rig.look(30)
        await rig.stop()

    run(scenario())
    assert sorted(rig.texts()) == sorted(expected(0, 101))


def test_the_hole_before_what_is_written_after_a_cut_is_passed_over(rig, run) -> None:
    async def scenario() -> None:
        with rig.app.open("wb", buffering=0) as file:
            file.write(b"before\n" * 10_000)
            await rig.start()
            os.truncate(rig.app, 0)
            file.write(b"after\n")
            await rig.look()
            await rig.stop()

    run(scenario())
    assert rig.texts() == ["before"] * 10_000 + ["after"]
