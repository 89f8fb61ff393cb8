"""grpcio's client, our server, our client, grpcio's server: calls that are passed on."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from typing import Any

import grpc
import pytest
from h2.settings import SettingCodes

from skyfarer.base.errors import RetryableError
from skyfarer.base.units import KIB, MIB
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.programs import eventually, free_port
from skyfarer.wire.client import ClientSettings, GrpcClient
from skyfarer.wire.framing import prefixed
from skyfarer.wire.relay import ClientRelay, Conversation, Metadata
from skyfarer.wire.rpc import RPCS, Handling, Kind, Rpc, Streaming

CONFIGURATIONS = "/skywalking.v3.ConfigurationDiscoveryService/fetchConfigurations"
KEEP_ALIVE = "/skywalking.v3.ManagementService/keepAlive"
PROFILER = "/skywalking.v10.AsyncProfilerTask/collect"
GO_PROFILE = "/skywalking.v3.ProfileTask/goProfileReport"
ASKED = tuple(rpc for rpc in RPCS if rpc.handling is Handling.ASK)
TIMEOUT_S = 30.0
WINDOW_AND_A_MESSAGE = 1 * MIB + 128 * KIB

Answer = Callable[[Iterator[bytes], grpc.ServicerContext], Iterator[bytes]]


def until(holds: Callable[[], bool]) -> None:
    eventually(holds, TIMEOUT_S, "the state this test waits for")


class Backend(grpc.GenericRpcHandler):
    """A grpcio server; `answer` makes the answers to a call's messages, however it streams."""

    def __init__(self) -> None:
        self.answer: Answer = echo
        self.path = ""
        self.metadata: dict[str, str] = {}
        self.begun = threading.Event()
        self.server = grpc.server(futures.ThreadPoolExecutor(64), handlers=[self])
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        self.path = details.method
        self.metadata = {name: str(value) for name, value in details.invocation_metadata}
        return grpc.stream_stream_rpc_method_handler(self._handle)

    def _handle(self, messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        self.begun.set()
        yield from self.answer(messages, context)


def echo(messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
    """One answer to the whole call."""
    yield b"commands for " + b"".join(messages)


class Rig:
    """Our server between `channel` and `backend`; `client` is what it asks with."""

    def __init__(self, serve: Callable[..., Any], thread: Any, port: int, **settings: Any) -> None:
        self.thread = thread
        self.registry = Registry()
        call_timeout_s = settings.pop("call_timeout_s", TIMEOUT_S)
        token = settings.pop("token", ())
        self.client = GrpcClient(
            ClientSettings("127.0.0.1", port, call_timeout_s=call_timeout_s), self.registry
        )
        thread.run(self.client.start())
        relay = ClientRelay(lambda: self.client, lambda: token)
        self.serving = serve(relay=relay, **settings)
        self.channel = grpc.insecure_channel(self.serving.address)

    def unary(self, path: str, message: bytes, **options: Any) -> bytes:
        return bytes(self.channel.unary_unary(path)(message, **{"timeout": TIMEOUT_S, **options}))

    def held(self) -> tuple[int, int, int]:
        receiver = self.serving.server._receiver
        return receiver.relayed.calls, receiver.relayed.bytes, receiver.unfinished.bytes

    def close(self) -> None:
        self.channel.close()
        until(lambda: self.held() == (0, 0, 0))
        self.thread.run(self.client.stop(1.0))


@pytest.fixture
def backend() -> Iterator[Backend]:
    made = Backend()
    yield made
    made.server.stop(0).wait()


@pytest.fixture
def rig(
    serve: Callable[..., Any], loop_thread: Any, backend: Backend
) -> Iterator[Callable[..., Rig]]:
    made: list[Rig] = []

    def make(**settings: Any) -> Rig:
        made.append(Rig(serve, loop_thread, settings.pop("port", backend.port), **settings))
        return made[-1]

    yield make
    for one in made:
        one.close()


Rigs = Callable[..., Rig]


def status_of(caught: pytest.ExceptionInfo[grpc.RpcError]) -> tuple[grpc.StatusCode, str]:
    code = caught.value.code()
    assert isinstance(code, grpc.StatusCode)
    return code, caught.value.details()


def call(rig: Rig, rpc: Rpc, messages: Sequence[bytes]) -> bytes:
    if rpc.streaming is Streaming.UNARY:
        return rig.unary(rpc.path, messages[0])
    if rpc.streaming is Streaming.CLIENT_STREAM:
        return bytes(rig.channel.stream_unary(rpc.path)(iter(messages), timeout=TIMEOUT_S))
    answers = rig.channel.stream_stream(rpc.path)(iter(messages), timeout=TIMEOUT_S)
    return b"".join(answers)


def test_every_asked_call_returns_the_upstreams_answer_and_keeps_nothing(
    rig: Rigs, backend: Backend
) -> None:
    r = rig()
    for rpc in ASKED:
        messages = [b"one"] if rpc.streaming is Streaming.UNARY else [b"one", b"two", b""]
        assert call(r, rpc, messages) == b"commands for " + b"".join(messages), rpc.path
        assert backend.path == rpc.forward_path
        assert r.serving.counted(f'receiver_calls_total{{rpc="{rpc.path}",status="OK"}} 1')
    assert r.serving.appends == []
    assert len(ASKED) == 20


def test_without_a_relay_asked_calls_are_unimplemented(serve: Callable[..., Any]) -> None:
    with grpc.insecure_channel(serve().address) as channel:
        for rpc in ASKED:
            with pytest.raises(grpc.RpcError) as caught:
                channel.unary_unary(rpc.path)(b"", timeout=TIMEOUT_S)
            assert status_of(caught)[0] is grpc.StatusCode.UNIMPLEMENTED, rpc.path


def test_the_agents_own_metadata_reaches_the_upstream_and_the_hops_does_not(
    rig: Rigs, backend: Backend
) -> None:
    pairs = (
        ("authentication", "agent's"),
        ("agent-version", "9.7.0"),
        ("trace-bin", b"\x00\xff"),
        ("x.y_z", "kept"),
    )
    rig(token=[("Authentication", "ours"), ("satellite", "s1")]).unary(
        CONFIGURATIONS, b"", metadata=pairs
    )
    assert backend.metadata["authentication"] == "agent's"
    assert backend.metadata["agent-version"] == "9.7.0"
    assert backend.metadata["trace-bin"] == str(b"\x00\xff")
    assert backend.metadata["x.y_z"] == "kept"
    assert backend.metadata["satellite"] == "s1"
    assert backend.metadata["user-agent"].startswith("skyfarer/")


def test_our_token_is_sent_for_an_agent_that_has_none(rig: Rigs, backend: Backend) -> None:
    rig(token=[("Authentication", "ours")]).unary(CONFIGURATIONS, b"")
    assert backend.metadata["authentication"] == "ours"


@pytest.mark.parametrize("code", [code for code in grpc.StatusCode if code.value[0]])
@pytest.mark.parametrize("path", [CONFIGURATIONS, PROFILER])
def test_the_upstreams_status_and_message_come_back(
    rig: Rigs, backend: Backend, path: str, code: grpc.StatusCode
) -> None:
    def abort(messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        context.abort(code, "wörds %41")
        yield b""

    backend.answer = abort
    r = rig()
    with pytest.raises(grpc.RpcError) as caught:
        if path == PROFILER:
            list(r.channel.stream_stream(path)(iter([b"x"]), timeout=TIMEOUT_S))
        else:
            r.unary(path, b"x")
    assert status_of(caught) == (code, "wörds %41")
    assert f'rpc="{path}",status="{code.name}"' in r.registry.render()


def test_the_agents_deadline_is_the_upstreams_too(rig: Rigs, backend: Backend) -> None:
    left: list[float] = []
    release = threading.Event()

    def slow(messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        left.append(context.time_remaining())
        context.add_callback(release.set)
        release.wait(TIMEOUT_S)
        yield b"late"

    backend.answer = slow
    r = rig()
    with pytest.raises(grpc.RpcError) as caught:
        r.unary(CONFIGURATIONS, b"x", timeout=0.5)
    assert status_of(caught)[0] is grpc.StatusCode.DEADLINE_EXCEEDED
    assert left[0] <= 0.5
    assert release.wait(TIMEOUT_S)
    backend.answer = echo
    assert r.unary(CONFIGURATIONS, b"next") == b"commands for next"


def test_an_upstream_that_never_answers_ends_by_our_own_timeout(
    rig: Rigs, backend: Backend
) -> None:
    release = threading.Event()

    def hang(messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        release.wait(TIMEOUT_S)
        yield b""

    backend.answer = hang
    with pytest.raises(grpc.RpcError) as caught:
        rig(call_timeout_s=0.3).unary(CONFIGURATIONS, b"x")
    release.set()
    assert status_of(caught)[0] is grpc.StatusCode.DEADLINE_EXCEEDED


@pytest.mark.parametrize("path", [CONFIGURATIONS, PROFILER])
def test_an_upstream_that_is_not_there_is_unavailable(rig: Rigs, path: str) -> None:
    r = rig(port=free_port())
    with pytest.raises(grpc.RpcError) as caught:
        list(r.channel.stream_stream(path)(iter([b"x"]), timeout=TIMEOUT_S))
    assert status_of(caught)[0] is grpc.StatusCode.UNAVAILABLE
    assert r.unary(KEEP_ALIVE, b"ping") == b""


def test_a_slow_upstream_holds_up_nobody_else(rig: Rigs, backend: Backend) -> None:
    release = threading.Event()

    def slow(messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        asked = b"".join(messages)
        if asked == b"slow":
            release.wait(TIMEOUT_S)
        yield asked

    backend.answer = slow
    r = rig()
    ask = r.channel.unary_unary(CONFIGURATIONS)
    waiting = [ask.future(b"slow", timeout=TIMEOUT_S) for _ in range(20)]
    until(lambda: r.held()[0] == 20)
    assert r.serving.counted("receiver_relayed_calls 20")
    assert r.unary(KEEP_ALIVE, b"ping") == b""
    assert r.unary(CONFIGURATIONS, b"quick") == b"quick"
    assert not any(one.done() for one in waiting)
    release.set()
    assert [one.result() for one in waiting] == [b"slow"] * 20


def test_more_calls_than_may_wait_are_refused_and_the_rest_is_answered(
    rig: Rigs, backend: Backend
) -> None:
    release = threading.Event()

    def slow(messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        release.wait(TIMEOUT_S)
        yield b"late"

    backend.answer = slow
    r = rig(relayed_calls_max=3)
    ask = r.channel.unary_unary(CONFIGURATIONS)
    waiting = [ask.future(b"x", timeout=TIMEOUT_S) for _ in range(3)]
    until(lambda: r.held()[0] == 3)
    for path in (CONFIGURATIONS, PROFILER):
        with pytest.raises(grpc.RpcError) as caught:
            list(r.channel.stream_stream(path)(iter([b"x"]), timeout=TIMEOUT_S))
        assert status_of(caught)[0] is grpc.StatusCode.RESOURCE_EXHAUSTED
    release.set()
    assert [one.result() for one in waiting] == [b"late"] * 3
    assert r.unary(CONFIGURATIONS, b"x") == b"late"


def test_more_bytes_than_may_wait_are_refused(rig: Rigs, backend: Backend) -> None:
    r = rig(relayed_bytes_max=100 * KIB, message_bytes_max=1 * MIB)
    with pytest.raises(grpc.RpcError) as caught:
        r.unary(CONFIGURATIONS, bytes(101 * KIB))
    assert status_of(caught)[0] is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert len(r.unary(CONFIGURATIONS, bytes(40 * KIB))) == len(b"commands for ") + 40 * KIB
    with pytest.raises(grpc.RpcError) as caught:
        r.unary(CONFIGURATIONS, bytes(60 * KIB))
    assert status_of(caught)[0] is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_an_agent_that_gives_up_ends_the_call_upstream(rig: Rigs, backend: Backend) -> None:
    ended = threading.Event()

    def hang(messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        if not context.add_callback(ended.set):  # it has ended before it could be asked for
            ended.set()
        ended.wait(TIMEOUT_S)
        yield b""

    backend.answer = hang
    r = rig()
    for streaming in (False, True):
        ended.clear()
        backend.begun.clear()
        if streaming:
            one: Any = r.channel.stream_stream(PROFILER)(iter([b"x"]), timeout=TIMEOUT_S)
        else:
            one = r.channel.unary_unary(CONFIGURATIONS).future(b"x", timeout=TIMEOUT_S)
        assert backend.begun.wait(TIMEOUT_S)
        one.cancel()
        assert ended.wait(TIMEOUT_S)


def test_a_large_answer_arrives_whole_through_small_windows(rig: Rigs, backend: Backend) -> None:
    answer = bytes(range(256)) * 12 * KIB
    backend.answer = lambda messages, context: iter([answer])
    r = rig()
    options = [("grpc.http2.lookahead_bytes", 1024), ("grpc.http2.bdp_probe", 0)]
    with grpc.insecure_channel(r.serving.address, options=options) as channel:
        assert channel.unary_unary(CONFIGURATIONS)(b"", timeout=TIMEOUT_S) == answer


def test_a_message_must_be_one_and_whole_before_anybody_is_asked(
    rig: Rigs, backend: Backend
) -> None:
    r = rig()
    for messages in ([], [b"one", b"two"]):
        with pytest.raises(grpc.RpcError) as caught:
            r.channel.stream_unary(CONFIGURATIONS)(iter(messages), timeout=TIMEOUT_S)
        assert status_of(caught)[0] is grpc.StatusCode.INTERNAL
    assert not backend.begun.is_set()


def test_a_relay_that_fails_in_our_own_words_is_unavailable_and_a_defect_is_internal(
    serve: Callable[..., Any],
) -> None:
    class Broken:
        error: Exception = RetryableError("no upstream is known yet")

        async def ask(self, rpc: Rpc, message: bytes, metadata: Metadata) -> bytes:
            raise self.error

        def converse(self, rpc: Rpc, metadata: Metadata) -> Conversation:
            return Talk()

    class Talk:
        async def send(self, message: bytes) -> None:
            raise Broken.error

        async def end(self) -> None: ...

        async def receive(self) -> bytes | None:
            await asyncio.sleep(0.05)
            raise Broken.error

        def cancel(self) -> None: ...

    with grpc.insecure_channel(serve(relay=Broken()).address) as channel:
        for path in (CONFIGURATIONS, PROFILER):
            Broken.error = RetryableError("no upstream is known yet")
            with pytest.raises(grpc.RpcError) as caught:
                list(channel.stream_stream(path)(iter([b"x"]), timeout=TIMEOUT_S))
            expected = (grpc.StatusCode.UNAVAILABLE, "no upstream is known yet")
            assert status_of(caught) == expected
            Broken.error = KeyError("a defect")
            with pytest.raises(grpc.RpcError) as caught:
                list(channel.stream_stream(path)(iter([b"x"]), timeout=TIMEOUT_S))
            assert status_of(caught)[0] is grpc.StatusCode.INTERNAL


def test_a_conversation_goes_both_ways_while_it_is_open(rig: Rigs, backend: Backend) -> None:
    backend.answer = lambda messages, context: (b"to " + message for message in messages)
    outbox: queue.Queue[bytes | None] = queue.Queue()
    answers = rig().channel.stream_stream(PROFILER)(iter(outbox.get, None), timeout=TIMEOUT_S)
    for number in range(50):
        outbox.put(b"%d" % number)
        assert next(answers) == b"to %d" % number
    outbox.put(None)
    assert list(answers) == []


def test_an_upstream_may_answer_before_it_is_asked_and_end_before_it_has_heard_all(
    rig: Rigs, backend: Backend
) -> None:
    backend.answer = lambda messages, context: iter([b"too large", b"go away"])
    release = threading.Event()

    def endless() -> Iterator[bytes]:
        while not release.wait(0.01):
            yield bytes(10 * KIB)

    answers = rig().channel.stream_stream(PROFILER)(endless(), timeout=TIMEOUT_S)
    assert list(answers) == [b"too large", b"go away"]
    release.set()


def test_a_file_goes_through_in_order_and_the_upstreams_pace_is_the_agents(
    rig: Rigs, backend: Backend
) -> None:
    """What the upstream has not read is held by the agent, but for windows' worth of it."""
    may_read = threading.Event()
    received: list[bytes] = []

    def read_late(messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        may_read.wait(TIMEOUT_S)
        received.extend(messages)
        yield b"%d" % len(received)

    backend.answer = read_late
    r = rig()
    chunks = [b"%d:" % number + bytes(64 * KIB) for number in range(400)]
    taken = 0

    def upload() -> Iterator[bytes]:
        nonlocal taken
        for chunk in chunks:
            taken += 1
            yield chunk

    answers = r.channel.stream_stream(PROFILER)(upload(), timeout=TIMEOUT_S)
    stalled_at = -1
    while taken != stalled_at:
        stalled_at = taken
        time.sleep(0.5)
    assert taken < len(chunks)
    assert r.held()[1] <= WINDOW_AND_A_MESSAGE
    assert r.unary(KEEP_ALIVE, b"ping" * 100_000) == b""
    may_read.set()
    assert list(answers) == [b"400"]
    assert received == chunks


def test_an_agent_that_does_not_read_holds_up_the_upstream_and_not_our_memory(
    rig: Rigs, backend: Backend
) -> None:
    sent = 0

    def pour(messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        nonlocal sent
        for _ in range(400):
            sent += 1
            yield bytes(64 * KIB)

    backend.answer = pour
    r = rig()
    options = [("grpc.http2.lookahead_bytes", 1024), ("grpc.http2.bdp_probe", 0)]
    with grpc.insecure_channel(r.serving.address, options=options) as channel:
        answers = channel.stream_stream(PROFILER)(iter([b"x"]), timeout=TIMEOUT_S)
        assert len(next(answers)) == 64 * KIB
        stalled_at = -1
        while sent != stalled_at:
            stalled_at = sent
            time.sleep(0.5)
        assert sent < 400
        assert r.held()[1] <= WINDOW_AND_A_MESSAGE
        assert r.unary(KEEP_ALIVE, b"ping") == b""
        assert sum(1 for _ in answers) == 399


def test_a_peer_that_gives_windows_and_does_not_read_holds_up_the_upstream_too(
    rig: Rigs, backend: Backend, raw: Callable[..., Any]
) -> None:
    sent = 0

    def pour(messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        nonlocal sent
        for _ in range(1000):
            sent += 1
            yield bytes(64 * KIB)

    backend.answer = pour
    r = rig()
    client = raw(r.serving, {SettingCodes.INITIAL_WINDOW_SIZE: 2**30})
    client.h2.increment_flow_control_window(2**30)
    client.send(client.open(PROFILER), prefixed(b"x"))
    stalled_at = -1
    while sent != stalled_at:
        stalled_at = sent
        time.sleep(0.5)
    assert 0 < sent < 1000
    assert r.held()[1] <= WINDOW_AND_A_MESSAGE
    assert r.unary(KEEP_ALIVE, b"ping") == b""
    client.socket.close()


def test_a_message_larger_than_the_window_passes(rig: Rigs, backend: Backend) -> None:
    backend.answer = lambda messages, context: (message[:10] for message in messages)
    r = rig(message_bytes_max=4 * MIB)
    messages = [bytes([number]) * 3 * MIB for number in range(4)]
    answers = r.channel.stream_stream(PROFILER)(iter(messages), timeout=TIMEOUT_S)
    assert list(answers) == [bytes([number]) * 10 for number in range(4)]


def test_compressed_chunks_pass_inflated(rig: Rigs, backend: Backend) -> None:
    chunks = [b"chunk " * 10_000] * 20
    call = rig().channel.stream_unary(GO_PROFILE)
    answer = call(iter(chunks), timeout=TIMEOUT_S, compression=grpc.Compression.Gzip)
    assert answer == b"commands for " + b"".join(chunks)


def test_a_conversation_in_which_nothing_moves_is_ended(rig: Rigs, backend: Backend) -> None:
    r = rig(relayed_idle_timeout_s=0.2)
    outbox: queue.Queue[bytes | None] = queue.Queue()
    answers = r.channel.stream_stream(PROFILER)(iter(outbox.get, None), timeout=TIMEOUT_S)
    with pytest.raises(grpc.RpcError) as caught:
        list(answers)
    outbox.put(None)
    assert status_of(caught)[0] is grpc.StatusCode.DEADLINE_EXCEEDED
    until(lambda: r.held() == (0, 0, 0))


def test_calls_on_their_way_end_with_the_server(rig: Rigs, backend: Backend) -> None:
    release = threading.Event()

    def slow(messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        release.wait(TIMEOUT_S)
        yield b"late"

    backend.answer = slow
    r = rig()
    one = r.channel.unary_unary(CONFIGURATIONS).future(b"x", timeout=TIMEOUT_S)
    until(lambda: r.held()[0] == 1)
    with futures.ThreadPoolExecutor(1) as pool:
        stopping = pool.submit(r.serving.stop, TIMEOUT_S)
        until(lambda: r.serving.server._receiver._stopping)
        release.set()
        assert one.result(TIMEOUT_S) == b"late"
        stopping.result(TIMEOUT_S)


def test_a_door_takes_precedence_over_asking(rig: Rigs, backend: Backend) -> None:
    r = rig()
    serving = r.serving
    finish = "/skywalking.v3.ProfileTask/reportTaskFinish"
    r.thread.loop.call_soon_threadsafe(serving.server.serve, {finish: serving._append}, None)
    until(lambda: serving.server._receiver.routes.find(CONFIGURATIONS.encode()) is None)
    assert r.unary(finish, b"done") == b""
    assert serving.appends == [(Kind.PROFILE_FINISH, [b"done"])]
    with pytest.raises(grpc.RpcError) as caught:
        r.unary(CONFIGURATIONS, b"")
    assert status_of(caught)[0] is grpc.StatusCode.UNIMPLEMENTED
