"""How many may come, and how long they may say nothing (R5 and R6 of the fault plan)."""

from __future__ import annotations

import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated

from skyfarer.base.units import KIB
from skyfarer.testing.programs import eventually
from skyfarer.wire.framing import prefixed
from skyfarer.wire.rpc import Kind

COLLECT = "/skywalking.v3.TraceSegmentReportService/collect"
KEEP_ALIVE = "/skywalking.v3.ManagementService/keepAlive"
CONFIGURATIONS = "/skywalking.v3.ConfigurationDiscoveryService/fetchConfigurations"
OTHER_SOURCE = "127.0.0.2"
TIMEOUT_S = 120.0

Serve = Callable[..., Any]


def connect(port: int, source: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), TIMEOUT_S, (source, 0))


def ended(peer: socket.socket) -> bool:
    """Reads on until the server closes it."""
    try:
        while peer.recv(64 * KIB):
            pass
    except ConnectionError:
        pass
    return True


def ping(client: Any) -> bytes:
    stream = client.open(KEEP_ALIVE)
    client.send(stream, prefixed(b"ping"), end=True)
    return bytes(client.trailers(stream)[b"grpc-status"])


def test_one_address_may_not_take_all_the_room(serve: Serve, raw: Callable[..., Any]) -> None:
    serving = serve(
        connections_max=20, connections_per_source_max=10, handshake_timeout_s=TIMEOUT_S
    )
    with ExitStack() as flood:
        for _ in range(50):
            flood.enter_context(connect(serving.server.port))
        refused = 'receiver_connections_refused_total{reason="too_many_from_source"} 40'
        eventually(lambda: serving.counted(refused), TIMEOUT_S, "40 of 50 are refused")
        assert serving.counted("receiver_connections 10")
        assert ping(raw(serving, source=OTHER_SOURCE)) == b"0"
    eventually(lambda: serving.counted("receiver_connections 1"), TIMEOUT_S, "the flood is over")
    assert ping(raw(serving)) == b"0"


def test_an_agent_behind_the_cap_of_its_address_goes_on(
    serve: Serve, raw: Callable[..., Any]
) -> None:
    serving = serve(connections_per_source_max=2)
    first, second = raw(serving), raw(serving)
    assert ended(connect(serving.server.port))
    assert ping(first) == ping(second) == b"0"
    first.socket.close()
    eventually(lambda: serving.counted("receiver_connections 1"), TIMEOUT_S, "one has left")
    assert ping(raw(serving)) == b"0"


def test_a_connection_without_a_call_is_closed_after_a_while(
    serve: Serve, raw: Callable[..., Any]
) -> None:
    serving = serve(idle_timeout_s=2.0)
    client = raw(serving)
    assert ping(client) == b"0"
    assert client.until(ConnectionTerminated).error_code == ErrorCodes.NO_ERROR
    assert ended(client.socket)
    assert serving.counted('receiver_connections_refused_total{reason="idle"} 1')


def test_an_agent_does_not_notice_that_its_idle_connection_was_closed(serve: Serve) -> None:
    serving = serve(idle_timeout_s=0.1)
    with grpc.insecure_channel(serving.address) as channel:
        for number in range(5):
            channel.unary_unary(KEEP_ALIVE)(b"%d" % number, timeout=TIMEOUT_S)
            time.sleep(0.4)
    assert serving.kept(Kind.INSTANCE_PING) == [b"%d" % number for number in range(5)]
    assert 'reason="idle"' in serving.registry.render()


def test_a_connection_with_a_silent_call_is_not_idle(serve: Serve, raw: Callable[..., Any]) -> None:
    serving = serve(idle_timeout_s=1.0, message_timeout_s=1.0)
    client = raw(serving)
    stream = client.open(COLLECT)
    client.send(stream, prefixed(b"first"))
    time.sleep(2.5)
    client.send(stream, prefixed(b"second"), end=True)
    assert client.trailers(stream)[b"grpc-status"] == b"0"
    assert serving.kept(Kind.SEGMENT) == [b"first", b"second"]


@pytest.mark.parametrize("path", [COLLECT, CONFIGURATIONS])
def test_a_message_that_does_not_end_is_given_up_and_its_room_is_free_again(
    serve: Serve, raw: Callable[..., Any], path: str
) -> None:
    serving = serve(
        relay=NoRelay(),
        message_timeout_s=0.3,
        unfinished_bytes_max=64 * KIB,
        message_bytes_max=64 * KIB,
    )
    client = raw(serving)
    slow, other = client.open(path), client.open(COLLECT)
    client.send(slow, prefixed(bytes(60 * KIB))[:-1000])
    client.send(other, prefixed(bytes(20 * KIB))[:-1000])
    assert client.trailers(other)[b"grpc-status"] == b"8"
    deadline = time.monotonic() + TIMEOUT_S
    while slow in client.h2.streams and not client.h2.streams[slow].closed:
        assert time.monotonic() < deadline
        # A byte now and then is no message.
        client.send(slow, b"x")
        client.socket.settimeout(0.05)
        try:
            client.events.extend(client.h2.receive_data(client.socket.recv(64 * KIB)))
        except TimeoutError:
            continue
        finally:
            client.socket.settimeout(TIMEOUT_S)
    assert client.trailers(slow)[b"grpc-status"] == b"4"
    assert serving.server._receiver.unfinished.bytes == 0
    stream = client.open(COLLECT)
    client.send(stream, prefixed(bytes(50 * KIB)), end=True)
    assert client.trailers(stream)[b"grpc-status"] == b"0"


class NoRelay:
    """For calls that are never asked."""

    async def ask(self, *call: object) -> bytes:
        raise AssertionError("nothing was complete enough to be asked")

    def converse(self, *call: object) -> Any:
        raise AssertionError("nothing was complete enough to be asked")


def test_a_steady_stream_of_large_messages_is_no_slow_message(
    serve: Serve, raw: Callable[..., Any]
) -> None:
    serving = serve(message_timeout_s=2.0)
    client = raw(serving)
    stream = client.open(COLLECT)
    body = prefixed(bytes(20 * KIB)) * 8
    for start in range(0, len(body), 10 * KIB):
        client.send(stream, body[start : start + 10 * KIB])
        time.sleep(0.2)
    client.h2.end_stream(stream)
    client.flush()
    assert client.trailers(stream)[b"grpc-status"] == b"0"
    assert serving.kept(Kind.SEGMENT) == [bytes(20 * KIB)] * 8


SERVER = """
import asyncio, sys
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.wire.rpc import BY_PATH
from skyfarer.wire.server import GrpcServer, ServerSettings

async def main():
    settings = ServerSettings(host="127.0.0.1", port=0, connections_per_source_max=64)
    doors = dict.fromkeys(BY_PATH, lambda kind, payloads: None)
    server = GrpcServer(settings, doors, None, Registry(), Health())
    await server.start()
    print(server.port, flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    await server.stop(1.0)

asyncio.run(main())
"""


@pytest.fixture
def short_of_files() -> Iterator[Any]:
    """A server that may open 512 files."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, 512))

    process = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=limit,
    )
    assert process.stdin and process.stdout and process.stderr
    with process:
        port = int(process.stdout.readline())
        yield SimpleNamespace(server=SimpleNamespace(port=port))
        process.stdin.close()
        said = process.stderr.read()
        assert b"256 connections at most, not 4000" in said
        assert b"Too many open files" not in said


def test_the_server_takes_as_many_files_as_it_needs_and_may_have() -> None:
    script = f"""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (300, 2000))
{SERVER.replace("connections_per_source_max=64", "connections_max=1000")}
"""
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin and process.stdout and process.stderr
        process.stdout.readline()
        soft, hard = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        process.stdin.close()
        assert process.stderr.read() == b""
    assert 1000 < soft < hard == 2000


def test_a_flood_never_costs_the_server_its_last_file(
    short_of_files: Any, raw: Callable[..., Any]
) -> None:
    early = raw(short_of_files, source=OTHER_SOURCE)
    with ExitStack() as flood:
        for number in range(900):
            hostile = flood.enter_context(socket.socket())
            hostile.bind((f"127.0.0.{3 + number // 300}", 0))
            hostile.setblocking(False)
            hostile.connect_ex(("127.0.0.1", short_of_files.server.port))
        assert ping(early) == b"0"
        assert ping(raw(short_of_files, source=OTHER_SOURCE)) == b"0"
