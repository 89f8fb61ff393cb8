"""What a node says of its own configuration, through the HTTP door."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from datetime import UTC

import httpx
import pytest

from skyfarer.oap.oal.compiler import plan_of, shipped
from skyfarer.oap.query import QueryServer
from skyfarer.oap.query.retention import DaysKept
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.clock import HandClock
from skyfarer.testing.memory_reader import MemoryReader

JSON = {"accept": "application/json, text/plain"}


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    reader, health = MemoryReader(), Health()
    health.started()
    server = QueryServer(
        *(socket.create_server(("127.0.0.1", 0)), reader, reader.ledger, health, Registry()),
        *(HandClock(0), UTC),
        plan=plan_of(shipped()),
        retention=DaysKept(4, 9),
        configuration={"core.provider": "default", "core.default.restPort": "12800"},
    )
    server.start()
    url = f"http://127.0.0.1:{server.port}"
    with httpx.Client(base_url=url, trust_env=False, timeout=60) as client:
        yield client
    server.stop(5)


def test_the_days_that_data_is_kept_are_told_as_the_page_reads_them(http):
    told = http.get("/status/config/ttl", headers=JSON).json()
    metrics = {"metadata": 9, "minute": 9, "hour": 9, "day": 9}
    assert told["metrics"] == {**metrics, "coldMinute": -1, "coldHour": -1, "coldDay": -1}
    kept = {"normal": 4, "trace": 4, "zipkinTrace": 4, "log": 4, "browserErrorLog": 4}
    assert told["records"].items() >= kept.items()
    assert told["records"]["coldZipkinTrace"] == -1


def test_whoever_does_not_ask_for_json_reads_lines(http):
    answer = http.get("/status/config/ttl")
    assert answer.headers["content-type"].startswith("text/plain")
    lines = answer.text.splitlines()
    assert {"metrics.minute=9", "metrics.minute.cold=-1", "records.zipkinTrace.cold=-1"} <= {*lines}
    assert http.get("/debugging/config/dump").text == (
        "core.provider=default\ncore.default.restPort=12800\n"
    )


def test_the_configuration_is_shown_key_by_key(http):
    assert http.get("/debugging/config/dump", headers=JSON).json() == {
        "core.provider": "default",
        "core.default.restPort": "12800",
    }


def test_nothing_is_changed_there(http):
    for path in ("/status/config/ttl", "/debugging/config/dump"):
        assert http.post(path).status_code == 405


def test_a_node_that_has_not_started_says_so(oap):
    waiting = oap.another(Health())
    waiting.start()
    try:
        answer = httpx.get(
            f"http://127.0.0.1:{waiting.port}/debugging/config/dump", trust_env=False, timeout=60
        )
    finally:
        waiting.stop(5)
    assert answer.status_code == 503
    assert "the OAP is starting" in answer.json()["errors"][0]["message"]
