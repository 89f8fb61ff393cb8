"""A conversation cut at any places is the same conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise

from h2.config import H2Configuration
from h2.connection import H2Connection
from hypothesis import given
from hypothesis import strategies as st

from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.wire.framing import prefixed
from skyfarer.wire.receiver import Receiver, ServerSettings
from skyfarer.wire.rpc import Kind
from skyfarer.wire.session import Session

COLLECT = "/skywalking.v3.TraceSegmentReportService/collect"
KEEP_ALIVE = "/skywalking.v3.ManagementService/keepAlive"
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
    receiver = Receiver(ServerSettings(), append, Registry(), Health())
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
    receiver = Receiver(ServerSettings(), lambda kind, payloads: None, Registry(), Health())
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
