"""S3: the upstream is there for a second, away for a second, and so on."""

from __future__ import annotations

import time
from pathlib import Path

from satellite.faults.agents import Agent, reporting
from satellite.faults.proof import QUICK, prove
from satellite.faults.recording import RecordingUpstream
from skyfarer.testing.programs import eventually
from skyfarer.testing.satellites import SatelliteProgram

PERIOD_S = 1.0
FLAPS = 3
WAIT_S = 120.0


def retried(satellite: SatelliteProgram) -> float:
    return satellite.metric("sender_retry_count")


def test_an_upstream_that_comes_and_goes_gets_every_record(tmp_path: Path) -> None:
    with (
        RecordingUpstream() as upstream,
        SatelliteProgram(tmp_path, upstream.address, **QUICK) as satellite,
    ):
        agents = [Agent(satellite.address, f"agent-{one}", 500) for one in range(2)]
        had: list[int] = []
        with reporting(*agents):
            for _ in range(FLAPS):
                time.sleep(PERIOD_S)
                known = had[-1] if had else 0
                eventually(lambda known=known: len(upstream.calls) > known, WAIT_S, "a delivery")
                retries = retried(satellite)
                upstream.stop()
                had.append(len(upstream.calls))
                time.sleep(PERIOD_S)
                eventually(lambda least=retries: retried(satellite) > least, WAIT_S, "a retry")
                upstream.start()
        prove(satellite, upstream, agents)
        assert had == sorted(set(had)), "it was up without being sent anything"
        assert retried(satellite) >= FLAPS
        assert not any(agent.failures for agent in agents)
