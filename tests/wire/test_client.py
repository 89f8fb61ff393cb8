"""Our client against grpcio's server and our own, over real sockets."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

import grpc
import pytest

from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.base.units import MIB
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.programs import free_port
from skyfarer.wire.client import ClientSettings, GrpcClient
from skyfarer.wire.rpc import BY_PATH, FORWARD, Kind

COLLECT = FORWARD[Kind.SEGMENT]
KEEP_ALIVE = FORWARD[Kind.INSTANCE_PING]
TIMEOUT_S = 120.0
SMALL_WINDOWS = [("grpc.http2.lookahead_bytes", 1024), ("grpc.http2.bdp_probe", 0)]
# grpcio server whose calls never end, to be killed.
HANGING = """
import grpc, sys, time
from concurrent import futures

class Handler(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.stream_unary_rpc_method_handler(self.hang)

    def hang(self, messages, context):
        print(next(messages).decode(), flush=True)
        time.sleep(60)

server = grpc.server(futures.ThreadPoolExecutor(2), handlers=[Handler()])
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
server.wait_for_termination()
"""


class Upstream(grpc.GenericRpcHandler):
    """A grpcio server that collects messages; `answer` may end a call in another way."""

    def __init__(self, port: int = 0, options: list[tuple[str, Any]] | None = None) -> None:
        self.received: list[bytes] = []
        self.metadata: dict[str, str] = {}
        self.begun = threading.Event()
        self.answer: Callable[[Iterator[bytes], grpc.ServicerContext], bytes] = self._collect
        pool = futures.ThreadPoolExecutor(4)
        self.server = grpc.server(pool, handlers=[self], options=options or [])
        self.port = self.server.add_insecure_port(f"127.0.0.1:{port}")
        self.server.start()

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        self.metadata = {name: str(value) for name, value in details.invocation_metadata}
        return grpc.stream_unary_rpc_method_handler(self._handle)

    def _handle(self, messages: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
        self.begun.set()
        return self.answer(messages, context)

    def _collect(self, messages: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
        self.received.extend(messages)
        return b"commands"

    def stop(self) -> None:
        self.server.stop(0).wait()


@pytest.fixture
def upstream() -> Iterator[Callable[..., Upstream]]:
    started: list[Upstream] = []

    def start(**options: Any) -> Upstream:
        started.append(Upstream(**options))
        return started[-1]

    yield start
    for server in started:
        server.stop()


Clients = Callable[..., Callable[..., bytes]]
Upstreams = Callable[..., Upstream]


def test_a_batch_arrives_whole_and_in_order_through_small_windows(
    upstream: Upstreams, client: Clients
) -> None:
    server = upstream(options=SMALL_WINDOWS)
    messages = [b"%d:" % number + bytes(number % 400) for number in range(10_000)]
    registry = Registry()
    assert client(server.port, registry)(COLLECT, messages) == b"commands"
    assert server.received == messages
    counted = registry.render().splitlines()
    assert f'sender_calls_total{{rpc="{COLLECT.path}",status="OK"}} 1' in counted
    assert f"sender_bytes_total {sum(map(len, messages))}" in counted


def test_views_and_large_and_empty_messages_arrive_as_they_are(
    upstream: Upstreams, client: Clients
) -> None:
    server = upstream()
    messages = [b"", memoryview(bytearray(b"view")), bytes(3 * MIB), b"\x00\xff"]
    client(server.port)(COLLECT, messages)
    assert server.received == [bytes(message) for message in messages]


def test_a_batch_may_be_empty(upstream: Upstreams, client: Clients) -> None:
    server = upstream()
    assert client(server.port)(COLLECT, []) == b"commands"
    assert server.received == []


def test_a_unary_call_takes_exactly_one_message(upstream: Upstreams, client: Clients) -> None:
    server = upstream()
    send = client(server.port)
    assert send(KEEP_ALIVE, [b"ping"]) == b"commands"
    assert server.received == [b"ping"]
    for count in (0, 2):
        with pytest.raises(ValueError, match="one message"):
            send(KEEP_ALIVE, [b"ping"] * count)


def test_metadata_reaches_the_server(upstream: Upstreams, client: Clients) -> None:
    server = upstream()
    client(server.port)(COLLECT, [b"x"], [("Authentication", "token"), ("producer-seq", "q-1 7")])
    assert server.metadata["authentication"] == "token"
    assert server.metadata["producer-seq"] == "q-1 7"
    assert server.metadata["user-agent"].startswith("skyfarer/")


@pytest.mark.parametrize("pair", [("name", "line\nbreak"), ("na me", "x"), ("", "x"), ("n", "é")])
def test_metadata_that_cannot_be_sent_is_refused(
    upstream: Upstreams, client: Clients, pair: tuple[str, str]
) -> None:
    with pytest.raises(PermanentError):
        client(upstream().port)(COLLECT, [b"x"], [pair])


PERMANENT = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.OUT_OF_RANGE,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.DATA_LOSS,
}


@pytest.mark.parametrize("code", [code for code in grpc.StatusCode if code.value[0]])
def test_each_status_is_retryable_or_permanent(
    upstream: Upstreams, client: Clients, code: grpc.StatusCode
) -> None:
    server = upstream()

    def abort(messages: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
        context.abort(code, "wörds %41")

    server.answer = abort
    error = PermanentError if code in PERMANENT else RetryableError
    with pytest.raises(error, match=f"{code.name}: wörds %41"):
        client(server.port)(COLLECT, [b"x"] * 10)


def test_an_ok_before_all_messages_were_sent_is_no_ok(upstream: Upstreams, client: Clients) -> None:
    server = upstream(options=SMALL_WINDOWS)
    server.answer = lambda messages, context: b"early"
    with pytest.raises(RetryableError):
        client(server.port)(COLLECT, [bytes(1 * MIB)] * 20)


def test_calls_may_run_side_by_side(upstream: Upstreams, client: Clients) -> None:
    server = upstream(options=SMALL_WINDOWS)
    send = client(server.port)
    with futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: send(COLLECT, [b"%d" % n + bytes(20_000)] * 10), range(40)))
    assert len(server.received) == 400


def test_nobody_listening_is_retryable(upstream: Upstreams, client: Clients) -> None:
    server = upstream()
    server.stop()
    with pytest.raises(RetryableError, match="UNAVAILABLE"):
        client(server.port)(COLLECT, [b"x"])


def test_a_server_killed_in_a_call_is_retryable(client: Clients) -> None:
    with subprocess.Popen([sys.executable, "-c", HANGING], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        send = client(int(process.stdout.readline()))
        with futures.ThreadPoolExecutor(1) as pool:
            call = pool.submit(send, COLLECT, [b"begun"])
            assert process.stdout.readline() == b"begun\n"
            process.send_signal(signal.SIGKILL)
            with pytest.raises(RetryableError, match="UNAVAILABLE"):
                call.result(TIMEOUT_S)


def test_the_next_call_after_a_restart_connects_again(upstream: Upstreams, client: Clients) -> None:
    first = upstream(port=free_port())
    send = client(first.port)
    send(COLLECT, [b"before"])
    first.stop()
    with pytest.raises(RetryableError):
        send(COLLECT, [b"down"])
    second = upstream(port=first.port)
    send(COLLECT, [b"after"])
    assert second.received == [b"after"]


def test_a_call_without_an_answer_ends_in_time_and_the_next_one_works(
    upstream: Upstreams, client: Clients
) -> None:
    server = upstream()
    release = threading.Event()
    collect, server.answer = server.answer, lambda messages, context: bytes(release.wait(TIMEOUT_S))
    send = client(server.port, call_timeout_s=2.0)
    with pytest.raises(RetryableError, match="DEADLINE_EXCEEDED"):
        send(COLLECT, [b"x"])
    release.set()
    server.answer = collect
    send(COLLECT, [b"next"])
    assert server.received == [b"next"]


def test_a_call_in_flight_ends_well_though_the_server_is_going_away(
    upstream: Upstreams, client: Clients
) -> None:
    server = upstream()
    release = threading.Event()

    def slow(messages: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
        server.received.extend(messages)
        release.wait(TIMEOUT_S)
        return b"late"

    server.answer = slow
    send = client(server.port)
    with futures.ThreadPoolExecutor(1) as pool:
        call = pool.submit(send, COLLECT, [b"in flight"])
        assert server.begun.wait(TIMEOUT_S)
        stopped = server.server.stop(TIMEOUT_S)
        with pytest.raises(RetryableError):
            send(COLLECT, [b"late"])
        release.set()
        assert call.result(TIMEOUT_S) == b"late"
        stopped.wait(TIMEOUT_S)


def test_connections_that_the_server_retires_cost_no_message(
    upstream: Upstreams, client: Clients
) -> None:
    ages = [("grpc.max_connection_age_ms", 50), ("grpc.max_connection_age_grace_ms", 5000)]
    server = upstream(options=ages)
    send = client(server.port)
    done = 0
    while done < 300:
        try:
            send(COLLECT, [b"%d" % done])
            done += 1
        except RetryableError as error:
            assert "UNAVAILABLE" in str(error)
    assert [int(message) for message in dict.fromkeys(server.received)] == list(range(300))


def test_a_send_when_not_running_is_retryable(loop_thread: Any) -> None:
    client = GrpcClient(ClientSettings("127.0.0.1", 1))
    loop_thread.run(client.stop(1.0))
    with pytest.raises(RetryableError):
        loop_thread.run(client.send(COLLECT, [b"x"]))


def test_our_client_and_our_server_understand_each_other(
    serve: Callable[..., Any], client: Clients
) -> None:
    serving = serve()
    send = client(serving.server.port)
    messages = [b"%d:" % number + bytes(1000) for number in range(10_000)]
    assert send(COLLECT, messages) == b""
    assert send(KEEP_ALIVE, [b"ping"]) == b""
    assert serving.kept(Kind.SEGMENT) == messages
    assert serving.kept(Kind.INSTANCE_PING) == [b"ping"]
    with pytest.raises(PermanentError, match="UNIMPLEMENTED"):
        send(BY_PATH["/RemoteService/call"], [bytes(1000)] * 10_000)
    serving.fault = lambda payloads: (_ for _ in ()).throw(RetryableError("queue is full"))
    with pytest.raises(RetryableError, match="RESOURCE_EXHAUSTED: queue is full"):
        send(COLLECT, messages)
    serving.fault = None
    send(COLLECT, [b"again"])
    assert serving.kept(Kind.SEGMENT)[-1] == b"again"
