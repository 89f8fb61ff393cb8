"""h2 by hand against our server: what is legal, though few clients do it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from h2.errors import ErrorCodes
from h2.events import DataReceived, ResponseReceived, StreamEnded, StreamReset
from h2.settings import SettingCodes

from skyfarer.base.errors import PermanentError
from skyfarer.base.units import KIB, MIB
from skyfarer.wire.framing import prefixed
from skyfarer.wire.rpc import Kind

COLLECT = "/skywalking.v3.TraceSegmentReportService/collect"
KEEP_ALIVE = "/skywalking.v3.ManagementService/keepAlive"

Serve = Callable[..., Any]
Raw = Any


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"content_type": "application/json"}, b"415"),
        ({"content_type": ""}, b"415"),
        ({":method": "GET"}, b"405"),
    ],
)
def test_what_is_not_grpc_gets_an_http_status(
    serve: Serve, raw: Callable[..., Raw], changes: dict[str, str], code: bytes
) -> None:
    client = raw(serve())
    stream = client.open(KEEP_ALIVE, **changes)
    client.h2.send_data(stream, b"what is asked", end_stream=True)
    client.flush()
    assert dict(client.until(ResponseReceived, stream).headers)[b":status"] == code
    assert client.until(DataReceived, stream).data.endswith(b"\n")
    assert client.until(StreamEnded, stream)


def test_the_server_ends_a_call_at_its_deadline(serve: Serve, raw: Callable[..., Raw]) -> None:
    serving = serve()
    client = raw(serving)
    stream = client.open(COLLECT, ("grpc-timeout", "50m"))
    client.h2.send_data(stream, prefixed(b"first"))
    client.flush()
    assert client.trailers(stream)[b"grpc-status"] == b"4"
    assert client.until(StreamReset, stream).error_code == ErrorCodes.NO_ERROR
    assert serving.kept(Kind.SEGMENT) == [b"first"]


@pytest.mark.parametrize("value", ["", "5", "m", "-5m", "123456789m", "5x", "٥m"])
def test_a_malformed_timeout_ends_the_call(
    serve: Serve, raw: Callable[..., Raw], value: str
) -> None:
    client = raw(serve())
    stream = client.open(COLLECT, ("grpc-timeout", value))
    client.flush()
    assert client.trailers(stream)[b"grpc-status"] == b"13"


def test_an_unknown_encoding_is_refused_with_those_we_know(
    serve: Serve, raw: Callable[..., Raw]
) -> None:
    client = raw(serve())
    stream = client.open(COLLECT, ("grpc-encoding", "snappy"))
    client.flush()
    trailers = client.trailers(stream)
    assert trailers[b"grpc-status"] == b"12"
    assert trailers[b"grpc-accept-encoding"] == b"identity,deflate,gzip"


def test_a_message_cut_short_ends_the_call(serve: Serve, raw: Callable[..., Raw]) -> None:
    serving = serve()
    client = raw(serving)
    stream = client.open()
    client.h2.send_data(stream, prefixed(b"whole") + prefixed(b"cut")[:-1], end_stream=True)
    client.flush()
    assert client.trailers(stream)[b"grpc-status"] == b"13"
    assert serving.kept(Kind.SEGMENT) == [b"whole"]
    assert serving.server._receiver.unfinished.bytes == 0


def test_all_calls_of_a_read_share_one_append_per_kind(
    serve: Serve, raw: Callable[..., Raw]
) -> None:
    serving = serve()
    client = raw(serving)
    streams = [client.open(COLLECT) for _ in range(3)] + [client.open(KEEP_ALIVE)]
    for stream in streams:
        client.h2.send_data(stream, prefixed(b"%d" % stream), end_stream=True)
    client.flush()
    for stream in streams:
        assert client.trailers(stream)[b"grpc-status"] == b"0"
    assert serving.appends == [(Kind.SEGMENT, [b"1", b"3", b"5"]), (Kind.INSTANCE_PING, [b"7"])]


def test_one_calls_bad_message_does_not_cost_the_others_of_the_read(
    serve: Serve, raw: Callable[..., Raw]
) -> None:
    serving = serve()

    def refuse_bad(payloads: Sequence[bytes]) -> None:
        if b"bad" in payloads:
            raise PermanentError("record too large")

    serving.fault = refuse_bad
    client = raw(serving)
    streams = [client.open() for _ in range(3)]
    for stream, message in zip(streams, [b"good", b"bad", b"fine"], strict=True):
        client.h2.send_data(stream, prefixed(message), end_stream=True)
    client.flush()
    assert [client.trailers(stream)[b"grpc-status"] for stream in streams] == [b"0", b"3", b"0"]
    assert serving.kept(Kind.SEGMENT) == [b"good", b"fine"]


def test_a_call_reset_in_the_read_that_ends_it_is_not_answered(
    serve: Serve, raw: Callable[..., Raw]
) -> None:
    serving = serve()
    client = raw(serving)
    gone, refused, other = client.open(), client.open("/unknown"), client.open()
    client.h2.send_data(gone, prefixed(b"kept"), end_stream=True)
    client.h2.reset_stream(gone, ErrorCodes.CANCEL)
    client.h2.reset_stream(refused, ErrorCodes.CANCEL)
    client.h2.send_data(other, prefixed(b"other"), end_stream=True)
    client.flush()
    assert client.trailers(other)[b"grpc-status"] == b"0"
    answered = {getattr(event, "stream_id", None) for event in client.events}
    assert answered.isdisjoint({gone, refused})
    assert serving.kept(Kind.SEGMENT) == [b"kept", b"other"]


def test_answers_wait_for_a_peer_that_gives_no_window(
    serve: Serve, raw: Callable[..., Raw]
) -> None:
    serving = serve()
    client = raw(serving, {SettingCodes.INITIAL_WINDOW_SIZE: 0})
    first, second = client.open(), client.open()
    for stream in (first, second):
        client.h2.send_data(stream, prefixed(b"segment"), end_stream=True)
    client.h2.ping(b"12345678")
    client.flush()
    assert not any(isinstance(event, ResponseReceived) for event in client.events)
    client.h2.increment_flow_control_window(5, second)
    client.flush()
    assert client.trailers(second)[b"grpc-status"] == b"0"
    client.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 5})
    client.flush()
    assert client.trailers(first)[b"grpc-status"] == b"0"


def test_windows_are_given_back_also_for_calls_that_failed(
    serve: Serve, raw: Callable[..., Raw]
) -> None:
    serving = serve()
    client = raw(serving)
    sent = 0
    while sent < 12 * MIB:
        stream = client.open("/unknown")
        client.flush()
        for _ in range(16):
            while client.h2.outbound_flow_control_window < 16 * KIB:
                client.events.extend(client.h2.receive_data(client.socket.recv(64 * KIB)))
                client.flush()
            if client.h2.streams[stream].closed:
                break
            client.h2.send_data(stream, bytes(16 * KIB))
            sent += 16 * KIB
            client.flush()
        if not client.h2.streams[stream].closed:
            client.until(StreamReset, stream)
    stream = client.open(KEEP_ALIVE)
    client.h2.send_data(stream, prefixed(b"ping"), end_stream=True)
    client.flush()
    assert client.trailers(stream)[b"grpc-status"] == b"0"


def test_data_of_a_call_is_acknowledged_so_that_it_may_be_longer_than_the_window(
    serve: Serve, raw: Callable[..., Raw]
) -> None:
    serving = serve()
    client = raw(serving)
    stream = client.open()
    message = prefixed(bytes(1000))
    for _ in range(9000):
        while client.h2.local_flow_control_window(stream) < len(message):
            client.flush()
            client.events.extend(client.h2.receive_data(client.socket.recv(64 * KIB)))
        client.h2.send_data(stream, message)
    client.h2.end_stream(stream)
    client.flush()
    assert client.trailers(stream)[b"grpc-status"] == b"0"
    assert len(serving.kept(Kind.SEGMENT)) == 9000
    assert any(isinstance(event, DataReceived) for event in client.events)
