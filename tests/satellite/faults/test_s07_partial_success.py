"""S7: of several calls that carry a batch some succeed: those are not made again."""

from __future__ import annotations

from pathlib import Path

import grpc

from satellite.faults.proof import QUICK
from satellite.faults.recording import Call, RecordingUpstream, Refusal
from skyfarer.testing.satellites import SatelliteProgram

WAIT_S = 120.0
PING = "/skywalking.v3.ManagementService/keepAlive"
PINGS = [b"ping-%d" % number for number in range(200)]


class RefusingOnce:
    """Every third record, the first time it comes."""

    def __init__(self) -> None:
        self.refused: set[bytes] = set()

    def __call__(self, call: Call) -> None:
        (payload,) = call.payloads
        if int(payload.rpartition(b"-")[2]) % 3 == 0 and payload not in self.refused:
            self.refused.add(payload)
            raise Refusal(grpc.StatusCode.UNAVAILABLE, "not now")


def test_of_a_batch_that_needs_many_calls_only_the_failed_ones_are_made_again(
    tmp_path: Path,
) -> None:
    judge = RefusingOnce()
    with (
        RecordingUpstream(judge) as upstream,
        SatelliteProgram(tmp_path, upstream.address, **QUICK) as satellite,
    ):
        with grpc.insecure_channel(satellite.address) as channel:
            calls = [channel.unary_unary(PING).future(ping, timeout=WAIT_S) for ping in PINGS]
            for call in calls:
                call.result()
        ledger = satellite.await_empty()
        assert (ledger.accepted, ledger.delivered, ledger.dropped) == (len(PINGS), len(PINGS), {})
        assert len(judge.refused) == len(PINGS) // 3 + 1
        assert sorted(upstream.payloads()) == sorted(PINGS)
