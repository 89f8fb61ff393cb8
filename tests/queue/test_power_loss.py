"""Q3: the power goes while a writer with durability "fsync" is at work.

What must hold when it is back: every record of an append that returned is there, byte for byte, or
was committed; nothing that was never appended is handed out; the queue goes on. Without syncs the
same check must find losses, or it would prove nothing.
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
from itertools import islice
from pathlib import Path

import pytest

from skyfarer.base.units import KIB
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.disk import Disk
from skyfarer.queue.errors import QueueFull
from skyfarer.queue.reader import Reader
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer

from .cut_disk import CutDisk, cut_disk

CUTS = {"ext4": 200, "xfs": 60}
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
def queue_on(place: Path, disk: Disk | None = None) -> Iterator[tuple[Writer, Consumer, Reader]]:
    """Four segments, so that the ring is reused every few dozen records."""
    directory = place / "queue"
    settings = QueueSettings(directory, 16 * KIB, 64 * KIB, 4 * KIB, durability="fsync")
    parts = Writer(settings, disk), Consumer(directory, "main"), Reader(directory)
    try:
        for part in parts:
            part.start()
        yield parts
    finally:
        for part in parts:
            part.stop(0.0)


def work(place: Path, disk: Disk, pipe: int, chance: random.Random) -> None:
    """Appends for ever, reports each append that returned, and commits behind itself."""
    with queue_on(place, disk) as (writer, consumer, _):
        while True:
            batch = range(writer.writing, writer.writing + chance.randint(1, BATCH_MAX))
            try:
                writer.append(1, [body(sequence) for sequence in batch])
            except QueueFull:
                consumer.commit(writer.writing)
                continue
            os.write(pipe, b"%d\n" % writer.writing)
            if chance.random() < 0.5:
                consumer.commit(max(consumer.committed(), writer.writing - chance.randint(0, 30)))


def acknowledged_before_a_cut(cut: CutDisk, disk: Disk, chance: random.Random) -> int:
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        try:
            work(cut.place, disk, there, chance)
        finally:
            os._exit(1)
    os.close(there)
    with os.fdopen(here, "rb") as pipe:
        reports = list(islice(pipe, chance.randint(1, 10)))
        time.sleep(chance.random() * DELAY_S_MAX)
        cut.cut()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        reports += pipe
    cut.unmount()
    cut.mount()
    assert reports, "the writer ended before its first report"
    return int(reports[-1])


def lost(place: Path, acknowledged: int, doubtful: set[int]) -> list[int]:
    """Acknowledged numbers that are gone, and were not committed. `doubtful` are numbers of appends
    that were cut off: used or not, nobody was told."""
    with queue_on(place) as (writer, consumer, reader):
        begin, held = consumer.committed(), set()
        for run in reader.runs(begin, reader.writing()):
            for sequence, payload in zip(run.sequences(), run.payloads(), strict=True):
                assert payload == body(sequence)
                held.add(sequence)
        doubtful |= set(range(acknowledged, writer.writing))
        assert begin <= writer.writing <= acknowledged + BATCH_MAX
        return sorted(set(range(begin, acknowledged)) - held - doubtful)


@pytest.fixture(params=[kind for kind in CUTS if kind == "ext4" or shutil.which(f"mkfs.{kind}")])
def cut(request, tmp_path):
    with cut_disk(request.param, tmp_path) as disk:
        disk.cuts = CUTS[request.param]
        yield disk


def test_q3_no_acknowledged_record_is_lost_when_the_power_goes(cut):
    """One directory through all the cuts, so each begins with what the one before has left."""
    chance, acknowledged, laps = random.Random(3), 0, set()
    doubtful: set[int] = set()
    for _ in range(cut.cuts):
        acknowledged = acknowledged_before_a_cut(cut, Disk(), chance)
        assert lost(cut.place, acknowledged, doubtful) == []
        laps.add(acknowledged // 60)
    assert len(laps) > cut.cuts / 10


def test_q3_the_same_check_finds_losses_when_nothing_is_synced(cut):
    chance, losses = random.Random(4), 0
    for _ in range(10):
        with queue_on(cut.place):
            os.sync()
        acknowledged = acknowledged_before_a_cut(cut, LyingDisk(), chance)
        losses += bool(lost(cut.place, acknowledged, set()))
        shutil.rmtree(cut.place / "queue")
    assert losses > 5
