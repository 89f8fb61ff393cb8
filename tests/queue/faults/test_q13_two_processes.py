"""Q13: two processes, one queue: started twice, forked after opening, and a stale process id.

The lock is the kernel's and ends with the last process that holds it; nothing is ever stolen after
a time, and the number in the file is for people.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from skyfarer.queue.errors import QueueLocked

CONTENDERS = 12


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


class Apart:
    """A child that does `act`, says what came of it, and lives until it is killed."""

    def __init__(self, act: Callable[[], str]) -> None:
        self._here, there = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.write(there, act().encode())
                signal.pause()
            finally:
                os._exit(1)
        os.close(there)

    def says(self) -> str:
        return os.read(self._here, 16).decode()

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._here)


def own_three(bench) -> str:
    bench.writer().append(1, [b"owned"] * 3)
    return "ready"


def test_q13_a_second_process_is_refused_by_name_and_changes_not_one_byte(bench):
    owner = Apart(partial(own_three, bench))
    assert owner.says() == "ready"
    before = contents(bench.directory)
    refused = 0
    for _ in range(CONTENDERS):
        with pytest.raises(QueueLocked, match=f"in process {owner.pid};"):
            bench.writer()
        refused += 1
    assert contents(bench.directory) == before
    owner.kill()
    assert refused == CONTENDERS
    assert bench.writer().writing == 3
    assert bench.records() == [b"owned"] * 3


def test_q13_of_many_that_start_at_once_exactly_one_owns_the_queue(bench):
    gate_here, gate_there = os.pipe()

    def contend() -> str:
        os.read(gate_here, 1)
        try:
            bench.writer()
        except QueueLocked:
            return "refused"
        return "owns"

    contenders = [Apart(contend) for _ in range(CONTENDERS)]
    os.write(gate_there, b"!" * CONTENDERS)
    said = [contender.says() for contender in contenders]
    for contender in contenders:
        contender.kill()
    assert sorted(said) == ["owns"] + ["refused"] * (CONTENDERS - 1)
    assert bench.writer().writing == 0


@pytest.mark.parametrize("stale", ["1", "999999999", "", "not a number", "\xff" * 40])
def test_q13_a_process_id_left_in_the_lock_file_keeps_nobody_out(bench, stale):
    """Process 1 is alive on every machine, and does not own this queue."""
    writer = bench.writer()
    writer.append(1, [b"kept"])
    writer.stop(0.0)
    (bench.directory / "lock").write_text(stale, "latin-1")
    assert bench.writer().writing == 1
    assert (bench.directory / "lock").read_bytes()[:32].strip() == b"%d" % os.getpid()
    assert bench.records() == [b"kept"]


def test_q13_a_fork_after_opening_keeps_the_lock_until_it_ends_too(bench):
    """Its copy of the writer might still write: to let another one in would be theft."""

    def open_and_fork() -> str:
        own_three(bench)
        heir = os.fork()
        if heir == 0:
            signal.pause()
        return str(heir)

    owner = Apart(open_and_fork)
    heir = int(owner.says())
    end_of_heir = os.pidfd_open(heir)
    owner.kill()
    with pytest.raises(QueueLocked, match=f"in process {owner.pid};"):
        bench.writer()
    os.kill(heir, signal.SIGKILL)
    select.select([end_of_heir], [], [])
    os.close(end_of_heir)
    assert bench.writer().writing == 3
    assert bench.records() == [b"owned"] * 3


def test_q13_a_program_started_by_the_owner_inherits_no_lock(bench):
    writer = bench.writer()
    writer.append(1, [b"kept"])
    program = subprocess.Popen(["sleep", "600"], close_fds=False)
    writer.stop(0.0)
    assert bench.writer().writing == 1
    program.kill()
    program.wait()
