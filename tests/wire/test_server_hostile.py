"""What no well-behaved client sends: raw sockets, or h2 by hand, against our server."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated, StreamEnded
from h2.settings import SettingCodes

from skyfarer.base.units import KIB, MIB
from skyfarer.wire import connection, http2
from skyfarer.wire.framing import prefixed

COLLECT = "/skywalking.v3.TraceSegmentReportService/collect"
KEEP_ALIVE = "/skywalking.v3.ManagementService/keepAlive"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
EMPTY_SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
DATA_ON_STREAM_1 = b"\x00\x00\x01\x00\x00\x00\x00\x00\x01x"
PING_OF_6 = b"\x00\x00\x06\x06\x00\x00\x00\x00\x00sixbyt"
MORE_THAN_ONE_READ = 600 * KIB
NOISE = Random(11800)
TIMEOUT_S = 120.0

Serve = Callable[..., Any]
Raw = Any


@pytest.mark.parametrize(
    "junk",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        NOISE.randbytes(4096),
        PREFACE + NOISE.randbytes(200_000),
        PREFACE + EMPTY_SETTINGS + b"\xff" * 5000,
        PREFACE + EMPTY_SETTINGS + DATA_ON_STREAM_1,
    ],
    ids=["http1", "noise", "noise-after-preface", "overlong-frame", "data-on-no-stream"],
)
def test_garbage_costs_its_own_connection_only(
    serve: Serve, raw: Callable[..., Raw], junk: bytes
) -> None:
    serving = serve(handshake_timeout_s=2.0)
    with socket.create_connection(("127.0.0.1", serving.server.port), TIMEOUT_S) as hostile:
        hostile.sendall(junk)
        hostile.shutdown(socket.SHUT_WR)
        try:
            while hostile.recv(64 * KIB):
                pass
        except ConnectionError:
            pass
    client = raw(serving)
    stream = client.open(KEEP_ALIVE)
    client.h2.send_data(stream, prefixed(b"ping"), end_stream=True)
    client.flush()
    assert client.trailers(stream)[b"grpc-status"] == b"0"


def test_the_last_word_reaches_a_client_whose_bytes_are_not_all_read(serve: Serve) -> None:
    with socket.create_connection(("127.0.0.1", serve().server.port), TIMEOUT_S) as hostile:
        hostile.sendall(PREFACE + EMPTY_SETTINGS + PING_OF_6 + bytes(MORE_THAN_ONE_READ))
        heard = b""
        while chunk := hostile.recv(64 * KIB):
            heard += chunk
    goaway, code = heard[-17:-8], heard[-4:]
    assert goaway == b"\x00\x00\x08\x07\x00\x00\x00\x00\x00"
    assert int.from_bytes(code) == ErrorCodes.FRAME_SIZE_ERROR


@pytest.mark.parametrize("opening", [b"", PREFACE[:10], PREFACE], ids=["silent", "part", "preface"])
def test_a_connection_that_does_not_speak_http2_in_time_is_closed(
    serve: Serve, opening: bytes
) -> None:
    serving = serve(handshake_timeout_s=0.1)
    with socket.create_connection(("127.0.0.1", serving.server.port), TIMEOUT_S) as silent:
        silent.sendall(opening)
        while silent.recv(64 * KIB):
            pass
    assert serving.counted('receiver_connections_refused_total{reason="handshake_timeout"} 1')


def test_an_established_connection_may_be_idle(serve: Serve, raw: Callable[..., Raw]) -> None:
    client = raw(serve(handshake_timeout_s=1.0))
    time.sleep(1.5)
    stream = client.open(KEEP_ALIVE)
    client.h2.send_data(stream, prefixed(b"ping"), end_stream=True)
    client.flush()
    assert client.trailers(stream)[b"grpc-status"] == b"0"


def flood_pings(client: Raw) -> None:
    for _ in range(100):
        client.h2.ping(b"12345678")


def flood_settings(client: Raw) -> None:
    for _ in range(100):
        client.h2.update_settings({SettingCodes.HEADER_TABLE_SIZE: 4096})


def flood_resets(client: Raw) -> None:
    for _ in range(100):
        client.h2.reset_stream(client.open(), ErrorCodes.CANCEL)


def flood_empty_data(client: Raw) -> None:
    if not client.h2.streams:
        client.open()
    for _ in range(100):
        client.h2.send_data(1, b"")


@pytest.mark.parametrize("flood", [flood_pings, flood_settings, flood_resets, flood_empty_data])
def test_a_flood_of_frames_that_bring_nothing_is_cut_off(
    serve: Serve, raw: Callable[..., Raw], flood: Callable[[Raw], None]
) -> None:
    serving = serve()
    client = raw(serving)
    try:
        while True:
            flood(client)
            client.flush()
    except ConnectionError:
        pass
    assert serving.counted('receiver_connections_refused_total{reason="control_flood"} 1')


def test_useful_work_earns_its_control_frames(serve: Serve, raw: Callable[..., Raw]) -> None:
    client = raw(serve())
    for _ in range(3000):
        stream = client.open(KEEP_ALIVE)
        client.h2.send_data(stream, prefixed(b"ping"), end_stream=True)
        client.h2.ping(b"12345678")
        client.flush()
        client.until(StreamEnded, stream)
        client.events.clear()


def test_headers_beyond_the_bound_end_the_connection(serve: Serve, raw: Callable[..., Raw]) -> None:
    serving = serve()
    client = raw(serving)
    client.open(COLLECT, ("junk", "x" * 20 * KIB))
    client.flush()
    assert client.until(ConnectionTerminated).error_code == ErrorCodes.ENHANCE_YOUR_CALM
    assert serving.counted('receiver_connections_refused_total{reason="protocol_error"} 1')


def test_a_frame_that_announces_more_than_allowed_is_not_waited_for(
    serve: Serve, raw: Callable[..., Raw]
) -> None:
    serving = serve()
    client = raw(serving)
    client.open()
    client.flush()
    length = 2**24 - 1
    client.socket.sendall(struct.pack(">I", length)[1:] + b"\x00\x00" + struct.pack(">I", 1))
    sent = 0
    try:
        while sent < length:
            client.socket.sendall(bytes(64 * KIB))
            sent += 64 * KIB
    except ConnectionError:
        pass
    assert sent < length
    assert serving.counted('receiver_connections_refused_total{reason="control_flood"} 1')


def test_more_streams_than_advertised_end_the_connection(
    serve: Serve, raw: Callable[..., Raw]
) -> None:
    serving = serve(streams_max=3)
    client = raw(serving)
    assert client.h2.remote_settings.max_concurrent_streams == 3
    client.h2.remote_settings[SettingCodes.MAX_CONCURRENT_STREAMS] = 100
    client.h2.remote_settings.acknowledge()
    for _ in range(4):
        client.open()
    client.flush()
    assert client.until(ConnectionTerminated).error_code == ErrorCodes.PROTOCOL_ERROR


def test_a_peer_that_reads_no_answers_is_no_longer_read(
    serve: Serve, raw: Callable[..., Raw], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor cut off yet, however long this peer takes to write as much."""
    monkeypatch.setattr(connection, "OUTPUT_STALL_TIMEOUT_S", 3600.0)
    monkeypatch.setattr(http2, "UNACKNOWLEDGED_S", 3600)
    serving = serve()
    client = raw(serving)
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 * KIB)
    client.socket.settimeout(1.5)
    sent = 0
    with pytest.raises(TimeoutError):
        while sent < 64 * MIB:
            for number in range(50):
                stream = client.open(f"/unknown/{sent}/{number}/" + "%" * 900)
                client.h2.send_data(stream, b"", end_stream=True)
                # The answer is never read, so h2 has to be told that the stream is over.
                client.h2.streams.pop(stream)
            data = client.h2.data_to_send()
            client.socket.sendall(data)
            sent += len(data)
    client.socket.settimeout(TIMEOUT_S)
    assert client.socket.recv(64 * KIB)
