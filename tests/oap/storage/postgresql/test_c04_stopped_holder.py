"""A process that has the lease is stopped before its drop and goes on when another has it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from contracts.expiry_contract import NOON
from contracts.storage_contract import batch, segment
from skyfarer.oap.core.expiry import DayTable
from skyfarer.oap.storage.postgresql import PostgresStorage
from skyfarer.testing.programs import eventually

PAUSES = 500
LEASE = "ttl"
LEASE_S = 0.05
LONG_S = 30.0
PROGRAM = """
import sys
from datetime import UTC
from skyfarer.base.errors import PermanentError
from skyfarer.oap.core.expiry import DayTable, Kept
from skyfarer.oap.storage.postgresql import PostgresStorage

conninfo, name, model, day = sys.argv[1:]
storage = PostgresStorage(conninfo)
storage.start(UTC)
for line in sys.stdin:
    lease = storage.take_lease(name, "stopped", float(line))
    print(lease.epoch, flush=True)
    sys.stdin.readline()
    try:
        print(storage.drop(lease, DayTable(model, int(day), Kept.RECORD)), flush=True)
    except PermanentError:
        print("refused", flush=True)
storage.stop()
"""


@contextmanager
def holder(conninfo: str, table: DayTable) -> Iterator[subprocess.Popen[str]]:
    arguments = [conninfo, LEASE, table.model, str(table.day)]
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def told(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def heard(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def stop(process: subprocess.Popen[str]) -> None:
    os.kill(process.pid, signal.SIGSTOP)
    stopped = psutil.STATUS_STOPPED
    eventually(lambda: psutil.Process(process.pid).status() == stopped, LONG_S, "it stands still")


def test_c04_of_500_stopped_processes_that_had_the_lease_none_drops_anything(
    conninfo: str, storage: PostgresStorage
) -> None:
    storage.apply(batch(0, 1, [segment("s", NOON)]))
    table = next(one for one in storage.day_tables() if one.model == "segment")
    epochs, outcomes = [], []
    with holder(conninfo, table) as process:
        for _ in range(PAUSES):
            told(process, str(LEASE_S))
            epochs.append(int(heard(process)))
            stop(process)
            told(process, "drop it")
            eventually(
                lambda: storage.take_lease(LEASE, "another", LEASE_S) is not None,
                *(LONG_S, "the lease has ended"),
            )
            eventually(lambda: _is_free(storage), LONG_S, "the other's lease has ended too")
            os.kill(process.pid, signal.SIGCONT)
            outcomes.append(heard(process))
        assert outcomes == ["refused"] * PAUSES
        assert epochs == sorted(set(epochs)), "each lease has an epoch of its own"
        assert table in storage.day_tables()

        told(process, str(LONG_S))
        heard(process)
        told(process, "not stopped, it drops")
        assert heard(process) == "True"
        assert table not in storage.day_tables()


def _is_free(storage: PostgresStorage) -> bool:
    """Given back at once by whoever asks."""
    return storage.take_lease(LEASE, "a third", 0) is not None
