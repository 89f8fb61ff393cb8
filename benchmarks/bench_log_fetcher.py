"""How fast log files become queued records, beside what reading and splitting them costs alone.

One JSON line per figure on standard output, absolute times on standard error. The two limits are
measured in the same run over the same files, turn by turn, the best of each counting, in CPU time:
reading in blocks and splitting at newlines; and that with the lines as they are appended to an
equal queue, which leaves the fetcher's own part: LogData, positions, looking after files.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from figures import figure
from skyfarer.base.clock import SystemClock
from skyfarer.base.units import KIB, MIB
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer
from skyfarer.satellite.fetchers.log.config import LogFetcherConfig, MultilineConfig
from skyfarer.satellite.fetchers.log.fetcher import LogFetcher
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry

FILE_BYTES = 64 * MIB
BLOCK_BYTES = 256 * KIB
APPEND_RECORDS = 1024
ROUNDS = 5
FIRST_LINE = r"\d{4}-\d\d-\d\d "
HEAD = b"2026-07-01 12:00:00,%03d %b [http-8080-%d] com.example.orders.OrderService - order %d "

Work = Callable[[], None]


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if sys.argv[1:] else None) as place:
        directory = Path(place)
        plain, traces = directory / "plain.log", directory / "traces.log"
        write(plain, trace_every=0)
        write(traces, trace_every=10)
        bench = Bench(directory)
        multiline = MultilineConfig(first_line=FIRST_LINE)
        report("lines", plain, bench, lambda: bench.fetching(plain, None))
        report("stack_traces", traces, bench, lambda: bench.fetching(traces, multiline))


def write(path: Path, trace_every: int) -> None:
    dice, written, number = random.Random(1), 0, 0
    frames = b"".join(
        b"\n\tat com.example.orders.Step%d.run(Step.java:%d)" % (n, n) for n in range(40)
    )
    with path.open("wb") as file:
        while written < FILE_BYTES:
            failed = trace_every and number % trace_every == 0
            level = b"ERROR" if failed else b"INFO"
            line = HEAD % (number % 1000, level, number % 16, number)
            tail = frames if failed else b"." * dice.randint(0, 200)
            written += file.write(line + tail + b"\n")
            number += 1


class Bench:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._turns = 0

    def fetching(self, path: Path, multiline: MultilineConfig | None) -> None:
        """From an empty directory to everything in the queue, consumed as it goes."""
        with self._queue() as queue:
            config = LogFetcherConfig((str(path),), "orders", "orders-1", multiline=multiline)
            place = self._directory / f"fetcher-{self._turns}"
            parts = (place, SystemClock(), Registry(), Health())
            fetcher = LogFetcher(config, queue, *parts)

            async def fetch() -> None:
                await fetcher.start()
                await fetcher.look()
                await fetcher.stop(0.0)

            asyncio.run(fetch())

    def splitting(self, path: Path) -> None:
        for _ in blocks(path):
            pass

    def appending(self, path: Path) -> None:
        with self._queue() as queue:
            for lines in blocks(path):
                for first in range(0, len(lines), APPEND_RECORDS):
                    queue.append(1, lines[first : first + APPEND_RECORDS])

    def _queue(self) -> Queue:
        self._turns += 1
        return Queue(self._directory / f"queue-{self._turns}")


class Queue:
    """A queue that its own consumer keeps empty: an `Inlet`."""

    def __init__(self, directory: Path) -> None:
        settings = QueueSettings(directory, 4 * MIB, 16 * MIB, 1 * MIB)
        self._writer, self._consumer = Writer(settings), Consumer(directory, "main")

    def __enter__(self) -> Queue:
        self._writer.start()
        self._consumer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.stop()
        self._writer.stop(0.0)

    @property
    def queue_id(self) -> str:
        return self._writer.queue_id

    @property
    def writing(self) -> int:
        return self._writer.writing

    def append(self, kind: int, payloads: list[bytes]) -> int:
        first = self._writer.append(kind, payloads)
        self._consumer.commit(self._writer.writing)
        return first


def blocks(path: Path):  # type: ignore[no-untyped-def]
    fd, at = os.open(path, os.O_RDONLY), 0
    while data := os.pread(fd, BLOCK_BYTES, at):
        end = data.rfind(b"\n") + 1
        yield data[: end - 1].split(b"\n")
        at += end
    os.close(fd)


def report(name: str, path: Path, bench: Bench, fetching: Work) -> None:
    works = (fetching, lambda: bench.splitting(path), lambda: bench.appending(path))
    best = [float("inf")] * len(works)
    for _ in range(ROUNDS):
        for number, work in enumerate(works):
            began = time.process_time()
            work()
            best[number] = min(best[number], time.process_time() - began)
    size = path.stat().st_size / 1e6
    ours, split, append = best
    figure(f"log_fetcher_{name}_mb_per_cpu_second", size / ours, "MB/s", at_least=100)
    figure(f"log_fetcher_{name}_to_read_and_split", ours / split, "ratio")
    figure(f"log_fetcher_{name}_to_read_split_append", ours / append, "ratio", at_most=2)
    speeds = ", ".join(f"{size / seconds:.0f}" for seconds in best)
    print(
        f"{name}: MB/s of ours, of read and split, of these with append: {speeds}", file=sys.stderr
    )


if __name__ == "__main__":
    main()
