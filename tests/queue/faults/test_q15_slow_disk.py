"""Q15: every sync takes its time. Whoever appends waits for the disk instead of piling up memory:
each append under "fsync", and with `sync` in a thread of its own, an append that is a bound ahead.
"""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

import pytest

from skyfarer.base.units import KIB, MIB
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.durability import UNSYNCED_SEGMENTS_MAX
from skyfarer.queue.reader import Reader
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer

from ..traced_child import LIVED, Tell, run_traced

DELAY_US = 2_000
SEGMENTS = 200
BATCH = 20
RECORDS = {"fsync": 3_000, "append": 12_000}
WARM_UP = 0.25
RECORD_BYTES = 198
SEGMENT_RECORDS_MAX = 8 * KIB // RECORD_BYTES
AHEAD = (UNSYNCED_SEGMENTS_MAX + 2) * SEGMENT_RECORDS_MAX
GROWTH_BYTES_MAX = 1 * MIB


def body(sequence: int) -> bytes:
    return b"%06d" % sequence * (RECORD_BYTES // 6)


def settings(directory: Path, durability: str) -> QueueSettings:
    shape = 16 * KIB, SEGMENTS * 16 * KIB, 4 * KIB
    return QueueSettings(directory, *shape, durability=durability)  # type: ignore[arg-type]


def anonymous_bytes() -> int:
    rows = Path("/proc/self/status").read_text().splitlines()
    return next(int(row.split()[1]) * KIB for row in rows if row.startswith("RssAnon"))


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


class Measures:
    """Taken with each append."""

    def __init__(self) -> None:
        self.ahead = self.files = self.begin_bytes = self.bytes = 0
        self.begin_files = open_files()

    def take(self, writer: Writer, records: int) -> None:
        self.ahead = max(self.ahead, writer.writing - writer.durable)
        self.files = max(self.files, open_files() - self.begin_files)
        self.bytes = max(self.bytes, anonymous_bytes())
        if writer.writing <= WARM_UP * records:
            self.begin_bytes = self.bytes


def append_all(writer: Writer, consumer: Consumer, records: int, tell: Tell) -> None:
    """Commits half a ring behind itself."""
    measures = Measures()
    for first in range(0, records, BATCH):
        writer.append(1, [body(sequence) for sequence in range(first, first + BATCH)])
        tell("durable", writer.durable)
        measures.take(writer, records)
        consumer.commit(max(0, writer.writing - SEGMENTS // 2 * SEGMENT_RECORDS_MAX))
        tell("committed", consumer.committed())
    tell("ahead", measures.ahead)
    tell("files", measures.files)
    tell("growth", measures.bytes - measures.begin_bytes)


def life(directory: Path, durability: str, threaded: bool, tell: Tell) -> None:
    writer, consumer = Writer(settings(directory, durability)), Consumer(directory, "main")
    writer.start()
    consumer.start()
    writer.sync()
    done = threading.Event()

    def sync_on() -> None:
        while threaded and not done.is_set():
            writer.sync()

    thread = threading.Thread(target=sync_on)
    thread.start()
    append_all(writer, consumer, RECORDS[durability], tell)
    done.set()
    thread.join()
    tell("durable", writer.sync())


@pytest.mark.parametrize(
    ("durability", "threaded", "least", "most"),
    [
        ("fsync", False, 0, 0),
        ("append", False, AHEAD // 2, AHEAD),
        ("append", True, BATCH, 2 * AHEAD),
    ],
    ids=["fsync", "sync by appends", "sync in a thread"],
)
def test_q15_a_slow_disk_holds_appends_back_within_bounded_memory(
    tmp_path, durability, threaded, least, most
):
    """`least` and `most` records were ahead of the disk; while a thread syncs as many segments as
    may wait for it, as many more may be filled."""
    directory, log, records = tmp_path / "queue", tmp_path / "log", RECORDS[durability]
    injection = f"inject=fdatasync:delay_exit={DELAY_US}"
    status, told = run_traced(
        partial(life, directory, durability, threaded),
        *("-f", "-e", "trace=fdatasync", "-e", injection),
        log=log,
    )
    facts = dict(told)
    assert status == LIVED
    syncs = records // (BATCH if durability == "fsync" else SEGMENT_RECORDS_MAX)
    assert log.read_text().count("(DELAYED)") >= syncs
    assert facts["growth"] <= GROWTH_BYTES_MAX
    assert facts["files"] <= UNSYNCED_SEGMENTS_MAX + 32
    assert least <= facts["ahead"] <= most
    assert facts["durable"] == records
    left = range(facts["committed"], records)
    assert held(directory, left.start) == [body(sequence) for sequence in left]


def held(directory: Path, start: int) -> list[bytes]:
    writer, reader = Writer(settings(directory, "append")), Reader(directory)
    writer.start()
    reader.start()
    try:
        runs = reader.runs(start, writer.writing)
        return [bytes(payload) for run in runs for payload in run.payloads()]
    finally:
        reader.stop()
        writer.stop(0.0)
