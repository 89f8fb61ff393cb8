"""R4: little that becomes much when it is inflated."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import grpc

from satellite.faults.agents import COLLECT
from satellite.faults.siege import WAIT_S, besieged, post, status_of
from skyfarer.base.units import MIB

INFLATED = bytes(128 * MIB)
GROWTH_BYTES_MAX = 2 * MIB + 10 * MIB
UNBOUNDED = [("grpc.max_send_message_length", -1)]


def test_a_bomb_is_given_up_while_it_inflates(tmp_path: Path) -> None:
    with (
        besieged(tmp_path, GROWTH_BYTES_MAX) as siege,
        grpc.insecure_channel(siege.satellite.address, UNBOUNDED) as channel,
    ):
        send, gzipped = channel.stream_unary(COLLECT), grpc.Compression.Gzip
        status = status_of(lambda: send(iter([INFLATED]), compression=gzipped, timeout=WAIT_S))
        assert status is grpc.StatusCode.RESOURCE_EXHAUSTED
        url = siege.satellite.http_url + "/v3/segments"
        bomb = gzip.compress(INFLATED, 1)
        assert len(bomb) < MIB
        assert post(url, bomb, **{"Content-Encoding": "gzip"}) == 413
        assert post(url, zlib.compress(INFLATED, 1), **{"Content-Encoding": "deflate"}) == 413
