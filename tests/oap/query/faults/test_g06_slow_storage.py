"""A storage that stalls: who asks is told, what it was asked is ended there, ingest goes on."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

import httpx
import psycopg
import pytest

from contracts import log_contract
from contracts.storage_contract import NOON, batch, delta, segment
from oap.query.conftest import NOW_MS, PLAN, ZONE
from skyfarer.base.errors import RetryableError
from skyfarer.oap.core.deadline import LateError, within
from skyfarer.oap.core.logs import LogCondition
from skyfarer.oap.core.traces import StoredSegment
from skyfarer.oap.query import QueryServer, limits
from skyfarer.oap.storage.embedded import EmbeddedStorage
from skyfarer.oap.storage.embedded.searching import bounded
from skyfarer.oap.storage.postgresql import PostgresStorage
from skyfarer.oap.storage.postgresql.copying import Cursor
from skyfarer.oap.storage.postgresql.searching import Search
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.clock import HandClock
from skyfarer.testing.memory_reader import MemoryReader
from skyfarer.testing.programs import eventually
from third_parties.postgresql import Server

READ_TIMEOUT_S = 2.0
CROWD = limits.REQUESTS_WAITING_MAX + 10
STALLED = (
    "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND wait_event_type = 'Lock'"
)
ENDLESS = "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range <> b.range"


@pytest.fixture
def postgresql() -> Iterator[Server]:
    server = Server()
    try:
        yield server.start()
    finally:
        server.close()


def asking(port: int, query: str) -> dict[str, Any]:
    url = f"http://127.0.0.1:{port}/graphql"
    answer: dict[str, Any] = httpx.post(
        url, json={"query": query}, trust_env=False, timeout=120
    ).json()
    return answer


def test_a_search_of_postgresql_that_stalls_is_ended_there_and_told_while_ingest_goes_on(
    postgresql: Server,
) -> None:
    conninfo, health = postgresql.space(), Health()
    storage = PostgresStorage(conninfo, read_timeout_s=READ_TIMEOUT_S)
    storage.start(ZONE)
    storage.apply(batch(0, 1, [segment("a", trace_id="t")], [delta()]))
    log_contract.apply(storage, log_contract.log("before"))
    health.started()
    server = QueryServer(
        *(socket.create_server(("127.0.0.1", 0)), storage, MemoryReader().ledger, health),
        *(Registry(), HandClock(NOW_MS), ZONE),
        plan=PLAN,
    )
    server.start()
    try:
        with psycopg.connect(conninfo) as holder, ThreadPoolExecutor(limits.WORKERS) as crowd:
            holder.execute("LOCK TABLE segment_20261115 IN ACCESS EXCLUSIVE MODE")
            query = '{ queryTrace(traceId: "t") { spans { traceId } } }'
            asked = [crowd.submit(asking, server.port, query) for _ in range(limits.WORKERS)]
            eventually(lambda: counted(postgresql, STALLED) > 0, 120, "a search waits")
            storage.apply(batch(2, 3, logs=log_contract.told(2, [log_contract.log("meanwhile")])))
            messages = {one.result(120)["errors"][0]["message"] for one in asked}
            assert counted(postgresql, STALLED) == 0, "a search was left behind"
            assert httpx.get(
                f"http://127.0.0.1:{server.port}/healthcheck", trust_env=False, timeout=60
            ).is_success
        assert all("internal error" not in message for message in messages), messages
        assert any(f"{READ_TIMEOUT_S:g} s" in message for message in messages), messages
        found = storage.logs(LogCondition(), True, 0, 9, 1000)
        assert [one.data for one in found] == [b"meanwhile", b"before"]
        assert asking(server.port, query)["data"]["queryTrace"]["spans"], "it is over"
    finally:
        server.stop(5)
        storage.stop()


def test_a_read_of_postgresql_has_no_more_time_than_whoever_asked(postgresql: Server) -> None:
    storage, clock = PostgresStorage(postgresql.space(), read_timeout_s=10.0), HandClock(0)
    storage.start(ZONE)
    try:
        with within(30.0, clock):
            assert [timeout(storage._reading), timeout(storage._looking_up)] == ["10s", "10s"]
            clock.seconds = 27.5
            assert [timeout(storage._reading), timeout(storage._looking_up)] == ["2500ms"] * 2
            with storage._reading() as cursor:
                (row,) = Search(cursor, 10.0).rows(
                    "SELECT current_setting('statement_timeout')", {}
                )
                assert int(row[0].removesuffix("ms").removesuffix("s")) <= 2500
            clock.seconds = 30.0
            with pytest.raises(LateError):
                storage.services(None)
        assert timeout(storage._looking_up) == "10s", "the next one is not cut short"
    finally:
        storage.stop()


def timeout(reading: Callable[[], AbstractContextManager[Cursor]]) -> str:
    with reading() as cursor:
        (row,) = cursor.execute("SELECT current_setting('statement_timeout')").fetchall()
    return str(row[0])


def counted(server: Server, query: str) -> int:
    with server.connect("postgres") as connection:
        (row,) = connection.execute(query).fetchall()
    return int(row[0])


def test_a_search_of_the_embedded_storage_is_interrupted_and_others_go_on(tmp_path) -> None:
    storage = EmbeddedStorage()
    storage.start(tmp_path / "skyfarer.duckdb", ZONE)
    try:
        cursor = storage._cursor()
        with pytest.raises(RetryableError, match="ask for a shorter time"), bounded(cursor, 0.2):
            cursor.execute(ENDLESS).fetchall()
        storage.apply(batch(0, 1, [segment("a", NOON, trace_id="t")]))
        assert len(storage.trace("t", 9, 9_999)) == 1
    finally:
        storage.stop()


class StallingStorage(EmbeddedStorage):
    """Any trace takes for ever to be found."""

    def trace(self, trace_id: str, segments_max: int, bytes_max: int) -> list[StoredSegment]:
        cursor = self._cursor()
        with bounded(cursor, READ_TIMEOUT_S):
            cursor.execute(ENDLESS).fetchall()
        raise AssertionError("it came to an end")


def test_a_search_of_the_embedded_storage_that_stalls_is_told_while_ingest_goes_on(
    tmp_path,
) -> None:
    storage, health = StallingStorage(), Health()
    storage.start(tmp_path / "skyfarer.duckdb", ZONE)
    storage.apply(batch(0, 1, [segment("a", trace_id="t")], [delta()]))
    health.started()
    server = QueryServer(
        *(socket.create_server(("127.0.0.1", 0)), storage, MemoryReader().ledger, health),
        *(Registry(), HandClock(NOW_MS), ZONE),
        plan=PLAN,
    )
    server.start()
    try:
        with ThreadPoolExecutor(1) as crowd:
            query = '{ queryTrace(traceId: "t") { spans { traceId } } }'
            asked = crowd.submit(asking, server.port, query)
            storage.apply(batch(1, 2, logs=log_contract.told(1, [log_contract.log("meanwhile")])))
            (error,) = asked.result(120)["errors"]
        assert error["message"].startswith(f"storage was searched for {READ_TIMEOUT_S:g} s")
        assert storage.applied("queue-a") == 2
        assert asking(server.port, "{ listServices { name } }")["data"], "others go on"
    finally:
        server.stop(5)
        storage.stop()


def test_when_every_worker_waits_for_storage_the_door_still_answers_and_then_refuses(oap) -> None:
    oap.reader.gate.clear()
    url, query = oap.http.base_url.join("/graphql"), {"query": "{ listServices { name } }"}
    bounds = httpx.Limits(max_connections=CROWD)
    with (
        httpx.Client(trust_env=False, timeout=60, limits=bounds) as clients,
        ThreadPoolExecutor(CROWD) as crowd,
    ):
        try:
            asked = [crowd.submit(clients.post, url, json=query) for _ in range(CROWD)]
            many = CROWD - limits.REQUESTS_WAITING_MAX
            eventually(lambda: sum(one.done() for one in asked) == many, 240, "some are sent away")
            assert oap.http.get("/healthcheck").status_code == 200
        finally:
            oap.reader.gate.set()
        answers = [one.result() for one in asked]
    refused = [answer for answer in answers if answer.status_code == 503]
    assert len(refused) == many
    assert all(answer.headers["Retry-After"] for answer in refused)
    assert {answer.status_code for answer in answers} == {200, 503}
