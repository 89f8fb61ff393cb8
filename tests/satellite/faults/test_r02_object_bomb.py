"""R2: a message of two megabytes that would be a million objects, were it decoded."""

from __future__ import annotations

from pathlib import Path

import grpc

from satellite.faults.agents import COLLECT
from satellite.faults.siege import WAIT_S, besieged
from skyfarer.base.units import MIB

BOMBS = 4
EMPTY_SPAN = b"\x1a\x00"
# The pages of the queue's file that the bombs lie in count as resident, and are not ours.
GROWTH_BYTES_MAX = (BOMBS + 2) * 2 * MIB + 4 * MIB


def test_an_object_bomb_is_kept_and_sent_on_as_the_bytes_that_it_is(tmp_path: Path) -> None:
    with (
        besieged(tmp_path, GROWTH_BYTES_MAX) as siege,
        grpc.insecure_channel(siege.satellite.address) as channel,
    ):
        for number in range(BOMBS):
            bomb = b"\x0a\x01%d" % number + EMPTY_SPAN * (MIB - 64)
            channel.stream_unary(COLLECT)(iter([bomb]), timeout=WAIT_S)
            siege.expect(bomb)
        assert "_upb" not in Path(f"/proc/{siege.satellite.pid}/maps").read_text(), "it decodes"
