"""Lines that belong together, in files that are rotated between them."""

from __future__ import annotations

import os
import shutil

import pytest

from satellite.fetchers.log_rig import Rig
from skyfarer.satellite.fetchers.log.config import MultilineConfig

MULTILINE = MultilineConfig(first_line=r"\d{4}-", timeout="3s")


def trace(number: int, depth: int = 3) -> str:
    lines = [f"2026-01-01 ERROR event {number}"]
    lines += [
        "java.lang.IllegalStateException: no",
        *(f"\tat com.Example.m{n}" for n in range(depth)),
    ]
    return "\n".join(lines)


def whole(*numbers: int) -> str:
    return "".join(trace(number) + "\n" for number in numbers)


async def started(rig: Rig, content: str, **keys) -> None:
    rig.append(content)
    await rig.start(paths=(str(rig.logs / "app.log*"),), multiline=MULTILINE, **keys)


def test_an_event_is_taken_when_the_next_begins_or_after_the_timeout(rig, run) -> None:
    async def scenario() -> None:
        await started(rig, whole(1, 2))
        assert rig.texts() == [trace(1)]
        await rig.look(1)
        assert rig.texts() == [trace(1)]
        await rig.look(3)
        await rig.stop()

    run(scenario())
    assert rig.texts() == [trace(1), trace(2)]


def test_an_event_that_grows_slowly_stays_whole(rig, run) -> None:
    async def scenario() -> None:
        await started(rig, "2026-01-01 ERROR\n")
        for number in range(5):
            await rig.look(1.5)
            rig.append(f"\tat {number}\n")
        await rig.look(1.5)
        await rig.look(3)
        await rig.stop()

    run(scenario())
    assert rig.texts() == ["2026-01-01 ERROR\n" + "\n".join(f"\tat {n}" for n in range(5))]


def test_events_stay_whole_across_blocks(rig, run) -> None:
    events = [trace(number, depth=number % 400) for number in range(400)]

    async def scenario() -> None:
        await started(rig, "".join(event + "\n" for event in events))
        await rig.look(3)
        await rig.stop()

    run(scenario())
    assert rig.app.stat().st_size > 3 * 512 * 1024
    assert rig.texts() == events


def test_an_event_begun_before_a_renaming_is_whole(rig, run) -> None:
    async def scenario() -> None:
        await started(rig, whole(1) + "2026-01-01 ERROR\n\tat one\n")
        rig.app.rename(rig.logs / "app.log.1")
        rig.append("\tat two\n", rig.logs / "app.log.1")
        await rig.look()
        rig.append("\tat three\n" + whole(2, 3))
        await rig.look()
        await rig.look(3)
        await rig.stop()

    run(scenario())
    torn = "2026-01-01 ERROR\n\tat one\n\tat two\n\tat three"
    assert rig.texts() == [trace(1), torn, trace(2), trace(3)]


def test_an_event_that_ended_with_its_file_does_not_take_from_the_next(rig, run) -> None:
    async def scenario() -> None:
        await started(rig, whole(1, 2).removesuffix("\n"))
        rig.app.rename(rig.logs / "app.log.1")
        rig.append(whole(3, 4))
        await rig.look()
        await rig.stop()

    run(scenario())
    assert rig.texts() == [trace(1), trace(2), trace(3)]


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("at", [5, 17, 30, 60, 61])
def test_an_event_cut_in_two_by_copy_and_truncate_is_whole(rig, run, at: int, restarted) -> None:
    event = trace(2)

    async def scenario() -> None:
        await started(rig, whole(1) + event[:at])
        shutil.copy(rig.app, rig.logs / "app.log.1")
        os.truncate(rig.app, 0)
        await rig.look()
        if restarted:
            await rig.restart()
        rig.append(event[at:] + "\n" + whole(3, 4))
        await rig.look()
        await rig.stop()

    run(scenario())
    assert rig.texts() == [trace(1), event, trace(3)]


def test_an_event_above_the_bounds_is_cut_and_counted(rig, run) -> None:
    async def scenario() -> None:
        await started(rig, trace(1, 2000) + "\n" + trace(2, 2000) + "\n", max_bytes=4096)
        await rig.look(3)
        await rig.stop()

    run(scenario())
    found = rig.texts()
    assert "\n".join(found) == trace(1, 2000) + "\n" + trace(2, 2000)
    assert rig.metric("gatherer_log_cut_total{") == len(found) - 2 > 8
    assert max(map(len, found)) <= 4096


def test_encodings_are_read_and_bad_bytes_counted(rig, run) -> None:
    async def scenario() -> None:
        rig.append("\ufeff".encode("utf-16-le") + "grüße\n日本\n".encode("utf-16-le"))
        await rig.start(encoding="utf-16")
        rig.append("spät\n".encode("utf-16-le")[:-1])
        await rig.look()
        rig.append(b"\0" + b"\0\xd8!\0\n\0")
        await rig.restart()
        await rig.stop()

    run(scenario())
    assert rig.texts() == ["grüße", "日本", "spät", "�!"]
    assert rig.metric("gatherer_log_undecodable_total{") == 1


def test_an_event_cut_in_two_long_ago_is_whole(rig, run) -> None:
    async def scenario() -> None:
        await started(rig, whole(1) + trace(2)[:60])
        shutil.copy(rig.app, rig.logs / "app.log.1")
        os.truncate(rig.app, 0)
        await rig.look()
        rig.append(trace(2)[60:] + "\n" + whole(3))
        await rig.look(100)
        await rig.look(100)
        await rig.stop()

    run(scenario())
    assert rig.texts() == [trace(1), trace(2), trace(3)]
