"""1 GB of log through rotating files, SIGKILL in between: every line once, every stack trace whole.

Three processes: one writes and rotates, one is the fetcher and dies, and the test itself reads the
queue and holds each record against what was written under its number.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from skyfarer.base.units import GIB, KIB, MIB
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.errors import QueueMissing
from skyfarer.queue.reader import Reader
from skyfarer.wire.generated.log_pb2 import LogData

WAIT_S = 900.0
TRACE_EVERY = 10
EVENTS_PER_CHUNK = 1000
MARK = "event "
LINE = (
    "2026-07-01 12:00:00,000 INFO [http-8080-7] c.e.o.Orders - event %09d " + "order taken; " * 14
)
FRAME = "\tat com.example.orders.OrderService.take(OrderService.java:%d)"
TRACE = "\n".join(
    [
        "2026-07-01 12:00:00,000 ERROR [http-8080-7] c.e.o.Orders - event %09d failed",
        "java.lang.IllegalStateException: no such order",
        *(FRAME % n for n in range(30)),
        "Caused by: java.io.IOException: connection reset",
        *(FRAME % n for n in range(10)),
    ]
)
TEMPLATES = [LINE] * (TRACE_EVERY - 1) + [TRACE]
Write = Callable[[Path, int], None]

CHUNK = "".join(f"{TEMPLATES[n % TRACE_EVERY]}\n" for n in range(EVENTS_PER_CHUNK)).encode()


def chunk(first: int) -> bytes:
    return CHUNK % tuple(range(first, first + EVENTS_PER_CHUNK))


def write_fast(logs: Path, events: int) -> None:
    """Files of 64 MB; every fourth is copied and cut off, the others are renamed."""
    app, first, rotations = logs / "app.log", 0, 0
    while first < events:
        with app.open("ab") as file:
            while file.tell() < 64 * MIB and first < events:
                file.write(chunk(first))
                first += EVENTS_PER_CHUNK
        rotations += 1
        rotate(app, logs / f"app.log.{rotations}", rename=rotations % 4 != 0)


def write_unruly(logs: Path, events: int) -> None:
    """Files of any size, lines written in two parts, pauses in between."""
    dice = random.Random(events)
    app, first, rotations = logs / "app.log", 0, 0
    while first < events:
        file_bytes = dice.randint(1, 2 * MIB)
        with app.open("ab", buffering=0) as file:
            while file.tell() < file_bytes and first < events:
                data, cut = chunk(first), dice.randrange(400 * KIB)
                file.write(data[:cut])
                time.sleep(dice.choice([0.0, 0.0, dice.uniform(0.0, 0.02)]))
                file.write(data[cut:])
                first += EVENTS_PER_CHUNK
        rotations += 1
        rotate(app, logs / f"app.log.{rotations}", rename=dice.random() < 0.5)


def rotate(app: Path, to: Path, rename: bool) -> None:
    if rename:
        app.rename(to)
    else:
        shutil.copy(app, to)
        os.truncate(app, 0)


class Program:
    """The fetcher's process, started anew each time it was killed."""

    def __init__(self, place: Path) -> None:
        config = {
            "paths": [str(place / "logs" / "app.log*")],
            "service": "orders",
            "multiline": {"first_line": r"\d{4}-\d\d-\d\d ", "timeout": "8s"},
            "interval": "200ms",
        }
        given = {"queue": str(place / "queue"), "fetcher": str(place / "fetcher")}
        self._command = json.dumps({**given, "config": config})
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        path = Path(__file__).with_name("fetching.py")
        self._process = subprocess.Popen([sys.executable, str(path), self._command])

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        assert self._process is not None
        self._process.terminate()
        # Without a handler yet, if it has only just been started again.
        assert self._process.wait(WAIT_S) in (0, -signal.SIGTERM)


@contextmanager
def writing(write: Write, logs: Path, events: int) -> Iterator[None]:
    child = os.fork()
    if child == 0:
        end = 1
        try:
            write(logs, events)
            end = 0
        finally:
            os._exit(end)
    yield
    assert os.waitpid(child, 0)[1] == 0


class Check:
    """Takes what the queue holds, record by record, and frees it."""

    def __init__(self, queue: Path, expected: int) -> None:
        self.seen = bytearray(expected)
        self.records = 0
        self._queue = queue
        self._reader = Reader(queue)
        self._consumer = Consumer(queue, "main")

    def start(self) -> None:
        deadline = time.monotonic() + WAIT_S
        for part in (self._reader, self._consumer):
            while True:
                try:
                    part.start()
                    break
                except QueueMissing:
                    assert time.monotonic() < deadline
                    time.sleep(0.05)

    def stop(self) -> None:
        self._reader.stop()
        self._consumer.stop()

    def take(self) -> None:
        at = self._consumer.committed()
        self._reader.wait(at, 0.2)
        for run in self._reader.runs(at, self._reader.writing(), 4 * MIB):
            assert not run.damaged
            for payload in run.payloads():
                text = LogData.FromString(payload).body.text.text
                at = text.index(MARK) + len(MARK)
                number = int(text[at : at + 9])
                assert text == TEMPLATES[number % TRACE_EVERY] % number
                self.seen[number] += 1
            self.records += run.count
            self._consumer.commit(run.end)


def fetched(place: Path, write: Write, events: int, kills: int) -> Check:
    (place / "logs").mkdir()
    check, program = Check(place / "queue", events), Program(place)
    dice = random.Random(events)
    deaths = sorted(dice.uniform(0.05, 0.95) * events for _ in range(kills))
    deadline = time.monotonic() + WAIT_S
    with writing(write, place / "logs", events):
        program.start()
        try:
            check.start()
            while check.records < events:
                check.take()
                if deaths and check.records >= deaths[0]:
                    deaths.pop(0)
                    program.kill()
                    program.start()
                assert time.monotonic() < deadline, f"{check.records} of {events}"
            time.sleep(1.0)
            check.take()
            program.stop()
        finally:
            program.kill()
            check.stop()
    return check


def wrong(check: Check) -> dict[str, list[int]]:
    return {
        "lost": [number for number, times in enumerate(check.seen) if not times][:10],
        "twice": [number for number, times in enumerate(check.seen) if times > 1][:10],
    }


def events_of(total_bytes: int) -> int:
    return -(-total_bytes // len(chunk(0))) * EVENTS_PER_CHUNK


@pytest.mark.parametrize(
    ("write", "total_bytes", "kills"),
    [(write_fast, 1 * GIB, 5), (write_unruly, 30 * MIB, 10)],
    ids=["a gigabyte", "many rotations, many deaths"],
)
def test_every_line_comes_once_and_every_trace_whole(
    tmp_path: Path, write: Write, total_bytes: int, kills: int
) -> None:
    check = fetched(tmp_path, write, events_of(total_bytes), kills)

    assert wrong(check) == {"lost": [], "twice": []}
    assert check.records == len(check.seen)
    shutil.rmtree(tmp_path)
