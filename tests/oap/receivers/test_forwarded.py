"""What a satellite's own sender sends again, however it cuts its batches, against the real door."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from oap.receivers.doors import Door
from skyfarer.queue.reader import Reader
from skyfarer.satellite.contracts import Batch
from skyfarer.satellite.senders.grpc import GrpcForwarder
from skyfarer.satellite.senders.grpc_config import GrpcClientConfig
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.wire.generated import log_pb2, meter_pb2
from skyfarer.wire.rpc import FORWARD, Kind
from skyfarer.wire.server import GrpcServer, ServerSettings
from skyfarer.wire.split import join_repeated, split_repeated

QUEUE = "0123456789abcdef0123456789abcdef"


def logs(count: int) -> list[bytes]:
    return [
        log_pb2.LogData(service=f"shop {n % 3}", timestamp=n).SerializeToString()
        for n in range(count)
    ]


def meters(count: int) -> list[bytes]:
    """Of three moments: what is packed together depends on who is in the batch."""
    made = []
    for n in range(count):
        meter = meter_pb2.MeterData(service="shop", serviceInstance="one", timestamp=n % 3)
        meter.singleValue.name, meter.singleValue.value = f"meter_{n}", n
        made.append(meter.SerializeToString())
    return made


def segments(count: int) -> list[bytes]:
    return [b"\x0a\x02\x0a\x00\x12" + bytes([2, 0x18, n]) for n in range(count)]


def pings(count: int) -> list[bytes]:
    return [b"\x12\x01%c" % n for n in range(count)]


CASES = [
    (Kind.LOG, logs),
    (Kind.METER, meters),
    (Kind.V2_SEGMENT, segments),
    (Kind.INSTANCE_PING, pings),
]

KINDS = {Kind.METER_COLLECTION, *(kind for kind, _ in CASES)} - {Kind.METER}


def cut(kind: int, payloads: Sequence[bytes], *edges: int) -> list[Batch]:
    return [Batch(first, kind, tuple(payloads[first:end])) for first, end in pairwise(edges)]


def kept(directory: Path) -> list[bytes]:
    """Meters without their collections."""
    reader = Reader(directory)
    reader.start()
    found: list[bytes] = []
    for run in reader.runs(0, reader.writing()):
        for kind, payload in zip(run.kinds(), map(bytes, run.payloads()), strict=True):
            assert kind in KINDS
            elements = split_repeated(payload, 1) if kind == Kind.METER_COLLECTION else None
            assert elements is None or join_repeated(elements, 1) == payload
            found += [payload] if elements is None else elements
    reader.stop()
    return found


async def deliver(door: Door, batches: Sequence[Batch]) -> None:
    doors = {rpc.path: door.resends.append for rpc in FORWARD.values()}
    settings = ServerSettings(host="127.0.0.1", port=0)
    server = GrpcServer(settings, doors, None, door.registry, Health())
    await server.start()
    config = GrpcClientConfig(server_addr=f"127.0.0.1:{server.port}")
    sender = GrpcForwarder(config, lambda: QUEUE, 100, Registry())
    await sender.start()
    try:
        for batch in batches:
            await sender.send(batch)
    finally:
        await sender.stop(1.0)
        await server.stop(1.0)


@pytest.mark.parametrize(("kind", "make"), CASES, ids=[kind.name for kind, _ in CASES])
def test_a_batch_sent_again_is_kept_once_whatever_its_bounds_are_the_second_time(
    tmp_path: Path, kind: Kind, make: Callable[[int], list[bytes]]
) -> None:
    payloads = make(15)
    with Door(tmp_path) as door:
        asyncio.run(deliver(door, cut(kind, payloads, 0, 7, 10)))
        asyncio.run(deliver(door, cut(kind, payloads, 0, 7, 10)))
        assert sorted(kept(tmp_path)) == sorted(payloads[:10])
        assert door.metric('receiver_repeats_total{reason="settled"} 7')
        assert door.metric('receiver_repeats_total{reason="resent"} 3')
    with Door(tmp_path) as door:
        asyncio.run(deliver(door, cut(kind, payloads, 2, 5, 15)))
        assert sorted(kept(tmp_path)) == sorted(payloads)
        assert "receiver_unsure_total{" not in door.registry.render()


def test_a_record_that_stands_alone_behind_later_ones_is_kept(tmp_path: Path) -> None:
    """As a satellite sends one that it had doubted for nothing."""
    payloads = logs(6)
    with Door(tmp_path) as door:
        asyncio.run(deliver(door, cut(Kind.LOG, payloads, 0, 2)))
        asyncio.run(deliver(door, cut(Kind.LOG, payloads, 3, 4)))
        asyncio.run(deliver(door, cut(Kind.LOG, payloads, 2, 3)))
        asyncio.run(deliver(door, cut(Kind.LOG, payloads, 3, 4, 6)))
    assert kept(tmp_path) == [payloads[n] for n in (0, 1, 3, 2, 4, 5)]
