"""A page in a process of its own, on a query server over memory, seen by a real browser."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from e2e import environments
from skyfarer.base.clock import SystemClock
from skyfarer.oap.core.time_bucket import MINUTE_MS
from skyfarer.oap.oal.compiler import plan_of, shipped
from skyfarer.oap.oal.plan import Plan
from skyfarer.oap.query import QueryServer
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.browser import Browser
from skyfarer.testing.memory_reader import MemoryReader, fill_with_shop
from skyfarer.testing.programs import free_port
from ui import shop
from ui.accessibility import Axe
from ui.serving import pages_of
from ui.shop import ShopPages
from ui.town import Town

AHEAD_MINUTES = 30
PLAN = plan_of(shipped())


class LiveOap:
    """A query server over a memory reader; it can go away and come back on the same port."""

    def __init__(self) -> None:
        self.reader = MemoryReader()
        self.registry = Registry()
        self.health = Health()
        self.beside: dict[str, Any] = {}
        """What else the server is given: a test sets it and lets the server come again."""
        self.port = free_port()
        self._server: QueryServer | None = None

    def come(self) -> None:
        self.health.started()
        self._server = QueryServer(
            socket.create_server(("127.0.0.1", self.port)),
            self.reader,
            self.reader.ledger,
            self.health,
            self.registry,
            SystemClock(),
            UTC,
            plan=PLAN,
            **self.beside,
        )
        self._server.start()

    def go(self) -> None:
        if self._server is not None:
            self._server.stop(5)
            self._server = None

    def fill(self) -> None:
        """Into the future too, so that a slow run never reaches the end of the data."""
        ahead_ms = AHEAD_MINUTES * MINUTE_MS
        until_ms = SystemClock().now_ms() + ahead_ms
        fill_with_shop(self.reader, PLAN, until_ms, UTC, 45 + AHEAD_MINUTES)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@pytest.fixture(scope="session")
def plan() -> Plan:
    return PLAN


@pytest.fixture(scope="module")
def oap() -> Iterator[LiveOap]:
    live = LiveOap()
    live.come()
    yield live
    live.go()


@pytest.fixture(scope="module")
def page_url(oap: LiveOap) -> Iterator[str]:
    with pages_of(oap.url) as url:
        yield url


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    chromium = Browser(tmp_path_factory.mktemp("profile"))
    chromium.start()
    yield chromium
    chromium.stop()


@pytest.fixture(scope="session")
def shop_pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ShopPages]:
    """For tests that only look."""
    town = Town(tmp_path_factory.mktemp("shop"))
    town.start()
    filled_ms = SystemClock().now_ms()
    trace_id = shop.fill(town)
    with pages_of(town.url) as url:
        yield ShopPages(url, trace_id, filled_ms)
    town.stop()


@pytest.fixture(scope="session")
def axe() -> Axe:
    try:
        return Axe()
    except environments.MissingError as missing:
        pytest.skip(str(missing))


@pytest.fixture
def shots(tmp_path: Path) -> Path:
    """Where screenshots go; SKYFARER_SHOTS keeps them for people to look at."""
    chosen = os.environ.get("SKYFARER_SHOTS")
    directory = Path(chosen) if chosen else tmp_path
    directory.mkdir(parents=True, exist_ok=True)
    return directory
