"""A conversation cut at any places is the same conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived
from hypothesis import given
from hypothesis import strategies as st

from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.wire.framing import prefixed
from skyfarer.wire.receiver import Receiver, ServerSettings
from skyfarer.wire.relay import Conversation, Metadata
from skyfarer.wire.rpc import BY_PATH, Kind, Rpc
from skyfarer.wire.session import Session

COLLECT = "/skywalking.v3.TraceSegmentReportService/collect"
KEEP_ALIVE = "/skywalking.v3.ManagementService/keepAlive"
PROFILER = "/skywalking.v10.AsyncProfilerTask/collect"
GO_PROFILE = "/skywalking.v3.ProfileTask/goProfileReport"
CONFIGURATIONS = "/skywalking.v3.ConfigurationDiscoveryService/fetchConfigurations"
MESSAGES = [b"", b"a", b"segment " * 20, bytes(3000), b"last"]


def conversation() -> bytes:
    """Two streams whose DATA is interleaved in frames of 700 bytes, and a unary call."""
    h2 = H2Connection(H2Configuration(client_side=True))
    h2.initiate_connection()
    body = b"".join(map(prefixed, MESSAGES))
    for stream, path in ((1, COLLECT), (3, COLLECT), (5, KEEP_ALIVE)):
        fields = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "test"}
        fields |= {"te": "trailers", "content-type": "application/grpc"}
        h2.send_headers(stream, list(fields.items()))
    for start in range(0, len(body), 700):
        for stream in (1, 3):
            h2.send_data(stream, body[start : start + 700])
    h2.send_data(5, prefixed(b"ping"), end_stream=True)
    h2.end_stream(1)
    h2.end_stream(3)
    return h2.data_to_send()


CONVERSATION = conversation()


@given(cuts=st.lists(st.integers(0, len(CONVERSATION)), max_size=200))
def test_any_chunking_of_the_socket_keeps_the_same_messages(cuts: list[int]) -> None:
    kept: dict[int, list[bytes]] = {}
    answers: list[bytes] = []
    closed: list[bool] = []

    def append(kind: int, payloads: Sequence[bytes]) -> None:
        kept.setdefault(kind, []).extend(payloads)

    loop = asyncio.new_event_loop()
    receiver = Receiver(
        ServerSettings(), dict.fromkeys(BY_PATH, append), None, Registry(), Health()
    )
    session = Session(receiver, loop, answers.append, lambda: closed.append(True))
    session.open()
    for start, end in pairwise([0, *sorted(cuts), len(CONVERSATION)]):
        session.receive(CONVERSATION[start:end])
    loop.close()
    assert sorted(kept[Kind.SEGMENT]) == sorted(MESSAGES * 2)
    assert kept[Kind.INSTANCE_PING] == [b"ping"]
    assert receiver.unfinished.bytes == 0
    assert not closed


def frames(data: bytes) -> list[bytes]:
    found, at = [], 0
    while at < len(data):
        end = at + 9 + int.from_bytes(data[at : at + 3], "big")
        found.append(data[at:end])
        at = end
    return found


PREFACE, FRAMES = CONVERSATION[:24], frames(CONVERSATION[24:])
GOAWAY = b"\x00\x00\x08\x07" + bytes(13)
RESETS = [b"\x00\x00\x04\x03\x00" + bytes(3) + bytes([stream]) + bytes(4) for stream in (1, 3, 5)]


def survive(data: bytes, cut: int) -> None:
    loop = asyncio.new_event_loop()
    doors = dict.fromkeys(BY_PATH, lambda kind, payloads: None)
    receiver = Receiver(ServerSettings(), doors, None, Registry(), Health())
    closed: list[bool] = []
    session = Session(receiver, loop, lambda output: None, lambda: closed.append(True))
    session.open()
    for part in (data[:cut], data[cut:]):
        if not closed:
            session.receive(part)
    session.lost()
    loop.close()
    assert receiver.unfinished.bytes == 0


@given(
    order=st.lists(st.sampled_from([*FRAMES, GOAWAY, *RESETS]), max_size=40),
    cut=st.integers(0, len(CONVERSATION)),
)
def test_frames_in_any_order_end_the_session_or_a_call_and_nothing_else(
    order: list[bytes], cut: int
) -> None:
    survive(PREFACE + b"".join(FRAMES[:5] + order), cut)


@given(
    at=st.integers(24, len(CONVERSATION) - 1),
    junk=st.binary(min_size=1, max_size=64),
    cut=st.integers(0, len(CONVERSATION)),
)
def test_damaged_bytes_end_the_session_or_a_call_and_nothing_else(
    at: int, junk: bytes, cut: int
) -> None:
    data = CONVERSATION[:at] + junk + CONVERSATION[at + len(junk) :]
    survive(data, cut)


class Echo:
    """A relay that answers what it hears."""

    async def ask(self, rpc: Rpc, message: bytes, metadata: Metadata) -> bytes:
        await asyncio.sleep(0)
        return message

    def converse(self, rpc: Rpc, metadata: Metadata) -> Conversation:
        return EchoConversation()


class EchoConversation:
    def __init__(self) -> None:
        self._heard: asyncio.Queue[bytes | None] = asyncio.Queue(1)

    async def send(self, message: bytes) -> None:
        await self._heard.put(message)

    async def end(self) -> None:
        await self._heard.put(None)

    async def receive(self) -> bytes | None:
        return await self._heard.get()

    def cancel(self) -> None: ...


def relayed_conversation() -> tuple[H2Connection, bytes]:
    """The peer, and all that it says."""
    h2 = H2Connection(H2Configuration(client_side=True))
    h2.initiate_connection()
    for stream, path in ((1, PROFILER), (3, CONFIGURATIONS), (5, PROFILER), (7, GO_PROFILE)):
        fields = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "test"}
        fields |= {"te": "trailers", "content-type": "application/grpc"}
        h2.send_headers(stream, list(fields.items()))
    body = b"".join(map(prefixed, MESSAGES))
    for start in range(0, len(body), 700):
        for stream in (1, 5, 7):
            h2.send_data(stream, body[start : start + 700])
    h2.send_data(3, prefixed(b"question"), end_stream=True)
    for stream in (1, 5, 7):
        h2.end_stream(stream)
    return h2, h2.data_to_send()


RELAYED = relayed_conversation()[1]
RELAYED_FRAMES = frames(RELAYED[24:])


async def relay(parts: list[bytes], turns: int) -> tuple[Receiver, bytes]:
    """What the peer is told, after each part and some turns of the event loop."""
    receiver = Receiver(ServerSettings(), {}, Echo(), Registry(), Health())
    told: list[bytes] = []
    closed: list[bool] = []
    loop = asyncio.get_running_loop()
    session = Session(receiver, loop, told.append, lambda: closed.append(True))
    session.open()
    for part in parts:
        if not closed:
            session.receive(part)
        for _ in range(turns):
            await asyncio.sleep(0)
    session.lost()
    await asyncio.sleep(0)
    return receiver, b"".join(told)


@given(cuts=st.lists(st.integers(0, len(RELAYED)), max_size=50))
def test_any_chunking_of_the_socket_passes_the_same_messages_on(cuts: list[int]) -> None:
    parts = [RELAYED[start:end] for start, end in pairwise([0, *sorted(cuts), len(RELAYED)])]
    receiver, told = asyncio.run(relay([*parts, *[b""] * 20], turns=3))
    peer, _ = relayed_conversation()
    answers: dict[int, bytes] = {}
    for event in peer.receive_data(told):
        if isinstance(event, DataReceived):
            answers[event.stream_id] = answers.get(event.stream_id, b"") + event.data
    whole = b"".join(map(prefixed, MESSAGES))
    assert answers == {1: whole, 3: prefixed(b"question"), 5: whole, 7: whole}
    assert (receiver.relayed.calls, receiver.relayed.bytes, receiver.unfinished.bytes) == (0, 0, 0)


@given(
    order=st.lists(st.sampled_from([*RELAYED_FRAMES, GOAWAY, *RESETS]), max_size=40),
    cut=st.integers(0, len(RELAYED)),
    turns=st.integers(0, 3),
)
def test_calls_that_are_passed_on_leave_nothing_behind_whatever_comes(
    order: list[bytes], cut: int, turns: int
) -> None:
    data = PREFACE + b"".join(RELAYED_FRAMES[:6] + order)
    receiver, _ = asyncio.run(relay([data[:cut], data[cut:]], turns))
    assert (receiver.relayed.calls, receiver.relayed.bytes, receiver.unfinished.bytes) == (0, 0, 0)
