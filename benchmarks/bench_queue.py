"""What the queue costs above the bare file calls it is made of.

One JSON line per figure on standard output, absolute times on standard error. Every ratio is taken
against a limit measured in the same run on the same file system: the same bytes into an equal ring
of preallocated and already written files, one `pwrite` for each record. The two sides take turns, a
segment's worth at a time, and the best of each counts: a shared machine only ever adds. Where the
disk is waited for that is the time on the wall, elsewhere CPU time.

No two records have the same bytes, as in life: one buffer sent again and again would stay in the
processor's first cache, which makes the limit cheaper than any real write. Each batch size has
a queue of its own: how large the page cache's pieces of a file are follows from the writes that
brought them, and a batch into pieces of 8 KB costs 5 % more than into those of its like.

The goals are those the queue was asked for, reached or not. Without a goal, for orientation, stand
the batch against one `pwritev` of all its payloads, and what the checksums alone make of the limit.
Group commit of each size has a queue and a ring of its own, neither of which saw smaller writes.

Microseconds a record stand beside the ratios of appending, and on standard error those of others:
of the Satellite's design document, on its own machine, and of the prototype before this queue.

Recovery has two limits. The goal is against a checksum of the newest segment, which is what a queue
without an index would have to scan. This one reads less: every header, one index and one record.
What checksumming those takes is the second, for orientation: the rest of a start is opening,
mapping and locking files.

What passing through leaves in memory is `bench_queue_memory.py`, which takes minutes.
"""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from figures import figure
from skyfarer.base.units import KIB, MIB
from skyfarer.queue.checksum import crc32c
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.errors import QueueFull
from skyfarer.queue.layout import PAGE_BYTES, Geometry
from skyfarer.queue.reader import Reader
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer

RECORD_BYTES = 8 * KIB
SEGMENT_BYTES = 16 * MIB
SEGMENTS = 4
RECORDS = 2000
COMMIT_RECORDS = 1000
ROUNDS = 40
FULL_BYTES = 512 * MIB
OTHERS_US = "12.1 in the design document, in the prototype 3.6 one by one and 2.3 in batches"

Work = Callable[[], None]


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if sys.argv[1:] else None) as place:
        directory = Path(place)
        ring = BareRing(directory / "bare")
        single = ring.writing()
        with queue_in(directory / "single") as (writer, consumer, _):
            ours = appending(writer, consumer, 1)
            took_s = report("queue_append_8k_by_1_to_pwrite", ours, single, 1.5)
            orient("queue_append_8k_by_1", took_s)
        report("queue_checksum_8k_to_pwrite", ring.writing(write=checked_write), single, None)
        with queue_in(directory / "batches") as (writer, consumer, reader):
            ours = appending(writer, consumer, 100)
            took_s = report("queue_append_8k_by_100_to_pwrite", ours, single, 1.15)
            orient("queue_append_8k_by_100", took_s)
            alike = BareRing(directory / "bare-batches")
            report("queue_append_8k_by_100_to_pwritev", ours, alike.writing(100), None)
            report("queue_read_runs_to_file_read", reading(reader), alike.reading(), 1.3)
        for batch in (10, 100):
            with queue_in(directory / f"durable-by-{batch}", "fsync") as (writer, consumer, _):
                ours = appending(writer, consumer, batch)
                alike = BareRing(directory / f"bare-by-{batch}")
                limit = alike.writing(batch, sync=os.fdatasync)
                name = f"queue_fsync_8k_by_{batch}_to_fdatasync"
                report(name, ours, limit, 1.3, time.perf_counter)
        full = directory / "full"
        ours, limit = recovering(full), checksumming(full)
        report("queue_recover_512m_to_checksum", ours, limit, 1.5)
        report("queue_recover_512m_to_checksum_of_what_it_reads", ours, scanning(full), None)


@contextmanager
def queue_in(
    directory: Path, durability: Literal["append", "fsync"] = "append"
) -> Iterator[tuple[Writer, Consumer, Reader]]:
    settings = QueueSettings(
        directory, SEGMENT_BYTES, SEGMENTS * SEGMENT_BYTES, durability=durability
    )
    parts = Writer(settings), Consumer(directory, "main"), Reader(directory)
    for part in parts:
        part.start()
    yield parts
    for part in reversed(parts):
        part.stop(1.0)


def batches(size: int) -> list[list[bytes]]:
    payloads = [os.urandom(RECORD_BYTES) for _ in range(RECORDS)]
    return [payloads[at : at + size] for at in range(0, RECORDS, size)]


def appending(writer: Writer, consumer: Consumer, batch: int) -> Work:
    """With a commit for every COMMIT_RECORDS of them, and nothing else beside the appends: to count
    along took a fortieth of what a single append does."""
    records, step = batches(batch), COMMIT_RECORDS // batch
    rounds = [records[at : at + step] for at in range(0, len(records), step)]

    def work() -> None:
        append = writer.append
        for some in rounds:
            for payloads in some:
                append(1, payloads)
            consumer.commit(writer.writing)

    return work


def reading(reader: Reader) -> Work:
    def work() -> None:
        end = reader.writing()
        for run in reader.runs(end - RECORDS, end):
            if run.damaged:
                raise SystemExit(f"records {run.damaged} are damaged")

    return work


def recovering(directory: Path) -> Work:
    """Fills the queue; a start then reads every header, the newest index and its last record."""
    writer = Writer(QueueSettings(directory, SEGMENT_BYTES, FULL_BYTES))
    payloads = [os.urandom(RECORD_BYTES)]
    writer.start()
    try:
        while True:
            writer.append(1, payloads)
    except QueueFull:
        writer.stop(1.0)

    def work() -> None:
        writer.start()
        writer.stop(1.0)

    return work


def checksumming(directory: Path) -> Work:
    """The newest segment through a fresh map, in one call."""
    newest = max(directory.glob("*.seg"))

    def work() -> None:
        with newest.open("rb") as file:
            crc32c(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))

    return work


def scanning(directory: Path) -> Work:
    """What a start reads, by the same calls."""
    geometry = Geometry(SEGMENT_BYTES, FULL_BYTES // SEGMENT_BYTES)
    files = sorted(directory.glob("*.seg"))
    parts = [(file, PAGE_BYTES, 0) for file in files]
    parts += [(files[-1], geometry.index.stop - PAGE_BYTES, PAGE_BYTES)]
    parts += [(files[-1], RECORD_BYTES, geometry.payload_offset)]

    def work() -> None:
        for path, length, offset in parts:
            file = os.open(path, os.O_RDONLY)
            crc32c(os.pread(file, length, offset))
            os.close(file)

    return work


def checked_write(file: int, payload: bytes, offset: int) -> int:
    """The limit of anything that checksums each record."""
    os.pwrite(file, payload, offset)
    return crc32c(payload)


class BareRing:
    """The limit: the same space and the same calls, without index, checksum or order."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self._files = [os.open(directory / str(n), os.O_RDWR | os.O_CREAT) for n in range(SEGMENTS)]
        for file in self._files:
            os.posix_fallocate(file, 0, SEGMENT_BYTES)
        self._at = 0

    def writing(
        self,
        batch: int = 1,
        sync: Callable[[int], None] | None = None,
        write: Callable[[int, bytes, int], int] = os.pwrite,
    ) -> Work:
        records, size = batches(batch), batch * RECORD_BYTES

        def work() -> None:
            at, files = self._at, self._files
            for payloads in records:
                if at % SEGMENT_BYTES + size > SEGMENT_BYTES:
                    at += SEGMENT_BYTES - at % SEGMENT_BYTES
                file = files[at // SEGMENT_BYTES % SEGMENTS]
                if batch == 1:
                    write(file, payloads[0], at % SEGMENT_BYTES)
                else:
                    os.pwritev(file, payloads, at % SEGMENT_BYTES)
                if sync is not None:
                    sync(file)
                at += size
            self._at = at

        return work

    def reading(self) -> Work:
        def work() -> None:
            left = RECORDS * RECORD_BYTES
            for file in self._files:
                for offset in range(0, min(left, SEGMENT_BYTES), MIB):
                    os.pread(file, MIB, offset)
                left -= min(left, SEGMENT_BYTES)

        return work


def report(
    name: str,
    ours: Work,
    limit: Work,
    goal: float | None,
    clock_s: Callable[[], float] = time.process_time,
) -> float:
    """The best of ours, in seconds."""
    best = {ours: float("inf"), limit: float("inf")}
    for _ in range(ROUNDS):
        for work in best:
            began = clock_s()
            work()
            best[work] = min(best[work], clock_s() - began)
    figure(name, best[ours] / best[limit], "ratio", at_most=goal)
    ours_us, limit_us = (round(seconds * 1e6) for seconds in best.values())
    print(f"{name}: {ours_us} us for {RECORDS} records, limit {limit_us} us", file=sys.stderr)
    return best[ours]


def orient(name: str, took_s: float) -> None:
    figure(name, took_s / RECORDS * 1e6, "us")
    print(f"{name}: {OTHERS_US} (us)", file=sys.stderr)


if __name__ == "__main__":
    main()
