"""Who makes the tables: modes of both storages, with the modules as the program has them."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC
from pathlib import Path

import pytest

from skyfarer.base.errors import ConfigError, PermanentError
from skyfarer.oap.boot.app import run
from skyfarer.oap.boot.providers.cluster import StandaloneProvider
from skyfarer.oap.boot.providers.core import CoreProvider
from skyfarer.oap.boot.providers.storage import DuckDBProvider
from skyfarer.oap.boot.providers.storage_postgresql import PostgreSQLProvider
from skyfarer.oap.boot.settings import CoreConfig, DuckDBConfig, NoKeys, PostgreSQLConfig
from skyfarer.oap.core.modes import RunningMode
from skyfarer.oap.core.modules import Modules, Provider
from skyfarer.oap.core.storage import Reader
from skyfarer.oap.storage.embedded import EmbeddedStorage
from skyfarer.oap.storage.postgresql import PostgresStorage
from skyfarer.testing.programs import eventually
from third_parties.postgresql import PASSWORD, Server

WITHIN_S = 60.0
DOCUMENTED = re.compile(
    r"table:\w+ does not exist\. "
    r"OAP is running in 'no-init' mode, waiting\.\.\. retry 3s later\."
)


def url(server: Server, conninfo: str) -> str:
    name = conninfo.rpartition("=")[2].strip("'")
    return f"jdbc:postgresql://127.0.0.1:{server.port}/postgres?currentSchema={name}"


def postgresql(server: Server, conninfo: str) -> PostgreSQLProvider:
    properties = {
        "jdbcUrl": url(server, conninfo),
        "dataSource.user": "skyfarer",
        "dataSource.password": PASSWORD,
    }
    return PostgreSQLProvider(PostgreSQLConfig(properties))


class Node:
    """As much of one as needs no Spark and no port."""

    def __init__(self, directory: Path, storage: Provider, mode: RunningMode) -> None:
        self.core = CoreProvider(CoreConfig(dataDirectory=directory))
        self.core.mode = mode
        self.modules = Modules([StandaloneProvider(NoKeys()), self.core, storage])
        self.failure: Exception | None = None
        self.thread = threading.Thread(target=self._start)

    def _start(self) -> None:
        try:
            self.modules.start()
        except PermanentError as error:
            self.failure = error


@pytest.fixture(params=["duckdb", "postgresql"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def provided(kind: str, tmp_path: Path, server: Server, conninfo: str) -> Callable[[], Provider]:
    if kind == "duckdb":
        return lambda: DuckDBProvider(DuckDBConfig(tmp_path / "a.duckdb"))
    return lambda: postgresql(server, conninfo)


@pytest.fixture
def installed(kind: str, tmp_path: Path, conninfo: str) -> Callable[[bool], None]:
    """Raises unless the tables are there, or makes them."""

    def start(install: bool) -> None:
        if kind == "duckdb":
            embedded = EmbeddedStorage()
            embedded.start(tmp_path / "a.duckdb", UTC, install)
            embedded.stop()
        else:
            storage = PostgresStorage(conninfo)
            storage.start(UTC, install)
            storage.stop()

    return start


def test_init_makes_the_tables_and_stops(
    tmp_path: Path, provided: Callable[[], Provider], installed: Callable[[bool], None]
) -> None:
    node = Node(tmp_path, provided(), RunningMode.INIT)
    node.modules.install()
    installed(False)
    node = Node(tmp_path, provided(), RunningMode.INIT)
    node.modules.install()
    installed(False)


def test_no_init_waits_for_the_tables_of_others_and_goes_on_with_them(
    tmp_path: Path,
    provided: Callable[[], Provider],
    installed: Callable[[bool], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    node = Node(tmp_path, provided(), RunningMode.NO_INIT)
    node.thread.start()
    eventually(lambda: DOCUMENTED.search(caplog.text), WITHIN_S, "it says that it waits")
    assert node.thread.is_alive()
    installed(True)
    node.thread.join(WITHIN_S)
    assert not node.thread.is_alive()
    assert node.failure is None
    reader = node.modules._running["storage"].service(Reader)  # type: ignore[type-abstract]
    assert reader.services(None) == []
    node.modules.stop(WITHIN_S)


@pytest.mark.parametrize("mode", [RunningMode.DEFAULT, RunningMode.INIT, RunningMode.NO_INIT])
def test_of_two_nodes_of_different_zones_the_second_does_not_start(
    mode: RunningMode,
    tmp_path: Path,
    provided: Callable[[], Provider],
    here: Callable[[str], None],
) -> None:
    here("Asia/Tokyo")
    Node(tmp_path, provided(), RunningMode.INIT).modules.install()
    for zone in ("Asia/Seoul", "UTC"):
        here(zone)
        node = Node(tmp_path, provided(), mode)
        try:
            (node.modules.install if mode is RunningMode.INIT else node.modules.start)()
        except PermanentError as error:
            assert zone == "UTC"
            assert "are of the zone Asia/Tokyo, and this node's zone is UTC: start it with" in (
                str(error)
            )
        else:
            assert zone == "Asia/Seoul", "its clocks show the same"
        node.modules.stop(WITHIN_S)


def test_who_waits_for_tables_can_be_ended(
    tmp_path: Path, provided: Callable[[], Provider], caplog: pytest.LogCaptureFixture
) -> None:
    node = Node(tmp_path, provided(), RunningMode.NO_INIT)
    node.thread.start()
    eventually(lambda: "retry 3s later" in caplog.text, WITHIN_S, "it says that it waits")
    node.core.fate.end()
    node.thread.join(WITHIN_S)
    assert str(node.failure) == "told to end before the tables of storage were there"


def test_the_program_makes_tables_and_ends_without_a_port_or_spark(
    tmp_path: Path, server: Server, conninfo: str
) -> None:
    """Its ports are taken: it would notice."""
    taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    grpc, rest, telemetry = (str(one.getsockname()[1]) for one in taken)
    environ = {
        "SKYFARER_DATA_DIR": str(tmp_path / "data"),
        "SKYFARER_MODE": "init",
        "SW_CORE_GRPC_PORT": grpc,
        "SW_CORE_REST_PORT": rest,
        "SW_TELEMETRY_PROMETHEUS_PORT": telemetry,
        "SW_STORAGE": "postgresql",
        "SW_JDBC_URL": url(server, conninfo),
        "SW_DATA_SOURCE_USER": "skyfarer",
        "SW_DATA_SOURCE_PASSWORD": PASSWORD,
    }
    command = [sys.executable, "-m", "skyfarer.cli", "oap", "start"]
    done = subprocess.run(
        command,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    for one in taken:
        one.close()
    assert (done.returncode, done.stdout) == (0, "skyfarer oap: the tables of storage are made\n")
    assert not (tmp_path / "data" / "spark").exists()
    assert PASSWORD not in done.stderr
    storage = PostgresStorage(conninfo)
    storage.start(UTC, install=False)
    storage.stop()


def test_a_mode_that_there_is_not_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"SKYFARER_MODE is 'initial'; there are: init, no-init"):
        run(None, {"SKYFARER_MODE": "initial"})
