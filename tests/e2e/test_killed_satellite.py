"""The satellite is killed again and again under load, and the OAP holds each segment once."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

import pytest

from e2e.reporters import Reporter, prove_stored_once
from satellite.faults.agents import reporting
from satellite.faults.proof import QUICK
from skyfarer.testing.programs import Oap
from skyfarer.testing.satellites import SatelliteProgram

pytestmark = pytest.mark.e2e

KILLS = 6
LIFE_S = 1.5
RATE = 400


def test_a_satellite_killed_under_load_brings_every_acknowledged_segment_once(
    oap_to_end: Oap, tmp_path: Path
) -> None:
    oap, random = oap_to_end, Random(8)
    before = oap.ledger()
    with SatelliteProgram(tmp_path, f"127.0.0.1:{oap.grpc_port}", **QUICK) as satellite:
        agents = [Reporter(satellite.address, f"agent-{one}", RATE / 2) for one in range(2)]
        with reporting(*agents):
            for _ in range(KILLS):
                time.sleep(random.uniform(0.0, LIFE_S))
                satellite.kill()
                satellite.start()
            time.sleep(LIFE_S)
        ledger = satellite.await_empty()
        assert satellite.stop() == 0
    assert all(agent.failures for agent in agents), "no kill hit a call"
    prove_stored_once(oap, ledger, agents, before)
