"""The satellite is killed again and again under load, and the OAP holds each segment once."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import duckdb
import pytest

from satellite.faults.agents import Agent, acknowledged, reporting, sent
from satellite.faults.proof import QUICK
from skyfarer.testing.programs import Oap
from skyfarer.testing.satellites import SatelliteProgram
from skyfarer.testing.traces import segment
from skyfarer.wire.messages import SegmentObject

pytestmark = pytest.mark.e2e

NOON = int(datetime(2026, 11, 15, 12, 0, tzinfo=UTC).timestamp() * 1000)
KILLS = 6
LIFE_S = 1.5
RATE = 400


class Reporter(Agent):
    """Of real segments; their numbers are their ids."""

    def make(self, number: int) -> bytes:
        made = segment(
            "order",
            "order-1",
            "GET:/",
            NOON + number % 60_000,
            10,
            segment_id=f"{self.prefix}.{number}",
        )
        return made.SerializeToString()


def ids(payloads: set[bytes]) -> set[str]:
    return {SegmentObject.FromString(payload).traceSegmentId for payload in payloads}


def test_a_satellite_killed_under_load_brings_every_acknowledged_segment_once(
    own_oap: Oap, tmp_path: Path
) -> None:
    random = Random(8)
    with SatelliteProgram(tmp_path, f"127.0.0.1:{own_oap.grpc_port}", **QUICK) as satellite:
        agents = [Reporter(satellite.address, f"agent-{one}", RATE / 2) for one in range(2)]
        with reporting(*agents):
            for _ in range(KILLS):
                time.sleep(random.uniform(0.0, LIFE_S))
                satellite.kill()
                satellite.start()
            time.sleep(LIFE_S)
        ledger = satellite.await_empty()
        assert satellite.stop() == 0
    assert ledger.dropped == {}
    assert all(agent.failures for agent in agents), "no kill hit a call"
    books = own_oap.await_applied(ledger.accepted)
    assert books["balanced"]
    assert books["dropped"].keys() <= {"duplicate"}, "only what was sent again may go"
    assert books["delivered"] == ledger.accepted
    assert own_oap.stop() == 0
    with duckdb.connect(
        str(own_oap.data / "storage" / "skyfarer.duckdb"), read_only=True
    ) as stored:
        rows = stored.execute("SELECT segment_id FROM segment_20261115").fetchall()
    found = [segment_id for (segment_id,) in rows]
    assert len(found) == len(set(found)), "stored twice"
    assert ids(acknowledged(agents)) <= set(found), "acknowledged and lost"
    assert set(found) <= ids(sent(agents)), "never sent"
    assert len(found) == ledger.accepted
