"""R1 to R3 at the OAP's own door, on every call of the table: what is wrong with a message is told
to who sent it, kept from growing, counted, and costs nobody else anything."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from random import Random

import grpc
import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ResponseReceived, StreamEnded, TrailersReceived

from oap.receivers.receiving import Rig, rig
from skyfarer.base.units import MIB
from skyfarer.testing.programs import eventually
from skyfarer.testing.traces import segment
from skyfarer.wire.framing import prefixed
from skyfarer.wire.rpc import RPCS, Handling, Kind, Rpc, Streaming

SERVED = [rpc for rpc in RPCS if rpc.handling is not Handling.REFUSE]
COLLECT = "/skywalking.v3.TraceSegmentReportService/collect"
RECORD_BYTES_MAX = 1 * MIB  # of the rig
GROWTH_BYTES_MAX = 64 * MIB
WAIT_S = 120.0
OK, INVALID = grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with rig(tmp_path_factory.mktemp("receiver"), hold_back_s=0) as running:
        yield running


@pytest.fixture(scope="module")
def channel(receiver: Rig) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(receiver.address, [("grpc.max_send_message_length", -1)]) as open_:
        yield open_


@pytest.fixture(autouse=True)
def good_clients_notice_nothing(receiver: Rig, channel: grpc.Channel) -> Iterator[None]:
    """After each test, on the connection that it has used."""
    yield
    good = segment("shop", "shop-1", "/pay", 1_794_744_000_000, 10).SerializeToString()
    assert status(channel, RPC_OF[COLLECT], good) is OK
    assert receiver.received()[-1] == (Kind.SEGMENT, good)


RPC_OF = {rpc.path: rpc for rpc in RPCS}


def status(channel: grpc.Channel, rpc: Rpc, *messages: bytes) -> grpc.StatusCode:
    try:
        if rpc.streaming is Streaming.UNARY:
            channel.unary_unary(rpc.path)(messages[0], timeout=WAIT_S)
        elif rpc.streaming is Streaming.CLIENT_STREAM:
            channel.stream_unary(rpc.path)(iter(messages), timeout=WAIT_S)
        else:
            for _ in channel.stream_stream(rpc.path)(iter(messages), timeout=WAIT_S):
                pass
    except grpc.RpcError as error:
        code: grpc.StatusCode = error.code()
        return code
    return OK


def paths(rpc: Rpc) -> str:
    return rpc.path


@pytest.mark.parametrize("rpc", SERVED, ids=paths)
def test_random_bytes_are_kept_to_be_parked_or_refused_as_no_question(
    channel: grpc.Channel, receiver: Rig, rpc: Rpc
) -> None:
    random = Random(rpc.path)
    before = len(receiver.received())
    for size in (1, 7, 300, 5000):
        code = status(channel, rpc, random.randbytes(size))
        assert code is OK or (rpc.kind in (Kind.NONE, Kind.V2_INSTANCE_PING) and code is INVALID)
    if rpc.kind not in (Kind.NONE, Kind.V2_INSTANCE_PING) and rpc.repeated_field is None:
        assert len(receiver.received()) - before == 4


@pytest.mark.parametrize("rpc", SERVED, ids=paths)
def test_a_message_beyond_the_bound_is_refused_by_its_size(
    channel: grpc.Channel, receiver: Rig, rpc: Rpc
) -> None:
    before = len(receiver.received())
    code = status(channel, rpc, bytes(RECORD_BYTES_MAX + 1))
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert len(receiver.received()) == before


@pytest.mark.parametrize("rpc", SERVED, ids=paths)
def test_a_message_that_is_cut_short_is_told_and_not_kept(receiver: Rig, rpc: Rpc) -> None:
    before = len(receiver.received())
    assert cut_short(receiver.supervisor.port, rpc.path) == "13"
    assert len(receiver.received()) == before


def test_what_was_refused_is_counted_and_memory_is_as_it_was(receiver: Rig) -> None:
    eventually(
        lambda: (
            f'receiver_calls_total{{rpc="{COLLECT}",status="RESOURCE_EXHAUSTED"}} 1'
            in receiver.registry.render()
        ),
        WAIT_S,
        "refusals are counted",
    )
    assert receiver.receiver().memory_info().rss < GROWTH_BYTES_MAX


def cut_short(port: int, path: str) -> str:
    """The grpc-status of a call that says it has 100 bytes, sends 50 and ends."""
    http2 = H2Connection(H2Configuration(client_side=True, header_encoding="ascii"))
    http2.initiate_connection()
    headers = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "oap")]
    http2.send_headers(1, [*headers, ("content-type", "application/grpc"), ("te", "trailers")])
    http2.send_data(1, prefixed(bytes(100))[:55], end_stream=True)
    told: dict[str, str] = {}
    with socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as connection:
        connection.sendall(http2.data_to_send())
        while data := connection.recv(65_536):
            for event in http2.receive_data(data):
                if isinstance(event, ResponseReceived | TrailersReceived):
                    told |= dict(event.headers)
                elif isinstance(event, StreamEnded):
                    return told["grpc-status"]
            connection.sendall(http2.data_to_send())
    raise AssertionError("the receiver closed the connection")
