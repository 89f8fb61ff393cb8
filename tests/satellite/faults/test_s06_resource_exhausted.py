"""S6: RESOURCE_EXHAUSTED is "later" when it is overload, and "never" for a message too large."""

from __future__ import annotations

from pathlib import Path

import grpc

from satellite.faults.agents import COLLECT, Agent, reporting
from satellite.faults.proof import QUICK, prove
from satellite.faults.recording import Call, RecordingUpstream, Refusal
from skyfarer.base.units import KIB
from skyfarer.satellite.dead_letters import read
from skyfarer.testing.programs import eventually
from skyfarer.testing.satellites import SatelliteProgram

WAIT_S = 120.0
OVERLOADED = 12


def overloaded(call: Call) -> None:
    raise Refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, "Watermark exceeded")


def test_overload_is_waited_out_and_drops_nothing(tmp_path: Path) -> None:
    with (
        RecordingUpstream(overloaded) as upstream,
        SatelliteProgram(tmp_path, upstream.address, **QUICK) as satellite,
    ):
        agent = Agent(satellite.address, "agent", 500)
        with reporting(agent):
            eventually(lambda: len(upstream.refused) >= OVERLOADED, WAIT_S, "refusals")
            upstream.judge = lambda call: None
            eventually(lambda: bool(upstream.calls), WAIT_S, "a delivery")
        prove(satellite, upstream, [agent])
        assert grpc.StatusCode.RESOURCE_EXHAUSTED not in agent.failures
        assert not list(read(satellite.data / "native" / "dead-letters"))


def test_a_record_too_large_for_the_upstream_is_parked_alone(tmp_path: Path) -> None:
    giant = b"g" * 100 * KIB
    with (
        RecordingUpstream(message_bytes_max=64 * KIB) as upstream,
        SatelliteProgram(tmp_path, upstream.address, **QUICK) as satellite,
    ):
        agent = Agent(satellite.address, "agent", 500)
        agent.sent.add(giant)
        with reporting(agent), grpc.insecure_channel(satellite.address) as channel:
            channel.stream_unary(COLLECT)(iter([giant]), timeout=WAIT_S)
            agent.acknowledged.add(giant)
            eventually(lambda: bool(satellite.ledger().dropped), WAIT_S, "a decision")
            had = len(upstream.calls)
            eventually(lambda: len(upstream.calls) > had, WAIT_S, "deliveries behind it")
        (reason,) = satellite.ledger().dropped
        prove(satellite, upstream, [agent], {reason: 1})
        (letter,) = read(satellite.data / "native" / "dead-letters")
        assert letter.payload == giant
        assert "larger than max" in letter.reason
