"""S5: the connection is reset after n bytes, for many n, on the way there and on the way back."""

from __future__ import annotations

from pathlib import Path

from satellite.faults.agents import Agent, reporting
from satellite.faults.proof import prove, resent
from satellite.faults.recording import RecordingUpstream
from skyfarer.testing.line import Line
from skyfarer.testing.programs import eventually
from skyfarer.testing.satellites import SatelliteProgram

WAIT_S = 120.0
A_BATCH = 10
# A batch with all that surrounds it takes some 1,500 bytes there and 200 back.
THERE = range(0, 2000, 23)
BACK = range(1, 260, 5)
AT_ONCE = {
    "SATELLITE_TRACINGPIPE_SENDER_FLUSH_TIME": "0",
    "SATELLITE_TRACINGPIPE_SENDER_MAX_BUFFER_SIZE": str(A_BATCH),
    "SKYFARER_SATELLITE_SENDER_RETRY_INITIAL": "1ms",
    "SKYFARER_SATELLITE_SENDER_RETRY_MAXIMUM": "2ms",
}


def test_a_connection_reset_at_any_byte_costs_a_whole_batch_again_and_nothing_else(
    tmp_path: Path,
) -> None:
    cuts = [*THERE, *(-size for size in BACK)]
    with (
        RecordingUpstream() as upstream,
        Line(upstream.port, cuts) as line,
        SatelliteProgram(tmp_path, line.address, **AT_ONCE) as satellite,
    ):
        agent = Agent(satellite.address, "agent", 1000, a_call=A_BATCH)
        with reporting(agent):
            eventually(lambda: line.resets == len(cuts), WAIT_S, "every cut")
        prove(satellite, upstream, [agent])
        assert not agent.failures
        assert 0 < resent(upstream) <= len(cuts) * A_BATCH, "no answer was lost on its way back"
