"""What happens to a log file: it grows, is renamed, deleted, replaced."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from satellite.fetchers.log_rig import NOW_MS, expected, logs_in, numbered


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_line_becomes_a_log_of_the_service_with_its_file_as_a_tag(rig, run) -> None:
    async def scenario() -> None:
        rig.append("it works\n")
        await rig.start(service_instance="orders-1", tags={"env": "test"})
        await rig.stop()

    run(scenario())
    (log,) = logs_in(rig.queue)
    assert (log.service, log.serviceInstance, log.layer) == ("orders", "orders-1", "GENERAL")
    assert NOW_MS <= log.timestamp <= NOW_MS + 10_000
    assert log.body.text.text == "it works"
    assert {pair.key: pair.value for pair in log.tags.data} == {
        "log.file.path": str(rig.app),
        "env": "test",
    }


def test_each_matching_file_is_read_and_no_other(rig, run) -> None:
    async def scenario() -> None:
        rig.append("a\n", rig.logs / "a.log")
        rig.append("b\n", rig.logs / "b.log")
        rig.append("no\n", rig.logs / "c.txt")
        rig.append("no\n", rig.logs / "d.log.gz")
        (rig.logs / "directory.log").mkdir()
        await rig.start(paths=(str(rig.logs / "*.log"), str(rig.logs / "*.gz")))
        rig.append("new\n", rig.logs / "e.log")
        await rig.look()
        await rig.stop()

    run(scenario())
    assert sorted(rig.texts()) == ["a", "b", "new"]


def test_a_line_without_its_newline_waits_for_it(rig, run) -> None:
    async def scenario() -> None:
        rig.append("whole\nha")
        await rig.start()
        assert rig.texts() == ["whole"]
        rig.append("lf\n")
        await rig.look()
        await rig.stop()

    run(scenario())
    assert rig.texts() == ["whole", "half"]


def test_a_restart_goes_on_where_it_was(rig, run) -> None:
    async def scenario() -> None:
        rig.append(numbered(0, 5))
        await rig.start()
        rig.append(numbered(5, 8))
        await rig.restart()
        await rig.restart()
        await rig.stop()

    run(scenario())
    assert rig.texts() == expected(0, 8)


def test_a_file_there_before_the_first_start_may_be_left_alone_and_only_then(rig, run) -> None:
    async def scenario() -> None:
        rig.append("old\nold and half")
        await rig.start(start_at="end")
        rig.append(" done\nnew\n")
        rig.append("of another file\n", rig.logs / "b.log")
        await rig.look()
        rig.append("while away\n", rig.logs / "c.log")
        await rig.restart()
        await rig.stop()

    run(scenario())
    assert rig.texts() == ["old and half done", "new", "of another file", "while away"]


@pytest.mark.parametrize("glob", ["app.log", "app.log*"])
def test_a_renamed_file_is_read_to_its_end_before_the_new_one(rig, run, glob: str) -> None:
    async def scenario() -> None:
        rig.append(numbered(0, 3))
        await rig.start(paths=(str(rig.logs / glob),))
        rig.append(numbered(3, 5))
        rig.app.rename(rig.logs / "app.log.1")
        rig.append(numbered(5, 8))
        rig.append(numbered(8, 9), rig.logs / "app.log.1")
        await rig.look()
        rig.append(numbered(9, 10), rig.logs / "app.log.1")
        await rig.look()
        await rig.look(30)
        await rig.stop()

    run(scenario())
    order = [*range(5), 8, 5, 6, 7, 9]
    assert rig.texts() == [f"line {number}" for number in order]


@pytest.mark.parametrize("glob", ["app.log", "app.log*"])
def test_a_file_renamed_while_nobody_looked_is_found_again(rig, run, glob: str) -> None:
    async def scenario() -> None:
        rig.append(numbered(0, 3))
        await rig.start(paths=(str(rig.logs / glob),))
        await rig.stop()
        rig.append(numbered(3, 5))
        rig.app.rename(rig.logs / "app.log.1")
        rig.append(numbered(5, 8))
        await rig.start()
        await rig.look()
        await rig.stop()

    run(scenario())
    assert rig.texts() == expected(0, 8)


def test_the_last_line_of_a_rotated_file_needs_no_newline(rig, run) -> None:
    async def scenario() -> None:
        rig.append("first\nlast words")
        await rig.start(paths=(str(rig.app),))
        rig.app.rename(rig.logs / "app.log.1")
        await rig.look()
        assert rig.texts() == ["first"]
        await rig.look(30)
        await rig.stop()

    run(scenario())
    assert rig.texts() == ["first", "last words"]


@pytest.mark.parametrize("restarted", [False, True])
def test_a_file_that_was_away_for_a_moment_is_not_taken_for_rotated(rig, run, restarted) -> None:
    async def scenario() -> None:
        rig.append("first\n")
        await rig.start()
        rig.app.rename(rig.logs / "elsewhere")
        await rig.look()
        if restarted:
            await rig.restart()
        (rig.logs / "elsewhere").rename(rig.app)
        rig.append("ha")
        await rig.look()
        await rig.look(30)
        rig.append("lf\n")
        await rig.look()
        await rig.stop()

    run(scenario())
    assert rig.texts() == ["first", "half"]


def test_two_files_that_begin_alike_are_both_read(rig, run) -> None:
    async def scenario() -> None:
        rig.append("the same banner\n")
        await rig.start(paths=(str(rig.logs / "app.log*"),))
        rig.append("the same banner\n", rig.logs / "app.log.other")
        await rig.look()
        await rig.look(30)
        await rig.stop()

    run(scenario())
    assert rig.texts() == ["the same banner"] * 2


def test_a_deleted_file_is_read_to_its_end_while_it_is_open(rig, run) -> None:
    async def scenario() -> None:
        with rig.app.open("ab", buffering=0) as file:
            file.write(b"one\n")
            await rig.start()
            rig.app.unlink()
            file.write(b"two\n")
            await rig.look()
            file.write(b"three\n")
            await rig.look()
        await rig.look(30)
        assert rig.metric("gatherer_log_files{") == 0
        await rig.stop()

    run(scenario())
    assert rig.texts() == ["one", "two", "three"]


def test_another_file_with_the_inode_of_a_deleted_one_is_read_from_its_beginning(rig, run) -> None:
    async def scenario() -> None:
        rig.append(numbered(0, 100))
        await rig.start()
        inode = rig.app.stat().st_ino
        await rig.stop()
        # The same inode with other contents, as the file system may give it to a new file.
        rig.app.write_text("quite another beginning\n" + "x" * 5000 + "\n")
        assert rig.app.stat().st_ino == inode
        await rig.start()
        await rig.stop()

    run(scenario())
    assert rig.texts() == [*expected(0, 100), "quite another beginning", "x" * 5000]


def test_more_files_than_may_be_open_are_all_read(rig, run) -> None:
    async def scenario() -> None:
        for number in range(20):
            rig.append(numbered(0, 3), rig.logs / f"{number}.log")
        await rig.start(max_open_files=4)
        before = open_files()
        for number in range(20):
            rig.append(numbered(3, 6), rig.logs / f"{number}.log")
        await rig.look()
        assert open_files() <= before
        await rig.stop()

    run(scenario())
    assert sorted(rig.texts()) == sorted(expected(0, 6) * 20)


def test_files_beyond_the_bound_are_left_alone_and_it_is_said(rig, run, caplog) -> None:
    async def scenario() -> None:
        for number in range(5):
            rig.append("x\n", rig.logs / f"{number}.log")
        await rig.start(max_files=3)
        await rig.look()
        await rig.stop()

    run(scenario())
    assert len(rig.texts()) == 3
    assert [one.message for one in caplog.records] == ["2 files are not read: max_files is 3"]


def test_a_file_that_may_not_be_read_does_not_keep_others_from_it(rig, run, caplog) -> None:
    async def scenario() -> None:
        rig.append("secret\n")
        (rig.logs / "a.log").symlink_to("/proc/self/mem")
        rig.append("open\n", rig.logs / "b.log")
        await rig.start()
        await rig.stop()

    run(scenario())
    assert sorted(rig.texts()) == ["open", "secret"]


def test_a_file_of_several_names_is_read_once_and_not_taken_for_renamed(rig, run) -> None:
    async def scenario() -> None:
        rig.append(numbered(0, 3))
        (rig.logs / "aaa.log").symlink_to(rig.app)
        os.link(rig.app, rig.logs / "zzz.log")
        await rig.start()
        for name in ("bbb.log", "yyy.log"):
            os.link(rig.app, rig.logs / name)
            await rig.look()
        rig.append(numbered(3, 5))
        await rig.look()
        await rig.stop()

    run(scenario())
    assert rig.texts() == expected(0, 5)
    assert rig.metric("gatherer_log_rotations_total{") == 0


def test_what_is_not_read_yet_is_shown(rig, run) -> None:
    async def scenario() -> None:
        rig.append("12345")
        await rig.start()
        assert rig.metric("gatherer_log_unread_bytes{") == 5
        assert rig.metric("gatherer_log_files{") == 1
        await rig.stop()

    run(scenario())


def test_stopping_is_safe_twice_and_unstarted(rig, run) -> None:
    async def scenario() -> None:
        await rig.start()
        await rig.fetcher.stop(1.0)
        await rig.stop()

    run(scenario())
