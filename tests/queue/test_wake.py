"""Waiting for records: awake at an append in any process, asleep otherwise."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from skyfarer.base.units import KIB
from skyfarer.queue.errors import QueueMissing
from skyfarer.queue.reader import Reader
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.wake import FILE, Sleeper
from skyfarer.queue.writer import Writer

LONG_S = 120.0
"""Longer than any test runs: whoever waits that long was never woken."""

WAITER = """
import sys
from pathlib import Path
from skyfarer.queue.reader import Reader
reader = Reader(Path(sys.argv[1]))
reader.start()
beyond = int(sys.argv[2])
print("waiting", flush=True)
while True:
    assert reader.wait(beyond, 120.0)
    beyond = reader.writing()
    print(beyond - 1, flush=True)
    if beyond > int(sys.argv[3]):
        break
"""


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    writer = Writer(
        QueueSettings(tmp_path / "queue", 64 * KIB, 512 * KIB, record_bytes_max=4 * KIB)
    )
    writer.start()
    yield writer
    writer.stop(0)


@pytest.fixture
def reader(writer: Writer, tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path / "queue")
    reader.start()
    yield reader
    reader.stop()


def waiting_process(directory: Path, beyond: int, until: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WAITER, str(directory), str(beyond), str(until)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    return process


def test_what_is_there_already_is_not_waited_for(writer: Writer, reader: Reader) -> None:
    writer.append(1, [b"a"])
    assert reader.wait(0, LONG_S)


def test_a_wait_without_a_record_ends_in_time(reader: Reader) -> None:
    assert not reader.wait(0, 0.0)
    assert not reader.wait(0, 0.05)


def test_a_thread_that_waits_is_woken_by_an_append(writer: Writer, reader: Reader) -> None:
    woken = threading.Event()

    def wait() -> None:
        if reader.wait(0, LONG_S):
            woken.set()

    thread = threading.Thread(target=wait)
    thread.start()
    writer.append(1, [b"a"])
    assert woken.wait(LONG_S)
    thread.join()


def test_processes_that_wait_are_all_woken_every_time(writer: Writer, tmp_path: Path) -> None:
    last = 50
    waiters = [waiting_process(tmp_path / "queue", 0, last) for _ in range(3)]
    for _ in range(last + 1):
        writer.append(1, [b"a"])
        os.sched_yield()
    for waiter in waiters:
        assert waiter.wait(2 * LONG_S) == 0


def test_one_by_one_each_append_wakes_the_waiter(writer: Writer, tmp_path: Path) -> None:
    waiter = waiting_process(tmp_path / "queue", 0, 200)
    assert waiter.stdout is not None
    for number in range(201):
        writer.append(1, [b"a"])
        assert int(waiter.stdout.readline()) == number
    assert waiter.wait(2 * LONG_S) == 0


def test_it_is_the_signal_that_wakes_and_not_a_second_look(writer: Writer, tmp_path: Path) -> None:
    """Asleep in the kernel, with nothing else to wake it before the test gives up."""
    reader = Reader(tmp_path / "queue", look_again_s=LONG_S)
    reader.start()
    for number in range(5):
        woken = threading.Event()
        thread = threading.Thread(
            target=lambda n=number, woken=woken: reader.wait(n, LONG_S) and woken.set()
        )
        thread.start()
        while not (_says_that_it_sleeps(tmp_path / "queue") and _is_asleep(thread)):
            os.sched_yield()
        writer.append(1, [b"a"])
        assert woken.wait(LONG_S / 6)
        thread.join()
    reader.stop()


def _says_that_it_sleeps(directory: Path) -> bool:
    return (directory / FILE).read_bytes()[4:8] != bytes(4)


def _is_asleep(thread: threading.Thread) -> bool:
    stat = Path(f"/proc/self/task/{thread.native_id}/stat").read_text()
    return stat.rpartition(")")[2].split()[0] == "S"


def test_a_killed_waiter_harms_nobody(writer: Writer, reader: Reader, tmp_path: Path) -> None:
    waiter = waiting_process(tmp_path / "queue", 0, 10)
    os.kill(waiter.pid, signal.SIGKILL)
    waiter.wait()
    writer.append(1, [b"a"])
    assert reader.wait(0, LONG_S)


def test_a_waiter_outlives_a_restart_of_the_writer(writer: Writer, tmp_path: Path) -> None:
    waiter = waiting_process(tmp_path / "queue", 0, 0)
    writer.stop(0)
    writer.start()
    writer.append(1, [b"a"])
    assert waiter.wait(2 * LONG_S) == 0


def test_waiting_costs_no_processor(writer: Writer, reader: Reader) -> None:
    before = os.times()
    assert not reader.wait(0, 1.5)
    after = os.times()
    assert (after.user + after.system) - (before.user + before.system) <= 0.1


def test_a_queue_that_nobody_made_yet_cannot_be_waited_for(tmp_path: Path) -> None:
    with pytest.raises(QueueMissing):
        Reader(tmp_path).start()


def test_an_append_leaves_the_page_alone_while_nobody_sleeps(
    writer: Writer, reader: Reader, tmp_path: Path
) -> None:
    page = tmp_path / "queue" / FILE
    before = page.read_bytes()
    assert not reader.wait(0, 0.0)
    writer.append(1, [b"a"])
    writer.append(1, [b"b", b"c"])
    assert page.read_bytes() == before


def test_an_append_behind_a_look_changes_the_signal_of_all_who_are_about_to_sleep(
    writer: Writer, tmp_path: Path
) -> None:
    sleepers = [Sleeper(tmp_path / "queue") for _ in range(2)]
    for batch in ([b"a"], [b"b", b"c"]):
        tokens = [sleeper.token() for sleeper in sleepers]
        writer.append(1, batch)
        for sleeper, token in zip(sleepers, tokens, strict=True):
            assert sleeper.token() != token
    for sleeper in sleepers:
        sleeper.close()
