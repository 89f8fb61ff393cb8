"""grpcio's client, our server, our client, grpcio's server: calls that are passed on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

import grpc
import pytest

from skyfarer.base.errors import RetryableError
from skyfarer.base.units import KIB, MIB
from skyfarer.testing.programs import free_port
from skyfarer.wire.relay import Conversation, Metadata
from skyfarer.wire.rpc import Kind, Rpc, Streaming
from wire.relaying import (
    ASKED,
    CONFIGURATIONS,
    KEEP_ALIVE,
    PROFILER,
    TIMEOUT_S,
    Backend,
    Rigs,
    call,
    echo,
    status_of,
    until,
)


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
        r.unary(CONFIGURATIONS, b"x", timeout=2.0)
    assert status_of(caught)[0] is grpc.StatusCode.DEADLINE_EXCEEDED
    assert left[0] < 3.0  # gRPC rounds it up a little; without it there would be our own of 20
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
