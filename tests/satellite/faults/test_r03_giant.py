"""R3: messages beyond the bound, and prefixes that only announce them."""

from __future__ import annotations

from pathlib import Path

import grpc

from satellite.faults.agents import COLLECT
from satellite.faults.siege import WAIT_S, besieged, post, status_of
from skyfarer.base.units import MIB

GROWTH_BYTES_MAX = 12 * MIB
LIMIT_BYTES = 2 * MIB
ROUNDS_MAX = 20
"""One may be over before the honest agent comes to report."""
UNBOUNDED = [("grpc.max_send_message_length", -1)]


def test_a_message_beyond_the_bound_is_refused_and_not_held(tmp_path: Path) -> None:
    giant = bytes(32 * MIB)
    with (
        besieged(tmp_path, GROWTH_BYTES_MAX) as siege,
        grpc.insecure_channel(siege.satellite.address, UNBOUNDED) as channel,
    ):
        send, served = channel.stream_unary(COLLECT), len(siege.honest.acknowledged)
        for _ in range(ROUNDS_MAX):
            for size in (LIMIT_BYTES + 1, 8 * MIB, len(giant)):
                status = status_of(lambda: send(iter([giant[:size]]), timeout=WAIT_S))  # noqa: B023
                assert status is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert post(siege.satellite.http_url + "/v3/segments", giant[: 8 * MIB]) == 413
            if len(siege.honest.acknowledged) > served:
                break
        assert siege.satellite.metric("queue_rejected_total") == 0, "it came as far as the queue"
