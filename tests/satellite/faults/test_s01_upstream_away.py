"""S1: the upstream is away, and agents go on at 500 records a second.

The ten minutes of the fault plan, with an OAP, are in `tests/e2e/test_oap_away.py`; here the same
number of records comes as fast as it can.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from satellite.faults.agents import Agent, reporting
from satellite.faults.proof import QUICK, prove, resent
from satellite.faults.recording import RecordingUpstream
from skyfarer.testing.programs import eventually
from skyfarer.testing.satellites import SatelliteProgram
from skyfarer.wire.client import ClientSettings, GrpcClient
from skyfarer.wire.rpc import FORWARD, Kind

OUTAGE_S = 12.0
RATE = 500
TEN_MINUTES = 600 * RATE
A_CALL = 1000
RSS_BYTES_MAX = 50_000_000
WAIT_S = 300.0


def test_an_outage_at_500_records_a_second_costs_nothing(tmp_path: Path) -> None:
    with (
        RecordingUpstream() as upstream,
        SatelliteProgram(tmp_path, upstream.address, **QUICK) as satellite,
    ):
        agents = [
            Agent(satellite.address, f"agent-{number}", RATE / 5, a_call=10, record_bytes=1000)
            for number in range(5)
        ]
        with reporting(*agents):
            eventually(lambda: bool(upstream.calls), WAIT_S, "a delivery before the outage")
            upstream.stop()
            before = len(upstream.records())
            time.sleep(OUTAGE_S)
            # Agents that a busy machine has kept from sending catch up.
            reported = 0.8 * RATE * OUTAGE_S
            eventually(lambda: satellite.ledger().queued > reported, WAIT_S, "all they report")
            waiting = satellite.ledger().queued
            eventually(lambda: satellite.metric("sender_retry_count") > 10, WAIT_S, "retries")
            upstream.start()
            eventually(lambda: len(upstream.records()) > before, WAIT_S, "the first delivery")
            eventually(lambda: satellite.ledger().queued < RATE, WAIT_S, "the backlog to go")
        ledger = prove(satellite, upstream, agents)
        assert not any(agent.failures for agent in agents), "an agent noticed"
        assert ledger.accepted >= waiting
        assert satellite.memory_bytes("VmHWM") < RSS_BYTES_MAX


def test_the_records_of_ten_minutes_wait_and_are_all_delivered_once(tmp_path: Path) -> None:
    upstream = RecordingUpstream()
    with SatelliteProgram(tmp_path, upstream.address, **QUICK) as satellite:
        asyncio.run(push(satellite.grpc_port))
        ledger = satellite.ledger()
        assert (ledger.accepted, ledger.queued) == (TEN_MINUTES, TEN_MINUTES)
        assert satellite.metric("sender_retry_count") > 0
        with upstream:
            ledger = satellite.await_empty(WAIT_S)
            assert (ledger.delivered, ledger.dropped) == (TEN_MINUTES, {})
            records = list(upstream.records().values())
            assert len(records) == TEN_MINUTES
            assert all(int(record) == number for number, record in enumerate(records))
            assert resent(upstream) == 0
        assert satellite.memory_bytes("VmHWM") < RSS_BYTES_MAX


async def push(port: int) -> None:
    """By our own client: grpcio's would take a minute of it."""
    client = GrpcClient(ClientSettings("127.0.0.1", port))
    await client.start()
    for first in range(0, TEN_MINUTES, A_CALL):
        messages = [b"%0100d" % number for number in range(first, first + A_CALL)]
        await client.send(FORWARD[Kind.SEGMENT], messages)
    await client.stop(1.0)
