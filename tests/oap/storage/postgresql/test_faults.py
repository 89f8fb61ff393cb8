"""Servers and connections that are killed, tables that others have made, time that is over."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from zoneinfo import ZoneInfo

import psycopg
import pytest

from contracts.storage_contract import BUCKET, batch, calls_of, delta, records, segment
from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.oap.core import ids
from skyfarer.oap.storage.postgresql import PostgresStorage, schema
from skyfarer.testing.programs import eventually
from third_parties.postgresql import Server

SHOP = ids.service_id("shop")
TIMEOUT_S = 120.0
KILLS = 2


@pytest.fixture
def durable() -> Iterator[Server]:
    server = Server(durable=True)
    try:
        yield server.start()
    finally:
        server.close()


def one(number: int) -> object:
    """With a tag of its own, which is stored alone (`Lock.MERGING`)."""
    tagged = segment(f"s{number}", tags=[f"number={number}"])
    return batch(number, number + 1, [tagged], [delta()])


def agree(storage: PostgresStorage, reached: int) -> None:
    """Offset, metrics and segments speak of the same batches."""
    assert storage.applied("queue-a") == reached
    calls = calls_of(storage, "Service", SHOP, BUCKET, BUCKET)
    assert [row["calls"] for row in calls.values()] == [reached] * (reached > 0)
    assert len(storage.trace("t", 99_999, 1)) == reached


def test_a_connection_killed_in_the_middle_of_a_batch_leaves_nothing_of_it(
    storage: PostgresStorage, conninfo: str
) -> None:
    storage.apply(one(0))
    failures: list[Exception] = []

    def apply() -> None:
        try:
            storage.apply(one(1))
        except RetryableError as error:
            failures.append(error)

    applying = threading.Thread(target=apply)
    with psycopg.connect(conninfo) as connection:
        schema.take(connection.cursor(), schema.Lock.MERGING)
        applying.start()
        eventually(lambda: waiting(connection) != [], TIMEOUT_S, "the batch waits for its turn")
        connection.execute("SELECT pg_terminate_backend(%s)", waiting(connection))
        applying.join(TIMEOUT_S)
    (failure,) = failures
    assert str(failure).startswith("cannot write to PostgreSQL: ")
    agree(storage, 1)
    storage.apply(one(1))
    agree(storage, 2)


def waiting(connection: psycopg.Connection[tuple[int]]) -> list[int]:
    query = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    return [pid for (pid,) in connection.execute(query).fetchall()]


def test_a_server_that_crashes_under_its_writer_keeps_whole_batches(durable: Server) -> None:
    storage = PostgresStorage(durable.conninfo("postgres"))
    storage.start(UTC)
    applied = 0
    for more in range(1, KILLS + 1):
        enough = threading.Event()
        crash = threading.Thread(target=lambda: (enough.wait(TIMEOUT_S), durable.kill()))  # noqa: B023
        crash.start()
        first = applied
        with pytest.raises(RetryableError):
            while True:
                storage.apply(one(applied))
                applied += 1
                if applied - first >= 3 * more:
                    enough.set()
        crash.join(TIMEOUT_S)
        with pytest.raises(RetryableError, match="cannot read from PostgreSQL"):
            storage.applied("queue-a")
        durable.start()
        eventually(lambda: answers(storage), TIMEOUT_S, "the storage is connected again")
        reached = storage.applied("queue-a")
        assert reached in (applied, applied + 1)  # the answer to a commit may have been lost
        agree(storage, reached)
        applied = reached
    storage.stop()


def test_a_fold_that_a_crash_may_undo_loses_no_batch_and_counts_none_twice(durable: Server) -> None:
    storage = PostgresStorage(durable.conninfo("postgres"))
    storage.start(UTC)
    for number in range(KILLS):
        storage.apply(one(number))
        assert storage.fold() >= 1
        durable.kill()
        durable.start()
        eventually(lambda: answers(storage), TIMEOUT_S, "the storage is connected again")
        agree(storage, number + 1)
        storage.fold()
        agree(storage, number + 1)
    storage.stop()


def answers(storage: PostgresStorage) -> bool:
    try:
        storage.applied("queue-a")
    except RetryableError:
        return False
    return True


WRITER = """
import sys
from datetime import UTC
sys.path.insert(0, sys.argv[2])
from contracts.storage_contract import batch, delta, segment
from skyfarer.oap.storage.postgresql import PostgresStorage
storage = PostgresStorage(sys.argv[1])
storage.start(UTC)
number = storage.applied("queue-a")
while True:
    tagged = segment(f"s{number}", tags=[f"number={number}"])
    storage.apply(batch(number, number + 1, [tagged], [delta()]))
    storage.fold()
    number += 1
    print(number, flush=True)
"""


def test_a_killed_process_keeps_what_was_applied_and_nothing_in_part(conninfo: str) -> None:
    applied = 0
    for acknowledged in (3, 17):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, conninfo, str(Path(__file__).parents[3])],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        for _ in range(acknowledged):
            applied = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        storage = PostgresStorage(conninfo)
        storage.start(UTC)
        with storage._transaction() as cursor:  # whatever the dead one still had is undone by now
            schema.take(cursor, schema.Lock.MERGING)
        reached = storage.applied("queue-a")
        assert reached >= applied
        agree(storage, reached)
        storage.stop()


def test_a_newer_schema_is_refused(storage: PostgresStorage, conninfo: str) -> None:
    with storage._transaction() as cursor:
        cursor.execute("UPDATE schema_version SET version = 99")
    for install in (True, False):
        with pytest.raises(PermanentError, match="has schema 99, this program knows 4"):
            PostgresStorage(conninfo).start(UTC, install)


def test_without_install_tables_are_waited_for_and_never_made(conninfo: str) -> None:
    node = PostgresStorage(conninfo)
    with pytest.raises(RetryableError, match="table:agent_setting does not exist"):
        node.start(UTC, install=False)
    with psycopg.connect(conninfo) as connection:
        assert schema.present(connection.cursor()) == set()
    maker = PostgresStorage(conninfo)
    maker.start(UTC)
    maker.stop()
    node.start(UTC, install=False)
    node.apply(one(0))
    agree(node, 1)
    node.stop()


def test_start_and_stop_are_safe_twice_and_unstarted(conninfo: str) -> None:
    storage = PostgresStorage(conninfo)
    storage.stop()
    storage.start(UTC)
    storage.start(UTC)
    storage.stop()
    storage.stop()
    with pytest.raises(PermanentError, match="not started"):
        storage.applied("queue-a")
    storage.start(UTC)
    assert storage.applied("queue-a") == 0
    storage.stop()


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ("password=no", "password authentication failed"),
        ("dbname=nothing_here", "does not exist"),
        ("port=1", "refused"),
    ],
)
def test_what_cannot_be_connected_to_is_told_at_the_start(
    server: Server, wrong: str, sentence: str
) -> None:
    storage = PostgresStorage(f"{server.conninfo('postgres')} {wrong}")
    with pytest.raises((RetryableError, PermanentError), match="cannot connect to") as refused:
        storage.start(UTC)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_search_that_takes_too_long_is_ended(storage: PostgresStorage, conninfo: str) -> None:
    hasty = PostgresStorage(conninfo, read_timeout_s=2.0)
    hasty.start(UTC)
    with pytest.raises(RetryableError, match=r"searched for 2 s"), hasty._reading() as cursor:
        cursor.execute("SELECT pg_sleep(60)")
    assert hasty.applied("queue-a") == 0
    hasty.stop()


def test_a_reader_cannot_write(storage: PostgresStorage) -> None:
    with pytest.raises(RetryableError, match="read-only"), storage._reading() as cursor:
        cursor.execute("DELETE FROM source_offset")


def test_a_table_that_another_node_has_dropped_is_made_again(storage: PostgresStorage) -> None:
    storage.apply(batch(0, 1, records=records((0, 9, BUCKET_MINUTE, b"x"))))
    with storage._transaction() as cursor:
        cursor.execute("DROP TABLE record_20261115")
    again = batch(1, 2, records=records((1, 9, BUCKET_MINUTE, b"y")))
    with pytest.raises(RetryableError):
        storage.apply(again)
    storage.apply(again)
    assert [one.payload for one in storage.records(9, BUCKET, BUCKET, 9)] == [b"y"]


BUCKET_MINUTE = 1_794_744_000_000 // 60_000


def test_buckets_are_in_the_servers_zone(conninfo: str) -> None:
    storage = PostgresStorage(conninfo)
    storage.start(ZoneInfo("Asia/Kolkata"))
    storage.apply(one(0))
    assert list(calls_of(storage, "Service", SHOP, 202611151730, 202611151730)) == [202611151730]
    storage.stop()
