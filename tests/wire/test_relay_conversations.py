"""Calls that stream both ways, and files: nobody is outrun, and nothing piles up with us."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest
from h2.settings import SettingCodes

from skyfarer.base.units import KIB, MIB
from skyfarer.wire.framing import prefixed
from wire.relaying import (
    GO_PROFILE,
    KEEP_ALIVE,
    PROFILER,
    TIMEOUT_S,
    Backend,
    Rigs,
    status_of,
    until,
)

WINDOW_AND_A_MESSAGE = 1 * MIB + 128 * KIB


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
    until(lambda: taken > 0)
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
    until(lambda: sent > 0)
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
