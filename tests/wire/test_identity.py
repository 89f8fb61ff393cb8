"""A record says where it is from, though only the first message of its stream did."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfarer.base.units import KIB, MIB
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.wire.calls import Call
from skyfarer.wire.framing import prefixed
from skyfarer.wire.identity import IDENTITY_BYTES_MAX, Identity
from skyfarer.wire.intake import PENDING_BYTES_MAX, Intake
from skyfarer.wire.messages import log, meter
from skyfarer.wire.receiver import Receiver, ServerSettings
from skyfarer.wire.rpc import FORWARD, RPCS, Handling, Kind, Rpc
from skyfarer.wire.split import pick_fields

LOGS = "/skywalking.v3.LogReportService/collect"
METERS = "/skywalking.v3.MeterReportService/collect"
KEEP_ALIVE = "/skywalking.v3.ManagementService/keepAlive"
IDENTIFIED = tuple(rpc for rpc in RPCS if rpc.identity and rpc.handling is Handling.KEEP)
TIMEOUT_S = 120.0

Serve = Callable[..., Any]


def field(number: int, value: bytes) -> bytes:
    size = bytearray()
    rest = len(value)
    while rest > 0x7F:
        size.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([number << 3 | 2, *size, rest]) + value


def send(serving: Any, path: str, messages: Sequence[bytes]) -> None:
    with grpc.insecure_channel(serving.address) as channel:
        channel.stream_unary(path)(iter(messages), timeout=TIMEOUT_S)


def test_logs_have_the_service_and_instance_that_were_named_last(serve: Serve) -> None:
    serving = serve()
    named = [
        ("a", "a1"),
        ("", ""),
        ("", "a2"),
        ("", ""),
        ("b", ""),
        ("", ""),
        ("b", "b1"),
        ("", ""),
    ]
    messages = []
    for number, (service, instance) in enumerate(named):
        data = log.LogData(timestamp=number, service=service, serviceInstance=instance, layer="L")
        data.body.text.text = f"line {number}"
        messages.append(data.SerializeToString())
    send(serving, LOGS, messages)
    kept = [log.LogData.FromString(one) for one in serving.kept(Kind.LOG)]
    assert [(one.service, one.serviceInstance) for one in kept] == [
        *[("a", "a1"), ("a", "a1"), ("a", "a2"), ("a", "a2")],
        *[("b", ""), ("b", ""), ("b", "b1"), ("b", "b1")],
    ]
    assert [one.body.text.text for one in kept] == [f"line {number}" for number in range(8)]
    assert [one.timestamp for one in kept] == list(range(8))


def test_a_message_that_says_it_all_is_kept_as_it_came(serve: Serve) -> None:
    serving = serve()
    data = log.LogData(service="a", serviceInstance="a1", endpoint="/x").SerializeToString()
    send(serving, LOGS, [data] * 1000)
    assert serving.kept(Kind.LOG) == [data] * 1000


def test_meters_have_service_instance_and_time_of_their_stream(serve: Serve) -> None:
    serving = serve()
    first = meter.MeterData(service="a", serviceInstance="a1", timestamp=7)
    first.singleValue.name = "cpu"
    later = meter.MeterData()
    later.histogram.name = "latency"
    send(serving, METERS, [one.SerializeToString() for one in (first, later, later)])
    kept = [meter.MeterData.FromString(one) for one in serving.kept(Kind.METER)]
    assert [(one.service, one.serviceInstance, one.timestamp) for one in kept] == [
        ("a", "a1", 7)
    ] * 3
    assert [one.WhichOneof("metric") for one in kept] == ["singleValue", "histogram", "histogram"]


@pytest.mark.parametrize("rpc", IDENTIFIED, ids=lambda rpc: rpc.path)
def test_every_stream_that_names_itself_once_is_kept_as_records_that_name_themselves(
    serve: Serve, rpc: Rpc
) -> None:
    serving = serve()
    who = b"".join(field(number, b"who %d" % number) for number in rpc.identity)
    payload = field(14, b"payload")
    send(serving, rpc.path, [who + payload, payload, payload])
    kept = serving.kept(rpc.kind)
    assert len(kept) == 3
    for record in kept:
        found = pick_fields(record, (*rpc.identity, 14), len(rpc.identity) + 1)
        expected = {number: field(number, b"who %d" % number) for number in rpc.identity}
        assert found == {**expected, 14: payload}


def test_a_new_connection_of_a_node_takes_the_place_of_the_old_one(serve: Serve) -> None:
    serving = serve()
    rpc = FORWARD[Kind.EBPF_ACCESS_LOG]
    node, one, two, payload = (
        field(1, b"node"),
        field(2, b"one"),
        field(2, b"two"),
        field(3, b"log"),
    )
    send(serving, rpc.path, [node + one + payload, payload, two + payload, payload])
    assert serving.kept(Kind.EBPF_ACCESS_LOG) == [
        node + one + payload,
        node + one + payload,
        node + two + payload,
        node + two + payload,
    ]


def test_streams_side_by_side_do_not_mix(serve: Serve) -> None:
    serving = serve()
    with grpc.insecure_channel(serving.address) as channel:

        def lines(service: str) -> Iterator[bytes]:
            yield log.LogData(service=service).SerializeToString()
            for number in range(200):
                yield log.LogData(endpoint=f"{service} {number}").SerializeToString()

        calls = [channel.stream_unary(LOGS).future(lines(service)) for service in "ab"]
        for call in calls:
            call.result(TIMEOUT_S)
    kept = [log.LogData.FromString(one) for one in serving.kept(Kind.LOG)]
    assert len(kept) == 402
    assert all(not one.endpoint or one.endpoint.split()[0] == one.service for one in kept)


def test_an_identity_beyond_its_bound_ends_the_call_and_keeps_what_came_before(
    serve: Serve,
) -> None:
    serving = serve()
    path = FORWARD[Kind.ENVOY_METRICS].path
    fits = field(1, bytes(IDENTITY_BYTES_MAX - 8))
    with pytest.raises(grpc.RpcError) as caught:
        send(serving, path, [fits, field(1, bytes(IDENTITY_BYTES_MAX)), b""])
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert serving.kept(Kind.ENVOY_METRICS) == [fits]
    assert serving.server._receiver.unfinished.bytes == 0


def test_what_streams_remember_is_bounded_over_all_of_them(
    serve: Serve, raw: Callable[..., Any]
) -> None:
    serving = serve(unfinished_bytes_max=100 * KIB, message_bytes_max=100 * KIB)
    client = raw(serving)
    path = FORWARD[Kind.ENVOY_METRICS].path
    streams = [client.open(path) for _ in range(3)]
    for stream in streams:
        client.send(stream, prefixed(field(1, bytes(45 * KIB))))
    assert client.trailers(streams[2])[b"grpc-status"] == b"8"
    for stream in streams[:2]:
        client.send(stream, prefixed(field(2, b"metrics")), end=True)
    for stream in streams[:2]:
        assert client.trailers(stream)[b"grpc-status"] == b"0"
    assert len(serving.kept(Kind.ENVOY_METRICS)) == 4
    assert serving.server._receiver.unfinished.bytes == 0


def test_small_messages_with_a_large_identity_are_appended_in_parts(
    serve: Serve, raw: Callable[..., Any]
) -> None:
    serving = serve()
    client = raw(serving)
    stream = client.open(FORWARD[Kind.ENVOY_METRICS].path)
    client.send(stream, prefixed(field(1, bytes(60 * KIB))))
    client.send(stream, prefixed(field(2, b"")) * 2000, end=True)
    assert client.trailers(stream)[b"grpc-status"] == b"0"
    assert len(serving.kept(Kind.ENVOY_METRICS)) == 2001
    largest = max(sum(map(len, payloads)) for _, payloads in serving.appends)
    assert largest <= PENDING_BYTES_MAX + 128 * KIB


def test_what_came_whole_before_a_broken_message_is_identified_too(
    serve: Serve, raw: Callable[..., Any]
) -> None:
    serving = serve(message_bytes_max=1 * MIB)
    client = raw(serving)
    stream = client.open(LOGS)
    service, line = field(2, b"a") + field(3, b"a1"), field(5, b"line")
    giant = b"\x00\x7f\xff\xff\xff"
    client.h2.send_data(stream, prefixed(service) + prefixed(line) + giant)
    client.flush()
    assert client.trailers(stream)[b"grpc-status"] == b"8"
    assert serving.kept(Kind.LOG) == [service, service + line]


TEXT = st.text(max_size=5)


@given(
    named=st.lists(st.tuples(TEXT, TEXT, st.integers(0, 3)), max_size=20),
    cuts=st.lists(st.integers(0, 2000), max_size=20),
)
def test_any_stream_of_meters_in_any_pieces_has_what_a_reader_of_the_stream_would_know(
    named: list[tuple[str, str, int]], cuts: list[int]
) -> None:
    messages = [
        meter.MeterData(service=service, serviceInstance=instance, timestamp=time)
        for service, instance, time in named
    ]
    identity = Identity((3, 4, 5))
    whole = [identity.complete(one.SerializeToString()) for one in messages]
    known: tuple[str, str, int] = ("", "", 0)
    for record, one in zip(whole, messages, strict=True):
        if one.service and one.service != known[0]:
            known = ("", "", 0)
        known = (
            one.service or known[0],
            one.serviceInstance or known[1],
            one.timestamp or known[2],
        )
        read = meter.MeterData.FromString(record)
        assert (read.service, read.serviceInstance, read.timestamp) == known
    assert kept_of(b"".join(prefixed(one.SerializeToString()) for one in messages), cuts) == whole


def kept_of(body: bytes, cuts: list[int]) -> list[bytes]:
    kept: list[bytes] = []
    doors = {METERS: lambda kind, payloads: kept.extend(payloads)}

    async def run() -> None:
        receiver = Receiver(ServerSettings(), doors, None, Registry(), Health())
        intake, call = Intake(receiver.unfinished, receiver.registry), Call(1)
        headers = {":method": "POST", ":path": METERS, "content-type": "application/grpc"}
        fields = [(name.encode(), value.encode()) for name, value in headers.items()]
        call.read_headers(fields, receiver.routes, 1 * MIB)
        for start, end in pairwise([0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]):
            intake.take(call, body[start:end])
            assert intake.flush() == {}

    asyncio.run(run())
    return kept


@given(payload=st.binary(max_size=200))
def test_junk_is_kept_as_it_came_and_harms_nobody(payload: bytes) -> None:
    identity = Identity((2, 3))
    assert identity.complete(payload) == payload
    line = field(5, b"line")
    assert identity.complete(line).endswith(line)
    assert identity.held_bytes <= len(payload)
