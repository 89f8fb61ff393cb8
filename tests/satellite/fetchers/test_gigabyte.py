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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from skyfarer.base.units import GIB, KIB, MIB
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.errors import QueueMissing
from skyfarer.queue.reader import Reader
from skyfarer.wire.generated.log_pb2 import LogData

WAIT_S = 300.0
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
CHUNK = "".join(f"{TEMPLATES[n % TRACE_EVERY]}\n" for n in range(EVENTS_PER_CHUNK)).encode()


def write_and_rotate(logs: Path, total_bytes: int, file_bytes: int) -> None:
    """Every fourth rotation by copying and cutting off, the others by renaming."""
    app, written, first, rotations = logs / "app.log", 0, 0, 0
    while written < total_bytes:
        with app.open("ab") as file:
            while file.tell() < file_bytes and written < total_bytes:
                written += file.write(CHUNK % tuple(range(first, first + EVENTS_PER_CHUNK)))
                first += EVENTS_PER_CHUNK
        rotations += 1
        if rotations % 4:
            app.rename(logs / f"app.log.{rotations}")
        else:
            shutil.copy(app, logs / f"app.log.{rotations}")
            os.truncate(app, 0)


class Program:
    """The fetcher's process, started anew each time it was killed."""

    def __init__(self, place: Path) -> None:
        config = {
            "paths": [str(place / "logs" / "app.log*")],
            "service": "orders",
            "multiline": {"first_line": r"\d{4}-\d\d-\d\d ", "timeout": "2s"},
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
def writing(*arguments: object) -> Iterator[None]:
    child = os.fork()
    if child == 0:
        end = 1
        try:
            write_and_rotate(*arguments)  # type: ignore[arg-type]
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


def fetched(place: Path, total_bytes: int, file_bytes: int, kills: int) -> Check:
    (place / "logs").mkdir()
    chunks = -(-total_bytes // len(CHUNK % tuple(range(EVENTS_PER_CHUNK))))
    check, program = Check(place / "queue", chunks * EVENTS_PER_CHUNK), Program(place)
    dice = random.Random(total_bytes)
    deaths = sorted(dice.uniform(0.05, 0.95) * len(check.seen) for _ in range(kills))
    deadline = time.monotonic() + WAIT_S
    with writing(place / "logs", total_bytes, file_bytes):
        program.start()
        try:
            check.start()
            while check.records < len(check.seen):
                check.take()
                if deaths and check.records >= deaths[0]:
                    deaths.pop(0)
                    program.kill()
                    program.start()
                assert time.monotonic() < deadline, f"{check.records} of {len(check.seen)}"
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


@pytest.mark.parametrize(
    ("total_bytes", "file_bytes", "kills"),
    [(1 * GIB, 64 * MIB, 5), (24 * MIB, 700 * KIB, 12)],
    ids=["a gigabyte", "many rotations, many deaths"],
)
def test_every_line_comes_once_and_every_trace_whole(
    tmp_path: Path, total_bytes: int, file_bytes: int, kills: int
) -> None:
    began = time.monotonic()

    check = fetched(tmp_path, total_bytes, file_bytes, kills)

    assert wrong(check) == {"lost": [], "twice": []}
    assert check.records == len(check.seen)
    print(f"{total_bytes / MIB:.0f} MiB, {check.records} records: {time.monotonic() - began:.1f} s")
    shutil.rmtree(tmp_path)
