"""An OAP whose PostgreSQL is shut down, and killed, under it: it waits, and loses nothing.

Its tables are made by another process beforehand, as an installation of several nodes has it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import grpc
import pytest

from skyfarer.testing.programs import Oap, eventually
from skyfarer.testing.traces import segment
from third_parties.postgresql import PASSWORD, Server

pytestmark = pytest.mark.e2e

NOON = int(datetime(2026, 11, 15, 12, 0, tzinfo=UTC).timestamp() * 1000)
SENT = 200
NOTICED_WITHIN_S = 240.0
INIT_TIMEOUT_S = 300.0


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server(durable=True)
    try:
        yield server.start()
    finally:
        server.close()


def environ(server: Server) -> dict[str, str]:
    return {
        "SW_STORAGE": "postgresql",
        "SW_JDBC_URL": f"jdbc:postgresql://127.0.0.1:{server.port}/postgres",
        "SW_DATA_SOURCE_USER": "skyfarer",
        "SW_DATA_SOURCE_PASSWORD": PASSWORD,
    }


def send(oap: Oap, first: int) -> None:
    names = [f"s-{number}" for number in range(first, first + SENT)]
    with grpc.insecure_channel(f"127.0.0.1:{oap.grpc_port}") as channel:
        collect = channel.stream_unary("/skywalking.v3.TraceSegmentReportService/collect")
        segments = [segment("shop", "shop-1", "/pay", NOON, 10, segment_id=name) for name in names]
        collect((one.SerializeToString() for one in segments), timeout=120)


def waits(oap: Oap, since: int) -> None:
    """It says so, after that place in its log."""
    said = "analysis waits for storage: cannot read from PostgreSQL"
    eventually(
        lambda: said in oap.log.read_text()[since:], NOTICED_WITHIN_S, "the OAP waits for storage"
    )
    assert not oap.has_ended()


def test_a_server_that_is_stopped_or_killed_is_waited_for_and_nothing_is_lost_or_repeated(
    server: Server, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "skyfarer.cli", "oap", "start", "--mode", "init"]
    data = {"SKYFARER_DATA_DIR": str(tmp_path / "init")}
    made = subprocess.run(
        command, env={**os.environ, **data, **environ(server)}, timeout=INIT_TIMEOUT_S, check=False
    )
    assert made.returncode == 0
    oap = Oap(tmp_path, SKYFARER_MODE="no-init", **environ(server))
    oap.start()
    try:
        send(oap, 0)
        oap.await_applied(SENT)
        for number, end in enumerate((server.stop, server.kill), start=1):
            written = len(oap.log.read_text())
            end()
            send(oap, number * SENT)
            waits(oap, written)
            server.start()
            ledger = oap.await_applied((number + 1) * SENT)
            assert ledger["balanced"]
            assert ledger["delivered"] == (number + 1) * SENT
        with server.connect("postgres") as connection:
            counted = "SELECT count(*), count(DISTINCT segment_id) FROM segment_20261115"
            assert connection.execute(counted).fetchall() == [(3 * SENT, 3 * SENT)]
        assert oap.stop() == 0
    finally:
        oap.kill()
