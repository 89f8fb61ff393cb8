"""A query server on a memory reader with the clock held still, and a client of its HTTP door."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import httpx
import pytest

from skyfarer.oap.query import QueryServer
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.clock import HandClock
from skyfarer.testing.memory_reader import MemoryReader

ZONE = timezone(timedelta(hours=8))
NOW_MS = int(datetime(2026, 11, 15, 8, 17, 42, tzinfo=ZONE).timestamp() * 1000)


def server_of(
    reader: MemoryReader,
    health: Health,
    registry: Registry,
    tls: Callable[[], Any] | None = None,
) -> QueryServer:
    listener = socket.create_server(("127.0.0.1", 0))
    clock = HandClock(NOW_MS)
    return QueryServer(*(listener, reader, reader.ledger, health, registry, clock, ZONE), tls=tls)


@dataclass
class Oap:
    """Everything a test may touch of one running query server."""

    reader: MemoryReader
    health: Health
    registry: Registry
    http: httpx.Client

    def another(self, health: Health, tls: Callable[[], Any] | None = None) -> QueryServer:
        return server_of(self.reader, health, self.registry, tls)

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        """The data; an error of any kind fails the test that did not expect one."""
        answer = self.post(query, **variables)
        assert "errors" not in answer, answer["errors"]
        data = answer["data"]
        assert isinstance(data, dict)
        return data

    def errors(self, query: str, **variables: Any) -> list[str]:
        return [error["message"] for error in self.post(query, **variables)["errors"]]

    def post(self, query: str, **variables: Any) -> dict[str, Any]:
        response = self.http.post("/graphql", json={"query": query, "variables": variables})
        assert response.status_code == 200
        answer = response.json()
        assert isinstance(answer, dict)
        return answer


@pytest.fixture
def oap() -> Iterator[Oap]:
    reader, health, registry = MemoryReader(), Health(), Registry()
    health.started()
    server = server_of(reader, health, registry)
    server.start()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{server.port}", trust_env=False) as http:
            yield Oap(reader, health, registry, http)
    finally:
        server.stop(5)


@pytest.fixture
def zone() -> timezone:
    return ZONE
