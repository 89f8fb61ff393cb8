"""A process with a lock of all nodes is stopped in the middle of a COPY, and the others go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC

import pytest

from contracts.metrics_contract import SHOP
from contracts.storage_contract import MINUTE, batch, calls_of, delta, sums
from oap.storage.postgresql.test_c04_stopped_holder import heard, stop, told
from skyfarer.oap.storage.postgresql import PostgresStorage
from skyfarer.oap.storage.postgresql.schema import Lock
from skyfarer.testing.programs import eventually

IDLE_S = 2.0
TURN_S = 0.2
TIMEOUT_S = 50.0
DAY = 20261115
PROGRAM = """
import sys
from datetime import UTC
import pyarrow as pa
from skyfarer.base.errors import RetryableError
from skyfarer.oap.storage.postgresql import PostgresStorage, copying, schema

def halting(rows):
    if rows.num_rows:
        print("halfway", flush=True)
        sys.stdin.readline()
    return rows

conninfo, lock = sys.argv[1:]
storage = PostgresStorage(conninfo)
storage.start(UTC)
try:
    with storage._transaction() as cursor:
        schema.take(cursor, schema.Lock[lock])
        copying.bring(cursor, "incoming", pa.table({"a": range(9)}), halting)
except RetryableError:
    print("undone", flush=True)
storage.stop()
"""


@contextmanager
def writer(conninfo: str, lock: Lock) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, conninfo, lock.name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def impatient(conninfo: str, storage: PostgresStorage) -> Iterator[PostgresStorage]:
    """Another node, which takes the lock for whatever stands still so long."""
    impatient = PostgresStorage(conninfo, fold_s=TURN_S, idle_s=IDLE_S)
    impatient.start(UTC)
    yield impatient
    impatient.stop()


@pytest.mark.parametrize("lock", [Lock.MERGING, Lock.FOLDING])
def test_c04_a_writer_that_is_stopped_in_the_middle_of_a_copy_holds_up_nobody(
    conninfo: str, storage: PostgresStorage, impatient: PostgresStorage, lock: Lock
) -> None:
    with writer(conninfo, lock) as process:
        assert heard(process) == "halfway"
        stop(process)
        impatient.apply(batch(0, 1, deltas=[delta(MINUTE)]))
        eventually(lambda: is_folded(impatient), TIMEOUT_S, "what it brought is folded")
        os.kill(process.pid, signal.SIGCONT)
        told(process, "go on")
        assert heard(process) == "undone"
    assert calls_of(storage, "Service", SHOP, DAY, DAY) == {DAY: sums(1, 10, 0)}


def is_folded(storage: PostgresStorage) -> bool:
    with storage._reading() as cursor:
        cursor.execute(f"SELECT count(*) FROM metrics_service_{DAY}")
        return cursor.fetchall() != [(0,)]


def test_a_server_looks_after_its_end_of_a_connection_too(storage: PostgresStorage) -> None:
    names = ("tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count")
    with storage._transaction() as cursor:
        for name in (*names, "tcp_user_timeout"):
            ((seconds,),) = cursor.execute("SELECT current_setting(%s)", [name]).fetchall()
            assert 0 < int(seconds) <= 60_000
