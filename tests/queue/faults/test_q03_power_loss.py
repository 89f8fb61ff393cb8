"""Q3: the power goes while a writer is at work that syncs each append, or is told to by `sync`.

What must hold when it is back: every record that was called durable is there, byte for byte, or was
committed; no commit that was synced is taken back, so nothing is seen twice but what the one in
flight had covered; nothing that was never appended is handed out; the queue goes on. Without syncs
the same check must find losses, or it would prove nothing.
"""

from __future__ import annotations

import faulthandler
import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

import pytest

from skyfarer.base.units import KIB
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.disk import Disk
from skyfarer.queue.errors import QueueFull
from skyfarer.queue.reader import Reader
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer
from third_parties.cut_disk import CutDisk, cut_disk

CUTS = {("ext4", "fsync"): 200, ("ext4", "append"): 60, ("xfs", "fsync"): 60, ("xfs", "append"): 30}
Durability = Literal["append", "fsync"]
BATCH_MAX = 12
DELAY_S_MAX = 0.003


class LyingDisk(Disk):
    """Says that it has synced."""

    def sync(self, fd: int) -> None:
        pass

    def sync_data(self, fd: int) -> None:
        pass


def body(sequence: int) -> bytes:
    """Length and bytes follow from the number, so no list of what was sent has to be kept."""
    return random.Random(sequence).randbytes(sequence * 7919 % 2048)


@contextmanager
def queue_on(
    place: Path, durability: Durability, disk: Disk | None = None
) -> Iterator[tuple[Writer, Consumer, Reader]]:
    """Four segments, so that the ring is reused every few dozen records."""
    directory = place / "queue"
    settings = QueueSettings(directory, 16 * KIB, 64 * KIB, 4 * KIB, durability=durability)
    consumer = Consumer(directory, "main", disk, durable=durability == "fsync")
    parts = Writer(settings, disk), consumer, Reader(directory)
    try:
        for part in parts:
            part.start()
        yield parts
    finally:
        for part in parts:
            part.stop(0.0)


def work(place: Path, durability: Durability, disk: Disk, pipe: int, chance: random.Random) -> None:
    """Appends for ever, reports what is durable and committed, and commits behind itself."""
    with queue_on(place, durability, disk) as (writer, consumer, _):

        def report() -> None:
            os.write(pipe, b"%d %d\n" % (writer.durable, consumer.committed()))

        while True:
            batch = range(writer.writing, writer.writing + chance.randint(1, BATCH_MAX))
            done = consumer.committed()
            try:
                writer.append(1, [body(sequence) for sequence in batch])
                writer.sync()
                report()
                if chance.random() < 0.5:
                    done = max(done, writer.writing - chance.randint(0, 30))
            except QueueFull:
                done = writer.sync()
            consumer.commit(done)
            writer.sync_places()
            report()


@dataclass
class Told:
    """By the reports: `acknowledged` and `settled` before the cut began, the others by its end. A
    sync that the
    cut meets half way may be called done by a file system that is only made to fail."""

    acknowledged: int
    settled: int
    written: int
    committed: int


def told_before_a_cut(
    cut: CutDisk, durability: Durability, disk: Disk, chance: random.Random
) -> Told:
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        try:
            work(cut.place, durability, disk, there, chance)
        finally:
            os._exit(1)
    os.close(there)
    with os.fdopen(here, "rb") as pipe:
        reports = list(islice(pipe, chance.randint(1, 10)))
        time.sleep(chance.random() * DELAY_S_MAX)
        os.set_blocking(here, False)
        reports += pipe
        cut.cut()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        late = list(pipe)
    cut.unmount()
    cut.mount()
    assert reports, "the writer ended before its first report"
    written, committed = map(int, [*reports, *late][-1].split())
    return Told(*map(int, reports[-1].split()), written, committed)


def taken_back(place: Path, durability: Durability, told: Told) -> int:
    """How many records come again that were committed, and reported to be."""
    with queue_on(place, durability) as (_, consumer, _):
        return max(0, told.settled - consumer.committed())


def lost(place: Path, durability: Durability, told: Told, doubtful: set[int]) -> list[int]:
    """Acknowledged numbers that are gone, and were not committed. `doubtful` are numbers of appends
    that were cut off: used or not, nobody was told. Only "fsync" keeps a consumer from falling
    behind what was given up on its word."""
    with queue_on(place, durability) as (writer, consumer, reader):
        begin, held = consumer.committed(), set()
        for run in reader.runs(begin, reader.writing()):
            for sequence, payload in zip(run.sequences(), run.payloads(), strict=True):
                assert payload == body(sequence)
                held.add(sequence)
        doubtful |= set(range(told.acknowledged, writer.writing))
        assert begin <= writer.writing <= told.written + BATCH_MAX
        if durability == "append":
            begin = max(begin, told.committed)
        return sorted(set(range(begin, told.acknowledged)) - held - doubtful)


@pytest.fixture(params=CUTS, ids="-".join)
def cut(request, tmp_path):
    kind, durability = request.param
    if kind == "xfs" and not shutil.which("mkfs.xfs"):
        pytest.skip("no mkfs.xfs here")
    with cut_disk(kind, tmp_path) as disk:
        disk.durability, disk.cuts = durability, CUTS[request.param]
        yield disk


def test_q03_no_acknowledged_record_is_lost_when_the_power_goes(cut):
    """One directory through all the cuts, so each begins with what the one before has left."""
    chance, laps = random.Random(3), set()
    doubtful: set[int] = set()
    for _ in range(cut.cuts):
        told = told_before_a_cut(cut, cut.durability, Disk(), chance)
        assert taken_back(cut.place, cut.durability, told) == 0
        assert lost(cut.place, cut.durability, told, doubtful) == []
        laps.add(told.acknowledged // 60)
    assert len(laps) > cut.cuts / 10


def test_q03_the_same_check_finds_losses_when_nothing_is_synced(cut):
    chance, losses, again = random.Random(4), 0, 0
    for _ in range(15):
        with queue_on(cut.place, cut.durability):
            os.sync()
        told = told_before_a_cut(cut, cut.durability, LyingDisk(), chance)
        again += bool(taken_back(cut.place, cut.durability, told))
        losses += bool(lost(cut.place, cut.durability, told, set()))
        shutil.rmtree(cut.place / "queue")
    assert losses > 1
    assert again > 1
