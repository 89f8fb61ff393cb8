"""No OAP for ten minutes, and agents that go on at 500 segments a second: nobody notices.

It waits for nearly all of its time, so it has a lane of its own.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from e2e.reporters import Reporter, prove_stored_once
from satellite.faults.agents import reporting
from satellite.faults.proof import QUICK
from skyfarer.testing.programs import Oap, eventually
from skyfarer.testing.satellites import SatelliteProgram

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(3600)]

OUTAGE_S = 600.0
RATE = 500
AGENTS = 2
A_CALL = 50
RSS_BYTES_MAX = 50_000_000
WAIT_S = 900.0


@contextmanager
def nobody_there(*ports: int) -> Iterator[None]:
    """Taken, so that no other program gets them meanwhile, and closed to all who call."""
    with ExitStack() as stack:
        for port in ports:
            taken = stack.enter_context(socket.socket())
            taken.bind(("127.0.0.1", port))
        yield


def test_ten_minutes_without_an_oap_cost_no_segment(tmp_path: Path) -> None:
    oap = Oap(tmp_path / "oap")
    upstream = f"127.0.0.1:{oap.grpc_port}"
    try:
        with SatelliteProgram(tmp_path / "satellite", upstream, **QUICK) as satellite:
            agents = [
                Reporter(satellite.address, f"agent-{number}", RATE / AGENTS, A_CALL)
                for number in range(AGENTS)
            ]
            with reporting(*agents):
                with nobody_there(oap.grpc_port, oap.rest_port, oap.telemetry_port):
                    time.sleep(OUTAGE_S)
                    # Agents that a busy machine has kept from sending catch up.
                    reported = 0.9 * RATE * OUTAGE_S
                    eventually(lambda: satellite.ledger().queued > reported, WAIT_S, "their rate")
                    ledger = satellite.ledger()
                oap.start()
                eventually(lambda: satellite.ledger().queued < RATE, WAIT_S, "the backlog to go")
            assert ledger.delivered == 0
            assert satellite.metric("sender_retry_count") > OUTAGE_S
            assert satellite.memory_bytes("VmHWM") < RSS_BYTES_MAX
            books = satellite.await_empty(WAIT_S)
            assert satellite.stop() == 0
        assert not any(agent.failures for agent in agents), "an agent noticed"
        prove_stored_once(oap, books, agents)
    finally:
        oap.kill()
