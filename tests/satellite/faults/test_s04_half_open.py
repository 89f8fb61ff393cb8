"""S4: the upstream accepts and never answers; or answers, and then its machine is gone."""

from __future__ import annotations

import socket
from pathlib import Path

from satellite.faults.agents import Agent, reporting
from satellite.faults.proof import QUICK, prove
from satellite.faults.recording import RecordingUpstream
from skyfarer.testing.line import Line
from skyfarer.testing.programs import eventually
from skyfarer.testing.satellites import SatelliteProgram

WAIT_S = 120.0
DEADLINE = {"SATELLITE_GRPC_TIMEOUT_STREAM": "1s"}
TIMED_OUT = "DEADLINE_EXCEEDED"


def timed_out(satellite: SatelliteProgram) -> float:
    calls = satellite.metrics().items()
    return sum(count for name, count in calls if "sender_calls" in name and TIMED_OUT in name)


def test_an_upstream_that_accepts_and_never_answers_costs_time_only(tmp_path: Path) -> None:
    upstream = RecordingUpstream()
    with socket.socket() as mute:
        mute.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        mute.bind(("127.0.0.1", upstream.port))
        mute.listen()
        with SatelliteProgram(tmp_path, upstream.address, **QUICK, **DEADLINE) as satellite:
            agent = Agent(satellite.address, "agent", 200)
            with reporting(agent):
                accepted = [mute.accept()[0]]
                eventually(
                    lambda: satellite.metric("sender_retry_count") >= 1, WAIT_S, "a deadline"
                )
                assert satellite.ledger().delivered == 0
                mute.close()
                accepted.pop().close()
                upstream.start()
                eventually(lambda: bool(upstream.calls), WAIT_S, "a delivery")
            prove(satellite, upstream, [agent])
            upstream.stop()
            assert not agent.failures


def test_a_connection_that_goes_silent_is_given_up_and_its_batch_sent_by_another(
    tmp_path: Path,
) -> None:
    with (
        RecordingUpstream() as upstream,
        Line(upstream.port) as line,
        SatelliteProgram(tmp_path, line.address, **QUICK, **DEADLINE) as satellite,
    ):
        agent = Agent(satellite.address, "agent", 200)
        with reporting(agent):
            eventually(lambda: len(upstream.calls) > 3, WAIT_S, "deliveries")
            line.mute = True
            eventually(lambda: timed_out(satellite) >= 1, WAIT_S, "a deadline")
            line.mute = False
            had = len(upstream.calls)
            eventually(lambda: len(upstream.calls) > had + 3, WAIT_S, "deliveries again")
        prove(satellite, upstream, [agent])
        assert line.swallowed_bytes > 0
        assert line.connections >= 2, "it went on waiting for the dead connection"
        assert not agent.failures
