"""S2: the way to the upstream is slow. What is on its way is bounded, and agents feel the rest."""

from __future__ import annotations

import time
from pathlib import Path

import grpc

from satellite.faults.agents import Agent, reporting
from satellite.faults.proof import QUICK, prove
from satellite.faults.recording import RecordingUpstream
from skyfarer.base.units import KIB, MIB
from skyfarer.testing.line import Line
from skyfarer.testing.programs import eventually
from skyfarer.testing.satellites import SatelliteProgram

WAIT_S = 120.0
LOOK_S = 2.0
GROWTH_BYTES_MAX = 8 * MIB
BUSY_MAX = 0.5  # of a core, refusing three agents that never pause long
SMALL = {
    "SKYFARER_SATELLITE_QUEUE_SEGMENT_BYTES": str(256 * KIB),
    "SKYFARER_SATELLITE_QUEUE_CAPACITY_BYTES": str(2 * MIB),
    "SKYFARER_SATELLITE_QUEUE_RECORD_BYTES_MAX": str(16 * KIB),
    "SKYFARER_SATELLITE_QUEUE_WHEN_FULL": "reject",
}


def test_a_slow_upstream_is_felt_by_agents_and_not_by_memory(tmp_path: Path) -> None:
    with (
        RecordingUpstream() as upstream,
        Line(upstream.port) as line,
        SatelliteProgram(tmp_path, line.address, **QUICK, **SMALL) as satellite,
    ):
        line.rate_bytes_s = 64 * KIB
        agents = [Agent(satellite.address, f"agent-{one}", record_bytes=8000) for one in range(3)]
        with reporting(*agents):
            full = grpc.StatusCode.RESOURCE_EXHAUSTED
            eventually(lambda: all(a.failures[full] for a in agents), WAIT_S, "a full queue")
            resident, cpu_s = satellite.memory_bytes(), satellite.cpu_s()
            time.sleep(LOOK_S)
            assert satellite.memory_bytes() - resident < GROWTH_BYTES_MAX
            assert (satellite.cpu_s() - cpu_s) / LOOK_S < BUSY_MAX, "it is busy waiting"
        assert satellite.ledger().queued > 100, "the line was not slow"
        assert all(set(agent.failures) == {full} for agent in agents)
        line.rate_bytes_s = 0
        prove(satellite, upstream, agents)
