"""R2: a message of two megabytes that would be a million objects, were it decoded."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest

from satellite.faults.agents import COLLECT
from satellite.faults.siege import WAIT_S, besieged
from skyfarer.base.units import MIB
from skyfarer.satellite.config import DEFAULT_FILE
from skyfarer.testing.programs import eventually

BOMBS = 4
SAMPLER = """
      filters:
        - plugin_name: sampler
          rate: 0
          keep_slow: 1ms
"""
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


def sampling(directory: Path) -> Path:
    """Looks into every segment, and keeps those it cannot read."""
    file = directory / "satellite.yaml"
    file.write_text(DEFAULT_FILE.read_text().replace("      filters: []\n", SAMPLER, 1))
    return file


@pytest.mark.parametrize(
    "inside",
    [EMPTY_SPAN, b"\x1a\x06" + b"\x62\x00" * 3, b"\x13\x14" + EMPTY_SPAN],
    ids=["spans", "tags", "groups"],
)
def test_an_object_bomb_is_not_decoded_for_a_filter_either(tmp_path: Path, inside: bytes) -> None:
    with (
        besieged(tmp_path, GROWTH_BYTES_MAX, sampling(tmp_path)) as siege,
        grpc.insecure_channel(siege.satellite.address) as channel,
    ):
        bomb = b"\x0a\x01x" + inside * ((2 * MIB - 128) // len(inside))
        channel.stream_unary(COLLECT)(iter([bomb]), timeout=WAIT_S)
        siege.expect(bomb)
        failed = 'processor_failures_total{pipe="native",filter="sampler",reason="too_many_fields"}'
        eventually(lambda: siege.satellite.metrics().get(failed) == 1, WAIT_S, "a refusal")
