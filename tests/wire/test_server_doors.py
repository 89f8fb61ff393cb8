"""Which call goes to which door, and doors that are replaced while calls are open."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import grpc
import pytest

from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.programs import eventually
from skyfarer.wire.framing import prefixed
from skyfarer.wire.rpc import RPCS, Handling, Kind, Rpc, Streaming
from skyfarer.wire.server import Append, GrpcServer, ServerSettings

COLLECT = "/skywalking.v3.TraceSegmentReportService/collect"
LOGS = "/skywalking.v3.LogReportService/collect"
KEEP_ALIVE = "/skywalking.v3.ManagementService/keepAlive"
PROPERTIES = "/skywalking.v3.ManagementService/reportInstanceProperties"
KEPT = tuple(rpc for rpc in RPCS if rpc.handling is Handling.KEEP)
TIMEOUT_S = 120.0


class Door:
    def __init__(self) -> None:
        self.appends: list[tuple[int, list[bytes]]] = []

    def append(self, kind: int, payloads: Sequence[bytes]) -> None:
        self.appends.append((kind, list(payloads)))

    def records(self) -> list[bytes]:
        return [payload for _, payloads in self.appends for payload in payloads]


@pytest.fixture
def opened(serve: Callable[..., Any], loop_thread: Any) -> Callable[..., Any]:
    """A server with exactly these doors."""

    def start(doors: dict[str, Append]) -> Any:
        serving = serve()
        replace(serving, doors)
        return serving

    def replace(serving: Any, doors: dict[str, Append]) -> None:
        async def change() -> None:
            serving.server.serve(doors, None)

        loop_thread.run(change())

    start.replace = replace  # type: ignore[attr-defined]
    return start


def call(channel: grpc.Channel, rpc: Rpc, message: bytes) -> bytes:
    if rpc.streaming is Streaming.UNARY:
        return bytes(channel.unary_unary(rpc.path)(message, timeout=TIMEOUT_S))
    return bytes(channel.stream_unary(rpc.path)(iter([message]), timeout=TIMEOUT_S))


def test_every_kept_call_arrives_at_its_own_door_under_its_kind(
    opened: Callable[..., Any],
) -> None:
    doors = {rpc.path: Door() for rpc in KEPT}
    serving = opened({path: door.append for path, door in doors.items()})
    with grpc.insecure_channel(serving.address) as channel:
        for rpc in KEPT:
            # A field that belongs to no identity, as an element of a collection or as it stands.
            record = b"\x7a\x04data"
            message = b"\x0a\x06" + record if rpc.repeated_field is not None else record
            assert call(channel, rpc, message) == b"", rpc.path
            assert doors[rpc.path].appends == [(rpc.kind, [record])], rpc.path
            doors[rpc.path].appends.clear()
    assert not any(door.appends for door in doors.values())
    assert len(KEPT) == 39


def test_calls_without_a_door_or_a_relay_are_unimplemented(opened: Callable[..., Any]) -> None:
    door = Door()
    serving = opened({COLLECT: door.append})
    with grpc.insecure_channel(serving.address) as channel:
        for rpc in RPCS:
            if rpc.path != COLLECT:
                with pytest.raises(grpc.RpcError) as caught:
                    call(channel, rpc, b"")
                assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED, rpc.path
        channel.stream_unary(COLLECT)(iter([b"segment"]), timeout=TIMEOUT_S)
    assert door.records() == [b"segment"]


def test_one_read_is_one_append_for_each_door_and_kind(
    opened: Callable[..., Any], raw: Callable[..., Any]
) -> None:
    traces, rest = Door(), Door()
    doors = {COLLECT: traces.append, KEEP_ALIVE: rest.append, PROPERTIES: rest.append}
    client = raw(opened(doors))
    streams = {client.open(path): path for path in (COLLECT, KEEP_ALIVE, PROPERTIES, COLLECT)}
    for stream in streams:
        client.h2.send_data(stream, prefixed(b"%d" % stream), end_stream=True)
    client.flush()
    for stream in streams:
        assert client.trailers(stream)[b"grpc-status"] == b"0"
    assert traces.appends == [(Kind.SEGMENT, [b"1", b"7"])]
    assert rest.appends == [(Kind.INSTANCE_PING, [b"3"]), (Kind.INSTANCE_PROPERTIES, [b"5"])]


def test_an_open_stream_follows_when_the_doors_are_replaced(opened: Any) -> None:
    old, new = Door(), Door()
    serving = opened({COLLECT: old.append, KEEP_ALIVE: old.append})
    outbox: queue.Queue[bytes | None] = queue.Queue()
    with grpc.insecure_channel(serving.address) as channel:
        stream = channel.stream_unary(COLLECT).future(iter(outbox.get, None), timeout=TIMEOUT_S)
        outbox.put(b"before")
        eventually(lambda: old.records() == [b"before"], TIMEOUT_S, "the old door is used")
        opened.replace(serving, {COLLECT: new.append, LOGS: new.append})
        outbox.put(b"after")
        outbox.put(None)
        assert stream.result(TIMEOUT_S) == b""
        channel.stream_unary(LOGS)(iter([b"log"]), timeout=TIMEOUT_S)
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary(KEEP_ALIVE)(b"ping", timeout=TIMEOUT_S)
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
        assert serving.counted("receiver_connections 1")
    assert old.records() == [b"before"]
    assert new.records() == [b"after", b"log"]


def test_an_open_stream_whose_door_is_gone_is_told_to_come_again(opened: Any) -> None:
    door = Door()
    serving = opened({COLLECT: door.append})
    outbox: queue.Queue[bytes | None] = queue.Queue()

    def messages() -> Iterator[bytes]:
        yield from iter(outbox.get, None)

    with grpc.insecure_channel(serving.address) as channel:
        stream = channel.stream_unary(COLLECT).future(messages(), timeout=TIMEOUT_S)
        outbox.put(b"before")
        eventually(lambda: door.records() == [b"before"], TIMEOUT_S, "the door is used")
        opened.replace(serving, {})
        outbox.put(b"after")
        assert stream.exception(TIMEOUT_S).code() is grpc.StatusCode.UNAVAILABLE
        outbox.put(None)
    assert door.records() == [b"before"]


def test_a_door_for_a_path_that_is_no_call_is_refused(opened: Any) -> None:
    door = Door()
    with pytest.raises(ValueError, match="/no/such"):
        GrpcServer(ServerSettings(port=0), {"/no/such": door.append}, None, Registry(), Health())
    serving = opened({KEEP_ALIVE: door.append})
    with pytest.raises(ValueError, match="/no/such"):
        opened.replace(serving, {"/no/such": door.append})
    with grpc.insecure_channel(serving.address) as channel:
        channel.unary_unary(KEEP_ALIVE)(b"ping", timeout=TIMEOUT_S)
    assert door.records() == [b"ping"]
