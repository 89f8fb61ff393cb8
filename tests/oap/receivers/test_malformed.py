"""R1 at the door of an OAP that refuses what is no protobuf message, on every call it keeps."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import grpc
import pytest

from oap.receivers.receiving import Rig, rig
from skyfarer.oap.receivers.process import KEPT
from skyfarer.testing.programs import eventually
from skyfarer.testing.traces import segment
from skyfarer.wire.rpc import BY_PATH, Kind, Streaming
from skyfarer.wire.split import sound_at_top

WAIT_S = 120.0
COLLECT = "/skywalking.v3.TraceSegmentReportService/collect"
GOOD = segment("shop", "shop-1", "/pay", 1_794_744_000_000, 10).SerializeToString()
ENDLESS = bytes.fromhex("0a" + "ff" * 9 + "01")
NESTED = bytes.fromhex("1a 0b 32" + "ff" * 9 + "01")  # the same in a span
OK, INVALID = grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    directory = tmp_path_factory.mktemp("receiver")
    with rig(directory, hold_back_s=0, refuse_malformed=True) as running:
        yield running


@pytest.fixture(scope="module")
def channel(receiver: Rig) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(receiver.address) as opened:
        yield opened


def status(channel: grpc.Channel, path: str, *messages: bytes) -> grpc.StatusCode:
    try:
        if BY_PATH[path].streaming is Streaming.UNARY:
            channel.unary_unary(path)(messages[0], timeout=WAIT_S)
        else:
            channel.stream_unary(path)(iter(messages), timeout=WAIT_S)
    except grpc.RpcError as error:
        code: grpc.StatusCode = error.code()
        return code
    return OK


def malformed(path: str) -> list[bytes]:
    random = Random(path)
    noise = [random.randbytes(size) for size in (1, 7, 60, 300, 5000)]
    torn = [GOOD[: random.randrange(1, len(GOOD))] for _ in range(5)]
    return [one for one in (*noise, *torn) if not sound_at_top(one)]


def test_noise_and_torn_messages_are_refused_counted_and_not_kept_on_every_call(
    channel: grpc.Channel, receiver: Rig
) -> None:
    before, sent = receiver.received(), 0
    for path in KEPT:
        for message in malformed(path):
            assert status(channel, path, message) is INVALID, path
            sent += 1
    assert sent > 5 * len(KEPT)
    assert receiver.received() == before
    eventually(lambda: refused(receiver) == sent, WAIT_S, "each is counted")
    assert status(channel, COLLECT, GOOD) is OK
    assert receiver.received() == [*before, (Kind.SEGMENT, GOOD)]


def test_a_stream_keeps_what_came_before_the_bad_one(channel: grpc.Channel, receiver: Rig) -> None:
    before = receiver.received()
    assert status(channel, COLLECT, GOOD, GOOD, GOOD[:-1]) is INVALID
    assert receiver.received() == [*before, *[(Kind.SEGMENT, GOOD)] * 2]


def test_a_message_that_is_broken_in_a_nested_one_is_kept_for_the_analysis(
    channel: grpc.Channel, receiver: Rig
) -> None:
    before = receiver.received()
    assert status(channel, COLLECT, ENDLESS) is INVALID
    assert status(channel, COLLECT, NESTED) is OK
    assert receiver.received() == [*before, (Kind.SEGMENT, NESTED)]


def test_a_question_is_answered_as_ever(channel: grpc.Channel) -> None:
    asked = "/skywalking.v3.ConfigurationDiscoveryService/fetchConfigurations"
    assert status(channel, asked, b"\xff") is INVALID


def refused(receiver: Rig) -> float:
    lines = receiver.registry.render().splitlines()
    mine = [line for line in lines if line.startswith("receiver_messages_refused_total{")]
    assert all('reason="malformed"' in line for line in mine)
    return sum(float(line.rpartition(" ")[2]) for line in mine)
