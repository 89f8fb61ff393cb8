"""One answer has one time, however many reads it takes: each of them has what is left of it."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

import httpx
import pytest

from golden.mqe.scripts import script
from golden.mqe.storing import store
from oap.query.conftest import NOW_MS, PLAN, ZONE, Inventories
from oap.query.faults.test_g06_slow_storage import ENDLESS
from skyfarer.base.clock import SystemClock
from skyfarer.base.errors import RetryableError
from skyfarer.oap.core.deadline import LateError, left_s, within
from skyfarer.oap.query import QueryServer, limits
from skyfarer.oap.query.traces.registered import ENDPOINT, Names
from skyfarer.oap.storage.embedded import EmbeddedStorage
from skyfarer.oap.storage.embedded.searching import bounded
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.clock import HandClock
from skyfarer.testing.memory_reader import MemoryReader

READ_S = 9.0  # of a slow storage: a little less than it gives up after itself
READS = 4  # so many begin before the time is over
LATE = f"the answer took longer than {limits.ANSWER_S_MAX:g} s: ask for less at a time"
LOADED = """
load Service late-shop
  0800 x7
"""
MINUTES = '{start: "2026-07-02 0800", end: "2026-07-02 0801", step: MINUTE}'
SECONDS = '{start: "2026-07-02 080000", end: "2026-07-02 080159", step: SECOND}'


class SlowStorage:
    """A real one whose reads take a while of the clock."""

    def __init__(self, storage: EmbeddedStorage, clock: HandClock) -> None:
        self._storage = storage
        self._clock = clock
        self.reads = 0

    def __getattr__(self, name: str) -> Callable[..., Any]:
        read = getattr(self._storage, name)

        def slow(*arguments: Any, **more: Any) -> Any:
            found = read(*arguments, **more)
            self.reads += 1
            self._clock.seconds += READ_S
            return found

        return slow


@dataclass
class Late:
    http: httpx.Client
    storage: SlowStorage

    def graphql(self, query: str, **variables: Any) -> dict[str, Any]:
        body = {"query": query, "variables": variables}
        answer: dict[str, Any] = self.http.post("/graphql", json=body).json()
        return answer


@pytest.fixture
def late(tmp_path: Any) -> Iterator[Late]:
    storage, clock, health = EmbeddedStorage(), HandClock(NOW_MS), Health()
    storage.start(tmp_path / "skyfarer.duckdb", ZONE)
    store(storage, PLAN, script("late.txt", LOADED, date(2026, 7, 2)), ZONE)
    slow = SlowStorage(storage, clock)
    health.started()
    reader: Any = slow
    server = QueryServer(
        *(socket.create_server(("127.0.0.1", 0)), reader, MemoryReader().ledger, health),
        *(Registry(), clock, ZONE),
        plan=PLAN,
    )
    server.start()
    url = f"http://127.0.0.1:{server.port}"
    try:
        with httpx.Client(base_url=url, trust_env=False, timeout=60) as http:
            yield Late(http, slow)
    finally:
        server.stop(5)
        storage.stop()


def test_an_expression_of_many_lists_reads_no_more_than_there_is_time_for(late: Late) -> None:
    lists = ", ".join(["top_n(service_cpm, 5, des)"] * limits.EXPRESSION_METRICS_MAX)
    found = late.graphql(
        f"""query ($expression: String!) {{ execExpression(expression: $expression,
        entity: {{}}, duration: {MINUTES}) {{ type error }} }}""",
        expression=f"top_n_of({lists}, 5, des)",
    )["data"]["execExpression"]
    assert found["type"] == "UNKNOWN"
    assert found["error"].endswith(LATE)
    assert late.storage.reads == READS


def test_a_field_that_reads_on_and_on_ends_with_the_time(late: Late) -> None:
    condition = f"""{{queryDuration: {SECONDS}, traceState: ALL, queryOrder: BY_START_TIME,
      paging: {{pageNum: 1, pageSize: 100}}}}"""
    traces = f"queryTraces(condition: {condition}) {{ traces {{ spans {{ traceId }} }} }}"
    answer = late.graphql("{" + " ".join(f"t{n}: {traces}" for n in range(5)) + "}")
    assert late.storage.reads == READS
    assert {error["message"] for error in answer["errors"]} == {LATE}


def test_a_question_of_prometheus_has_a_time_too(late: Late) -> None:
    match = ["service_traffic{layer='GENERAL'}"] * 50
    answer = late.http.get("/prometheus/api/v1/series", params={"match[]": match})
    assert (answer.status_code, answer.json()["error"]) == (503, LATE)
    assert late.storage.reads == READS
    sums = " + ".join(["service_cpm{service='late-shop',layer='GENERAL'}"] * 20)
    answer = late.http.get("/prometheus/api/v1/query", params={"query": sums})
    assert (answer.status_code, answer.json()["error"]) == (503, LATE)
    assert late.storage.reads == 2 * READS


def test_names_of_ids_are_looked_up_while_there_is_time() -> None:
    clock, inventories = HandClock(), Inventories()
    names = Names(inventories)
    with within(30, clock):
        names.learn(ENDPOINT, [1])
        clock.seconds = 30
        with pytest.raises(LateError):
            names.learn(ENDPOINT, [2])


def test_a_search_is_ended_when_the_time_of_whoever_asked_is_over(tmp_path: Any) -> None:
    storage = EmbeddedStorage()
    storage.start(tmp_path / "skyfarer.duckdb", ZONE)
    try:
        cursor = storage._cursor()
        short, told = within(1.5, SystemClock()), pytest.raises(RetryableError)
        with short, told as ended, bounded(cursor):
            cursor.execute(ENDLESS).fetchall()
        assert re.match(r"storage was searched for [01]\.", str(ended.value)), "not for 10 s"
        with within(0.0, SystemClock()), pytest.raises(LateError), bounded(cursor):
            pytest.fail("it was begun")
    finally:
        storage.stop()


def test_a_time_ends_for_the_one_who_opened_it_and_for_nobody_else() -> None:
    clock = HandClock()
    assert left_s(10) == 10
    with within(30, clock):
        assert left_s(10) == 10
        clock.seconds = 25
        assert left_s(10) == 5
        clock.seconds = 30
        with pytest.raises(LateError):
            left_s(10)
    assert left_s(10) == 10
