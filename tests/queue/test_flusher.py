"""The watermark follows what is appended, and costs nothing while nothing is."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from skyfarer.base.errors import ConfigError
from skyfarer.queue.flusher import Flusher
from skyfarer.queue.writer import Writer

from .bench import UnsyncedDisk
from .watched_disk import WatchedDisk

PLENTY_S = 60.0
NEVER_MS = 60_000


class FailingDisk(UnsyncedDisk):
    def __init__(self) -> None:
        self.broken = False

    def sync_data(self, fd: int) -> None:
        if self.broken:
            raise OSError(errno.EIO, os.strerror(errno.EIO))


def until(holds: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PLENTY_S
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.001)


@pytest.fixture
def flushing(bench) -> Iterator[Callable[..., tuple[Writer, Flusher]]]:
    made: list[Flusher] = []

    def make(disk=None, **changes: object) -> tuple[Writer, Flusher]:
        settings = bench.settings(**changes)
        writer = bench.writer(disk, **changes)
        made.append(flusher := Flusher(writer, settings))
        flusher.start()
        return writer, flusher

    yield make
    for flusher in made:
        flusher.stop(PLENTY_S)


def test_the_watermark_follows_what_is_appended(flushing):
    writer, _ = flushing(flush_period_ms=10)
    for count in range(1, 4):
        writer.append(1, [b"a"])
        until(lambda now=count: writer.durable == now)


def test_so_many_records_do_not_wait_for_the_period(flushing):
    writer, _ = flushing(flush_period_ms=5_000, flush_count=20)
    writer.append(1, [b"x"] * 20)
    until(lambda: writer.durable == 20)


def test_what_an_earlier_writer_appended_is_flushed_at_the_start(bench, flushing):
    bench.writer().append(1, [b"a", b"b"])
    bench.close()
    writer, _ = flushing(flush_period_ms=10)
    until(lambda: writer.durable == 2)


def test_nobody_wakes_up_while_nothing_is_appended(flushing):
    """A flush more would be counted; and a thread that looked again would use its CPU."""
    writer, flusher = flushing(flush_period_ms=1)
    writer.append(1, [b"a"])
    until(lambda: writer.durable == 1)
    flushes = flusher.flushes
    [thread] = [one for one in threading.enumerate() if one.name == "queue flusher"]
    until(lambda: _switches(thread) == _switches_after_a_moment(thread))
    assert flusher.flushes == flushes


def _switches(thread: threading.Thread) -> int:
    """How often it went to sleep."""
    status = Path(f"/proc/self/task/{thread.native_id}/status").read_text()
    return sum(int(line.split()[1]) for line in status.splitlines() if "voluntary_" in line)


def _switches_after_a_moment(thread: threading.Thread) -> int:
    time.sleep(0.2)
    return _switches(thread)


def test_a_reader_that_sleeps_and_a_flusher_are_both_woken(bench, flushing):
    writer, _ = flushing(flush_period_ms=10)
    reader, woken = bench.reader(), []
    sleeper = threading.Thread(target=lambda: woken.append(reader.wait(0, PLENTY_S)))
    sleeper.start()
    writer.append(1, [b"a"])
    sleeper.join()
    assert woken == [True]
    until(lambda: writer.durable == 1)


def test_a_flush_that_fails_is_said_once_and_tried_again(bench, flushing, caplog):
    disk = FailingDisk()
    writer, _ = flushing(disk, flush_period_ms=1)
    disk.broken = True
    writer.append(1, [b"a"])
    until(lambda: "cannot be flushed" in caplog.text)
    disk.broken = False
    bench.consumer().commit(1)
    writer.append(1, [b"b"])
    until(lambda: "flushed again, up to record" in caplog.text)
    until(lambda: writer.durable == 2)
    assert caplog.text.count("cannot be flushed") == 1


@pytest.mark.parametrize("changes", [{"durability": "fsync"}, {"flush_period_ms": 0}])
def test_there_is_no_thread_where_there_is_nothing_to_flush(flushing, changes):
    flushing(**changes)
    assert "queue flusher" not in [thread.name for thread in threading.enumerate()]


def test_it_ends_while_it_waits_and_may_be_started_again(bench, flushing):
    writer, flusher = flushing(flush_period_ms=NEVER_MS)
    flusher.stop(PLENTY_S)
    flusher.stop(PLENTY_S)
    writer.append(1, [b"a"])
    flusher.start()
    flusher.stop(PLENTY_S)
    assert "queue flusher" not in [thread.name for thread in threading.enumerate()]
    assert writer.durable == 0


@pytest.mark.parametrize(
    "changes", [{"flush_period_ms": -1}, {"flush_period_ms": 60_001}, {"flush_count": 0}]
)
def test_a_period_and_a_count_have_bounds(bench, changes):
    with pytest.raises(ConfigError, match=next(iter(changes))):
        bench.settings(**changes)


def test_commits_are_flushed_with_it_and_not_twice(bench):
    disk = WatchedDisk()
    writer, consumer = bench.writer(disk), bench.consumer()
    writer.append(1, [b"a", b"b"])
    for committed in (1, 2):
        consumer.commit(committed)
        for _ in range(2):
            writer.sync_places()
    assert disk.synced == ["consumer-main"] * 2
