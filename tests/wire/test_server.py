"""grpcio's client against our server, over real sockets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

import grpc
import pytest

from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.base.units import KIB, MIB
from skyfarer.wire.rpc import Kind

COLLECT = "/skywalking.v3.TraceSegmentReportService/collect"
COLLECT_OLD = "/TraceSegmentReportService/collect"
IN_SYNC = "/skywalking.v3.TraceSegmentReportService/collectInSync"
PROPERTIES = "/skywalking.v3.ManagementService/reportInstanceProperties"
KEEP_ALIVE = "/skywalking.v3.ManagementService/keepAlive"
CONFIGURATIONS = "/skywalking.v3.ConfigurationDiscoveryService/fetchConfigurations"
REMOTE = "/RemoteService/call"
CHECK = "/grpc.health.v1.Health/Check"
WATCH = "/grpc.health.v1.Health/Watch"
TIMEOUT_S = 120.0

Serve = Callable[..., Any]


class Client:
    def __init__(self, address: str, **options: Any) -> None:
        self.channel = grpc.insecure_channel(
            address, options=[("grpc.use_local_subchannel_pool", 1), *options.pop("options", [])]
        )
        self.options = {"timeout": TIMEOUT_S, **options}

    def unary(self, path: str, message: bytes, **options: Any) -> bytes:
        return bytes(self.channel.unary_unary(path)(message, **{**self.options, **options}))

    def stream(self, path: str, messages: Iterable[bytes], **options: Any) -> bytes:
        call = self.channel.stream_unary(path)
        return bytes(call(iter(messages), **{**self.options, **options}))


@pytest.fixture
def connect() -> Iterator[Callable[..., Client]]:
    clients: list[Client] = []

    def open_client(address: str, **options: Any) -> Client:
        clients.append(Client(address, **options))
        return clients[-1]

    yield open_client
    for client in clients:
        client.channel.close()


@pytest.fixture
def pair(serve: Serve, connect: Callable[..., Client]) -> tuple[Any, Client]:
    serving = serve()
    return serving, connect(serving.address)


def status_of(caught: pytest.ExceptionInfo[grpc.RpcError]) -> grpc.StatusCode:
    code = caught.value.code()
    assert isinstance(code, grpc.StatusCode)
    return code


def test_a_unary_message_is_kept_before_it_is_answered(pair: tuple[Any, Client]) -> None:
    serving, client = pair
    assert client.unary(KEEP_ALIVE, b"ping") == b""
    assert client.unary(PROPERTIES, b"\x00\xff\n") == b""
    assert serving.appends == [
        (Kind.INSTANCE_PING, [b"ping"]),
        (Kind.INSTANCE_PROPERTIES, [b"\x00\xff\n"]),
    ]
    assert serving.counted(f'receiver_calls_total{{rpc="{KEEP_ALIVE}",status="OK"}} 1')
    assert serving.counted(f'receiver_messages_total{{rpc="{KEEP_ALIVE}"}} 1')


@pytest.mark.parametrize("count", [0, 1, 5000])
def test_a_stream_is_kept_whole_and_in_order(pair: tuple[Any, Client], count: int) -> None:
    serving, client = pair
    messages = [b"%d:" % number + bytes(number % 300) for number in range(count)]
    assert client.stream(COLLECT, messages) == b""
    assert serving.kept(Kind.SEGMENT) == messages


def test_the_name_without_a_package_is_kept_the_same_way(pair: tuple[Any, Client]) -> None:
    serving, client = pair
    client.stream(COLLECT_OLD, [b"segment"])
    assert serving.kept(Kind.SEGMENT) == [b"segment"]


def test_messages_that_span_frames_and_windows_arrive_whole(pair: tuple[Any, Client]) -> None:
    serving, client = pair
    sizes = [0, 1, 16 * KIB - 5, 16 * KIB, 40_000, 3 * MIB, 10, 3 * MIB]
    messages = [bytes([number]) * size for number, size in enumerate(sizes)]
    client.stream(COLLECT, messages)
    assert serving.kept(Kind.SEGMENT) == messages
    assert serving.server._receiver.unfinished.bytes == 0


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_compressed_messages_are_kept_inflated(
    pair: tuple[Any, Client], compression: grpc.Compression
) -> None:
    serving, client = pair
    messages = [b"segment " * 1000, b"x", b"log " * 500_000]
    client.stream(COLLECT, messages, compression=compression)
    client.unary(KEEP_ALIVE, b"ping " * 100, compression=compression)
    assert serving.kept(Kind.SEGMENT) == messages
    assert serving.kept(Kind.INSTANCE_PING) == [b"ping " * 100]


def test_a_collection_is_kept_as_its_elements(pair: tuple[Any, Client]) -> None:
    serving, client = pair
    client.unary(IN_SYNC, b"\x0a\x03one\x0a\x03two")
    assert serving.appends == [(Kind.SEGMENT, [b"one", b"two"])]
    assert serving.counted(f'receiver_messages_total{{rpc="{IN_SYNC}"}} 2')


def test_a_malformed_collection_is_kept_whole(pair: tuple[Any, Client]) -> None:
    serving, client = pair
    client.unary(IN_SYNC, b"\x0a\x7fcut")
    assert serving.appends == [(Kind.SEGMENT, [b"\x0a\x7fcut"])]


def test_an_empty_collection_is_answered(pair: tuple[Any, Client]) -> None:
    serving, client = pair
    assert client.unary(IN_SYNC, b"") == b""
    assert serving.appends == []


def test_an_oversize_message_is_refused_and_the_connection_goes_on(
    serve: Serve, connect: Callable[..., Client]
) -> None:
    serving = serve(message_bytes_max=1 * MIB)
    client = connect(serving.address)
    for _ in range(3):
        with pytest.raises(grpc.RpcError) as caught:
            client.stream(COLLECT, [b"first", bytes(1 * MIB + 1), bytes(5 * MIB)])
        assert status_of(caught) is grpc.StatusCode.RESOURCE_EXHAUSTED
    client.stream(COLLECT, [bytes(1 * MIB)])
    assert serving.kept(Kind.SEGMENT)[-1] == bytes(1 * MIB)
    assert serving.server._receiver.unfinished.bytes == 0


def test_unfinished_messages_are_bounded_over_all_calls(
    serve: Serve, connect: Callable[..., Client]
) -> None:
    serving = serve(message_bytes_max=4 * MIB, unfinished_bytes_max=1 * MIB)
    client = connect(serving.address)
    with pytest.raises(grpc.RpcError) as caught:
        client.stream(COLLECT, [bytes(2 * MIB)])
    assert status_of(caught) is grpc.StatusCode.RESOURCE_EXHAUSTED
    client.stream(COLLECT, [bytes(900 * KIB)])
    assert serving.kept(Kind.SEGMENT) == [bytes(900 * KIB)]


@pytest.mark.parametrize("path", ["/no.such.Service/method", CONFIGURATIONS, REMOTE, WATCH])
def test_a_method_that_is_unknown_or_not_served_is_unimplemented(
    pair: tuple[Any, Client], path: str
) -> None:
    serving, client = pair
    with pytest.raises(grpc.RpcError) as caught:
        client.stream(path, [bytes(100)] * 100)
    assert status_of(caught) is grpc.StatusCode.UNIMPLEMENTED
    client.unary(KEEP_ALIVE, b"ping")
    assert serving.appends == [(Kind.INSTANCE_PING, [b"ping"])]


def test_unknown_paths_share_one_label(pair: tuple[Any, Client]) -> None:
    serving, client = pair
    for number in range(5):
        with pytest.raises(grpc.RpcError):
            client.unary(f"/junk/{number}", b"")
    assert serving.counted('receiver_calls_total{rpc="unknown",status="UNIMPLEMENTED"} 5')


@pytest.mark.parametrize("count", [0, 2])
def test_a_unary_call_with_not_one_message_is_refused(pair: tuple[Any, Client], count: int) -> None:
    _, client = pair
    with pytest.raises(grpc.RpcError) as caught:
        client.stream(KEEP_ALIVE, [b"ping"] * count)
    assert status_of(caught) is grpc.StatusCode.INTERNAL


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (RetryableError("queue is full: ünïcode %41\n"), grpc.StatusCode.RESOURCE_EXHAUSTED, True),
        (PermanentError("record too large"), grpc.StatusCode.INVALID_ARGUMENT, True),
        (OSError("secret path"), grpc.StatusCode.INTERNAL, False),
    ],
)
def test_a_failed_append_is_told_to_the_caller(
    pair: tuple[Any, Client], error: Exception, status: grpc.StatusCode, text: bool
) -> None:
    serving, client = pair

    def fault(payloads: Sequence[bytes]) -> None:
        raise error

    serving.fault = fault
    with pytest.raises(grpc.RpcError) as caught:
        client.stream(COLLECT, [b"segment"] * 3)
    assert status_of(caught) is status
    assert (caught.value.details() == str(error)) is text
    serving.fault = None
    client.stream(COLLECT, [b"after"])
    assert serving.kept(Kind.SEGMENT) == [b"after"]


def test_a_failed_append_ends_a_stream_that_is_still_being_sent(pair: tuple[Any, Client]) -> None:
    serving, client = pair

    def fault(payloads: Sequence[bytes]) -> None:
        raise RetryableError("queue is full")

    serving.fault = fault
    answered = threading.Event()

    def endless() -> Iterator[bytes]:
        while not answered.is_set():
            yield bytes(1000)

    with pytest.raises(grpc.RpcError) as caught:
        client.stream(COLLECT, endless())
    answered.set()
    assert status_of(caught) is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_the_deadline_ends_a_call_that_stays_open(pair: tuple[Any, Client]) -> None:
    serving, client = pair
    release = threading.Event()

    def slow() -> Iterator[bytes]:
        yield b"first"
        release.wait(TIMEOUT_S)

    with pytest.raises(grpc.RpcError) as caught:
        client.stream(COLLECT, slow(), timeout=2.0)
    release.set()
    assert status_of(caught) is grpc.StatusCode.DEADLINE_EXCEEDED
    assert serving.kept(Kind.SEGMENT) == [b"first"]


def test_health_is_answered_from_the_parts(pair: tuple[Any, Client]) -> None:
    serving, client = pair
    assert client.unary(CHECK, b"") == b"\x08\x01"
    serving.health.set("queue", False, "disk full")
    assert client.unary(CHECK, b"\x0a\x04name") == b"\x08\x02"
    serving.health.set("queue", True)
    assert client.unary(CHECK, b"") == b"\x08\x01"


def test_many_calls_at_once_on_one_connection(pair: tuple[Any, Client]) -> None:
    serving, client = pair

    def send(number: int) -> None:
        if number % 3 == 0:
            client.unary(KEEP_ALIVE, b"%d" % number)
        else:
            client.stream(COLLECT, [b"%d.%d" % (number, part) for part in range(50)])

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(send, range(300)))
    expected = {b"%d.%d" % (n, part) for n in range(300) if n % 3 for part in range(50)}
    assert len(serving.kept(Kind.SEGMENT)) == len(expected)
    assert set(serving.kept(Kind.SEGMENT)) == expected
    assert len(serving.kept(Kind.INSTANCE_PING)) == 100
    assert serving.counted("receiver_connections 1")


def test_more_calls_than_streams_wait_their_turn(
    serve: Serve, connect: Callable[..., Client]
) -> None:
    serving = serve(streams_max=2)
    client = connect(serving.address)
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda number: client.stream(COLLECT, [b"%d" % number]), range(100)))
    assert len(serving.kept(Kind.SEGMENT)) == 100
    assert serving.counted("receiver_connections 1")


def test_what_a_cancelled_call_had_sent_stays_kept(pair: tuple[Any, Client]) -> None:
    serving, client = pair
    release = threading.Event()
    appended: SimpleQueue[bytes] = SimpleQueue()

    def note(payloads: Sequence[bytes]) -> None:
        for one in payloads:
            appended.put(bytes(one))

    serving.fault = note

    def slow() -> Iterator[bytes]:
        yield from [b"one", b"two"]
        release.wait(TIMEOUT_S)

    call = client.channel.stream_unary(COLLECT).future(slow())
    assert [appended.get(timeout=TIMEOUT_S) for _ in range(2)] == [b"one", b"two"]
    client.unary(KEEP_ALIVE, b"behind the messages")
    call.cancel()
    release.set()
    client.unary(KEEP_ALIVE, b"behind the reset")
    assert serving.kept(Kind.SEGMENT) == [b"one", b"two"]
    assert serving.counted(f'receiver_calls_total{{rpc="{COLLECT}",status="CANCELLED"}} 1')


def test_a_graceful_stop_lets_a_call_in_flight_end_and_refuses_later_ones(
    pair: tuple[Any, Client],
) -> None:
    serving, client = pair
    begun, release = threading.Event(), threading.Event()
    serving.fault = lambda payloads: begun.set()

    def slow() -> Iterator[bytes]:
        yield b"before"
        release.wait(TIMEOUT_S)
        yield b"after"

    call = client.channel.stream_unary(COLLECT).future(slow(), timeout=TIMEOUT_S)
    assert begun.wait(TIMEOUT_S)
    with ThreadPoolExecutor(1) as pool:
        stopping = pool.submit(serving.stop, TIMEOUT_S)
        while not serving.server._receiver._stopping:
            pass
        with pytest.raises(grpc.RpcError) as caught:
            client.unary(KEEP_ALIVE, b"late")
        assert status_of(caught) is grpc.StatusCode.UNAVAILABLE
        release.set()
        assert call.result(TIMEOUT_S) == b""
        stopping.result(TIMEOUT_S)
    assert serving.kept(Kind.SEGMENT) == [b"before", b"after"]


def test_stop_cuts_off_calls_that_outlive_it_and_is_safe_twice(pair: tuple[Any, Client]) -> None:
    serving, client = pair
    begun, release = threading.Event(), threading.Event()
    serving.fault = lambda payloads: begun.set()

    def slow() -> Iterator[bytes]:
        yield b"first"
        release.wait(TIMEOUT_S)

    call = client.channel.stream_unary(COLLECT).future(slow())
    assert begun.wait(TIMEOUT_S)
    serving.stop(timeout_s=0.05)
    serving.stop(timeout_s=0.05)
    assert call.exception(TIMEOUT_S).code() is grpc.StatusCode.UNAVAILABLE
    release.set()
    assert serving.counted("receiver_connections 0")


def test_connections_beyond_the_bound_are_refused_and_counted(
    serve: Serve, connect: Callable[..., Client]
) -> None:
    serving = serve(connections_max=1)
    first = connect(serving.address)
    first.unary(KEEP_ALIVE, b"first")
    with pytest.raises(grpc.RpcError) as caught:
        connect(serving.address).unary(KEEP_ALIVE, b"second")
    assert status_of(caught) is grpc.StatusCode.UNAVAILABLE
    first.unary(KEEP_ALIVE, b"first still")
    lines = serving.registry.render()
    assert 'receiver_connections_refused_total{reason="too_many"}' in lines


def test_two_servers_share_a_port(serve: Serve, connect: Callable[..., Client]) -> None:
    one = serve(reuse_port=True)
    two = serve(reuse_port=True, port=one.server.port)
    for number in range(20):
        connect(one.address).unary(KEEP_ALIVE, b"%d" % number)
    assert len(one.kept(Kind.INSTANCE_PING)) + len(two.kept(Kind.INSTANCE_PING)) == 20
