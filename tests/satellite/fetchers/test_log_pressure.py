"""A queue that is full, broken, or refuses a record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from satellite.fetchers.log_rig import KIB, Rig
from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.queue.writer import Writer
from skyfarer.testing.faulty_disk import FaultyDisk

SMALL = {"segment_bytes": 64 * KIB, "capacity_bytes": 256 * KIB, "record_bytes_max": 32 * KIB}
LINES = [f"{number:06d} " + "x" * 90 for number in range(8000)]


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while True:
            if holds():
                return
            await asyncio.sleep(0.01)


async def drained(rig: Rig) -> list[str]:
    """Takes as many as there are lines, and makes room as it goes."""
    consumer, read = rig.consumer(), []
    while len(read) < len(LINES):
        await until(lambda: rig.writer.writing > consumer.committed())
        read += rig.texts(consumer.committed())
        consumer.commit(rig.writer.writing)
    consumer.stop()
    return read


async def full(rig: Rig) -> None:
    waits = rig.metric("gatherer_log_waits_total{")
    await until(lambda: rig.metric("gatherer_log_waits_total{") > waits + 1)


def test_a_full_queue_stops_the_reading_and_nothing_is_lost(rig: Rig, run) -> None:
    rig.bounds = SMALL

    async def scenario() -> list[str]:
        rig.append("".join(f"{line}\n" for line in LINES))
        await rig.open()
        await full(rig)
        assert rig.metric("gatherer_log_unread_bytes{") > 200 * KIB
        read = await drained(rig)
        await rig.stop()
        return read

    assert run(scenario()) == LINES
    assert not rig.health.details()


def test_it_stops_while_the_queue_is_full_and_goes_on_after_a_restart(rig: Rig, run) -> None:
    rig.bounds = SMALL

    async def scenario() -> list[str]:
        rig.append("".join(f"{line}\n" for line in LINES))
        for _ in range(3):
            await rig.open()
            await full(rig)
            await rig.stop()
        await rig.open()
        read = await drained(rig)
        await rig.stop()
        return read

    assert run(scenario()) == LINES


def test_a_record_too_large_for_the_queue_is_given_up_and_the_others_kept(rig: Rig, run) -> None:
    rig.bounds = SMALL
    lines = [*LINES[:100], "y" * 40 * KIB, *LINES[100:200], "z" * 50 * KIB]

    async def scenario() -> None:
        rig.append("".join(f"{line}\n" for line in lines))
        await rig.start()
        await rig.restart()
        await rig.stop()

    run(scenario())
    assert rig.texts() == LINES[:200]
    assert rig.metric("gatherer_log_refused_total{") == 2


class Broken:
    """An inlet whose disk is gone until it is mended."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self.mended = False

    @property
    def queue_id(self) -> str:
        return self._writer.queue_id

    @property
    def writing(self) -> int:
        return self._writer.writing

    def append(self, kind: int, payloads: Sequence[bytes]) -> object:
        if not self.mended:
            raise PermanentError("cannot write: check the disk")
        return self._writer.append(kind, payloads)


def test_a_broken_queue_is_unhealthy_until_it_works_again_and_nothing_is_lost(
    rig: Rig, run
) -> None:
    inlets: list[Broken] = []
    rig.inlet = lambda writer: inlets.append(Broken(writer)) or inlets[-1]

    async def scenario() -> None:
        rig.append("line\n")
        await rig.open()
        await until(lambda: "check the disk" in rig.health.details())
        inlets[0].mended = True
        await until(lambda: not rig.health.details())
        await rig.stop()

    run(scenario())
    assert rig.texts() == ["line"]


def test_a_disk_too_full_for_the_positions_is_waited_for(rig: Rig, run) -> None:
    rig.disk = FaultyDisk()

    async def scenario() -> None:
        rig.append("first\n")
        await rig.start()
        rig.disk.full = frozenset({"pwrite"})
        rig.append("second\n")
        with pytest.raises(RetryableError, match="free space"):
            await rig.look()
        assert rig.texts() == ["first"]
        rig.disk.full = frozenset()
        await rig.look()
        await rig.stop()

    run(scenario())
    assert rig.texts() == ["first", "second"]
