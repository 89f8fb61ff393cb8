"""Q8: the disk fails to sync: EIO, reported once, and the pages it was about count as clean then.

A second sync of that file would succeed and prove nothing. So what must hold, whichever sync fails,
is: the caller is told once, and which file; that file is not synced again; what was not
acknowledged is refused, or stays unacknowledged until it is delivered; and when the power goes, no
acknowledged record is lost.

A real process is failed by strace, on a file system whose power is then cut. But strace only keeps
a sync from being done; what Linux makes of the pages is done by a disk that forgets.
"""

from __future__ import annotations

import random
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.base.units import KIB
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.disk import Disk
from skyfarer.queue.durability import SyncFailed
from skyfarer.queue.reader import Reader
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer
from third_parties.cut_disk import cut_disk

from ..forgetful_disk import ForgetfulDisk
from ..traced_child import LIVED, run_traced

BATCH = {"fsync": 5, "append": 2}
LAG = {"fsync": 8, "append": 3}
RECORDS = {"fsync": 45, "append": 30}
CUTS_PER_STEP = 2
MODES = pytest.mark.parametrize("durability", ["fsync", "append"])
CALLS = "trace=fdatasync,unlink,unlinkat,rename,renameat,renameat2"


def bodies(first: int, number: int) -> list[bytes]:
    return [random.Random(n).randbytes(n * 7919 % 3000) for n in range(first, first + number)]


class Life:
    """Two laps of the ring and more, through every refusal; `append` is followed by `sync`, so
    `acknowledged` is what survives a power cut by the queue's own word. With `restarts` another
    writer takes over after the failure."""

    def __init__(
        self, directory: Path, disk: Disk, durability: str, restarts: bool = False
    ) -> None:
        shape = 16 * KIB, 64 * KIB, 4 * KIB
        settings = QueueSettings(directory, *shape, durability=durability)  # type: ignore[arg-type]
        self.acknowledged = self.committed = 0
        self.alerts: list[str] = []
        self._new_writer = partial(Writer, settings, disk)
        self._writer = self._new_writer()
        self._consumer = Consumer(directory, "main", disk)
        self._durability = durability
        self._restarts = restarts

    def run(self, after_step: Callable[[], None]) -> None:
        for part in (self._writer, self._consumer):
            try:
                part.start()
            except PermanentError as error:
                self.alerts.append(str(error))
                part.start()
        while self.acknowledged < RECORDS[self._durability]:
            self._step()
            after_step()

    def _step(self) -> None:
        writer, consumer = self._writer, self._consumer
        try:
            writer.append(1, bodies(writer.writing, BATCH[self._durability]))
            self.acknowledged = writer.sync()
        except (SyncFailed, PermanentError) as error:
            self.alerts.append(str(error))
            if self._restarts:
                writer.stop(0.0)
                self._writer = writer = self._new_writer()
                writer.start()
        except RetryableError as error:
            assert self._durability == "append" and "as soon as every consumer" in str(error)
        assert writer.durable in (self.acknowledged, 0)
        assert self._durability == "append" or writer.writing == self.acknowledged
        consumer.commit(max(consumer.committed(), writer.writing - LAG[self._durability]))
        self.committed = consumer.committed()

    def stop(self) -> None:
        self._writer.stop(0.0)
        self._consumer.stop()


def lost(directory: Path, committed: int, acknowledged: int) -> set[int]:
    """Numbers neither delivered nor there any more; what is there is what was appended."""
    writer = Writer(QueueSettings(directory, 16 * KIB, 64 * KIB, 4 * KIB))
    reader, held = Reader(directory), set()
    try:
        writer.start()
        reader.start()
        for run in reader.runs(writer.oldest, writer.writing):
            for sequence, payload in zip(run.sequences(), run.payloads(), strict=True):
                assert payload == bodies(sequence, 1)[0]
                held.add(sequence)
    finally:
        reader.stop()
        writer.stop(0.0)
    return set(range(committed, acknowledged)) - held


@pytest.fixture
def memory() -> Iterator[Path]:
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as place:
        yield Path(place)


def lived(
    disk: ForgetfulDisk, directory: Path, durability: str, restarts: bool = False
) -> tuple[Life, set[int]]:
    """A life with power cuts after each step of it, and what they took."""
    life, gone = Life(directory, disk, durability, restarts), set()
    after, chance = directory.with_name("after"), random.Random(disk.fail_at)

    def cut() -> None:
        for _ in range(CUTS_PER_STEP):
            disk.cut(after, chance)
            gone.update(lost(after, life.committed, life.acknowledged))
            shutil.rmtree(after)

    life.run(cut)
    life.stop()
    disk.close_all()
    return life, gone


@pytest.mark.parametrize(
    ("durability", "restarts"),
    [
        ("fsync", False),
        ("append", False),
        ("fsync", True),
        ("append", True),
    ],
)
def test_q08_whichever_sync_fails_it_is_told_once_and_nothing_acknowledged_is_lost(
    memory, durability, restarts
):
    failed: Counter[str] = Counter()
    for fail_at in count(1):
        directory = memory / f"queue-{fail_at}"
        disk = ForgetfulDisk(directory)
        disk.fail_at = fail_at
        life, gone = lived(disk, directory, durability, restarts)
        assert gone == set()
        if len(disk.synced) < fail_at:
            break
        name, inode = disk.synced[fail_at - 1]
        [alert] = life.alerts
        assert "check the disk" in alert and name.removesuffix(".new") in alert
        if ".seg" in name and not restarts:
            assert (name, inode) not in disk.synced[fail_at:]
        failed[name.lstrip("0123456789").partition("-")[0]] += 1
    expected = {".seg", "meta.new", "queue"}
    if durability == "fsync":
        expected |= {".seg.new", "state", "consumer", memory.name}
    assert set(failed) == expected
    assert failed[".seg"] > 15


class TrustingDisk(ForgetfulDisk):
    """Tries a failed sync again, and believes it."""

    def sync(self, fd: int) -> None:
        try:
            super().sync(fd)
        except OSError:
            super().sync(fd)


@MODES
def test_q08_the_same_check_finds_losses_when_a_failed_sync_is_tried_again(memory, durability):
    losses = 0
    for fail_at in range(10, 30):
        directory = memory / f"queue-{fail_at}"
        disk = TrustingDisk(directory)
        disk.fail_at = fail_at
        life, gone = lived(disk, directory, durability)
        assert life.alerts == []
        losses += bool(gone)
    assert losses > 5


def real_life(directory: Path, durability: str, tell) -> None:
    life = Life(directory, Disk(), durability)

    def report() -> None:
        tell("acknowledged", life.acknowledged)
        tell("committed", life.committed)

    life.run(report)
    tell("alerts", len(life.alerts))


def synced_again(log: str) -> bool:
    """Whether the file of the injected failure, and not a new one of its name, was synced later."""
    before, injected, after = log.partition("(INJECTED)")
    assert injected and "(INJECTED)" not in after
    path = re.findall(r"fdatasync\(\d+<([^>]*)>", before)[-1]
    names = re.findall(r"(\w+)\(.*?[<\"]" + re.escape(path) + r'[>"]\)? ', after)
    return bool(names) and names[0] == "fdatasync" and path.endswith(".seg")


@MODES
def test_q08_a_real_process_whose_fdatasync_fails_loses_nothing_when_the_power_goes(
    memory, durability
):
    hits = 0
    with cut_disk("ext4", memory) as disk:
        for when in count(1):
            directory, log = disk.place / f"queue-{when}", memory / f"log-{when}"
            injection = f"inject=fdatasync:error=EIO:when={when}"
            status, told = run_traced(
                partial(real_life, directory, durability),
                "-y",
                "-e",
                CALLS,
                "-e",
                injection,
                log=log,
            )
            disk.cut()
            disk.unmount()
            disk.mount()
            facts = dict(told)
            assert status == LIVED
            assert facts["acknowledged"] >= RECORDS[durability]
            assert lost(directory, facts["committed"], facts["acknowledged"]) == set()
            if not facts["alerts"]:
                break
            assert facts["alerts"] == 1
            assert not synced_again(log.read_text())
            hits += 1
    assert hits > 15
