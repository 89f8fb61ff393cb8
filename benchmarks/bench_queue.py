"""What the queue costs above the bare file calls it is made of.

One JSON line per figure on standard output, absolute times on standard error. Every ratio is taken
against a limit measured in the same run on the same file system: the same bytes, in the same shape
of calls, into an equal ring of preallocated and already written files. The two sides take turns,
a segment's worth at a time, and the best CPU time of each counts: a shared machine only ever adds.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from figures import figure
from skyfarer.base.units import KIB, MIB
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.reader import Reader
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer

RECORD_BYTES = 8 * KIB
SEGMENT_BYTES = 16 * MIB
SEGMENTS = 4
RECORDS = 2000
ROUNDS = 40

Work = Callable[[], None]


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if sys.argv[1:] else None) as place:
        directory = Path(place)
        with queue_in(directory / "queue") as (writer, consumer, reader):
            ring = BareRing(directory)
            for batch in (1, 100):
                ours, limit = appending(writer, consumer, batch), ring.writing(batch)
                report(f"queue_append_8k_by_{batch}_to_pwrite", ours, limit, 3.0)
            report("queue_read_runs_to_file_read", reading(reader), ring.reading(), 3.0)


@contextmanager
def queue_in(directory: Path) -> Iterator[tuple[Writer, Consumer, Reader]]:
    settings = QueueSettings(directory, SEGMENT_BYTES, SEGMENTS * SEGMENT_BYTES)
    parts = Writer(settings), Consumer(directory, "main"), Reader(directory)
    for part in parts:
        part.start()
    yield parts
    for part in reversed(parts):
        part.stop(1.0)


def appending(writer: Writer, consumer: Consumer, batch: int) -> Work:
    payloads = [os.urandom(RECORD_BYTES)] * batch

    def work() -> None:
        append = writer.append
        for n in range(RECORDS // batch):
            append(1, payloads)
            if n * batch % 1000 == 0:
                consumer.commit(writer.writing)

    return work


def reading(reader: Reader) -> Work:
    def work() -> None:
        end = reader.writing()
        for run in reader.runs(end - RECORDS, end):
            if run.damaged or not run.payloads():
                raise SystemExit(f"records {run.damaged} are damaged")

    return work


class BareRing:
    """The limit: the same space and the same calls, without index, checksum or order."""

    def __init__(self, directory: Path) -> None:
        self._files = [
            os.open(directory / f"bare{n}", os.O_RDWR | os.O_CREAT) for n in range(SEGMENTS)
        ]
        for file in self._files:
            os.posix_fallocate(file, 0, SEGMENT_BYTES)
        self._at = 0

    def writing(self, batch: int) -> Work:
        payloads = [os.urandom(RECORD_BYTES)] * batch
        size = batch * RECORD_BYTES

        def work() -> None:
            at, files = self._at, self._files
            for _ in range(RECORDS // batch):
                if at % SEGMENT_BYTES + size > SEGMENT_BYTES:
                    at += SEGMENT_BYTES - at % SEGMENT_BYTES
                os.pwritev(files[at // SEGMENT_BYTES % SEGMENTS], payloads, at % SEGMENT_BYTES)
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


def report(name: str, ours: Work, limit: Work, goal: float) -> None:
    best = {ours: float("inf"), limit: float("inf")}
    for _ in range(ROUNDS):
        for work in best:
            began = time.process_time()
            work()
            best[work] = min(best[work], time.process_time() - began)
    figure(name, best[ours] / best[limit], "ratio", at_most=goal)
    ours_ns, limit_ns = (round(seconds / RECORDS * 1e9) for seconds in best.values())
    print(f"{name}: {ours_ns} ns a record, limit {limit_ns} ns", file=sys.stderr)


if __name__ == "__main__":
    main()
