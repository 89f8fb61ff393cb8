"""Which of two protocols a message is of, where both call the same path."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message

from skyfarer.testing.traces import segment
from skyfarer.wire.framing import prefixed
from skyfarer.wire.generated import (
    profile_pb2,
    runtime_pb2,
    trace_pb2,
    v2_runtime_pb2,
    v2_trace_pb2,
)
from skyfarer.wire.rpc import BY_PATH, FORWARD, Kind, Streaming
from skyfarer.wire.split import walk
from skyfarer.wire.twins import TWINS, is_v2

TRACES = "/TraceSegmentReportService/collect"
JVM = "/JVMMetricReportService/collect"
CLR = "/CLRMetricReportService/collect"
SNAPSHOTS = "/ProfileTask/collectSnapshot"
FINISH = "/ProfileTask/reportTaskFinish"
TIMEOUT_S = 120.0


def upstream_segment(spans: int = 2) -> v2_trace_pb2.UpstreamSegment:
    one = v2_trace_pb2.SegmentObject(serviceId=2, serviceInstanceId=3)
    one.traceSegmentId.idParts.extend((7, 8, 2**60))
    for number in range(spans):
        one.spans.add(spanId=number, operationName="/shop", endTime=2**41)
    whole = v2_trace_pb2.UpstreamSegment(segment=one.SerializeToString())
    whole.globalTraceIds.add().idParts.extend((1, 2, 3))
    return whole


def v2_snapshot() -> bytes:
    """As 7.0 has it: 1 task, 2 the segment's id as numbers, 3 time."""
    return b"\x0a\x04task" + b"\x12\x05\x0a\x03\x07\x08\x09" + b"\x18\x05"


V2: dict[str, list[bytes]] = {
    TRACES: [
        upstream_segment().SerializeToString(),
        upstream_segment(200).SerializeToString(),
        v2_trace_pb2.UpstreamSegment(segment=b"\x18\x02").SerializeToString(),
    ],
    JVM: [
        v2_runtime_pb2.JVMMetricCollection(
            metrics=[v2_runtime_pb2.JVMMetric(time=n) for n in range(3)], serviceInstanceId=2
        ).SerializeToString(),
        v2_runtime_pb2.JVMMetricCollection(serviceInstanceId=70_000).SerializeToString(),
    ],
    CLR: [
        v2_runtime_pb2.CLRMetricCollection(
            metrics=[v2_runtime_pb2.CLRMetric(time=1)], serviceInstanceId=2
        ).SerializeToString()
    ],
    SNAPSHOTS: [v2_snapshot(), b"\x0a\x04task" + b"\x12\x06\x08\x01\x08\x02\x08\x03"],
    FINISH: [b"\x08\x02\x10\x03\x1a\x04task"],
}
V3: dict[str, list[Message]] = {
    TRACES: [
        segment("shop", "one", "/cart", 1_700_000_000_000, 5),
        segment("s" * 300, "one", "/cart", 1_700_000_000_000, 5),
        trace_pb2.SegmentObject(traceId="a", traceSegmentId="b", service="shop"),
    ],
    JVM: [
        runtime_pb2.JVMMetricCollection(
            metrics=[runtime_pb2.JVMMetric(time=1)], service="shop", serviceInstance="one"
        ),
        runtime_pb2.JVMMetricCollection(serviceInstance="one"),
    ],
    CLR: [runtime_pb2.CLRMetricCollection(service="shop", serviceInstance="one")],
    SNAPSHOTS: [profile_pb2.ThreadSnapshot(taskId="task", traceSegmentId="7.8.9", time=5)],
    FINISH: [profile_pb2.ProfileTaskFinishReport(service="a", serviceInstance="b", taskId="c")],
}


@pytest.mark.parametrize("path", TWINS)
def test_a_message_of_each_protocol_is_known(path: str) -> None:
    kind = TWINS[path].kind
    assert all(is_v2(kind, payload) for payload in V2[path])
    assert not any(is_v2(kind, message.SerializeToString()) for message in V3[path])


@pytest.mark.parametrize("path", TWINS)
def test_what_is_empty_cut_off_or_noise_stays_what_its_path_says(path: str) -> None:
    """A cut is noticed wherever it leaves half a field; between two fields it is a message."""
    kind, random = TWINS[path].kind, Random(1)
    assert not is_v2(kind, b"")
    for payload in V2[path]:
        edges = {end for _, _, end in walk(payload)}
        for size in set(range(len(payload))) - edges:
            assert not is_v2(kind, payload[:size]), size
    for _ in range(500):
        assert not is_v2(kind, b"\xff" + random.randbytes(random.randrange(60)))


def test_noise_never_raises() -> None:
    random = Random(2)
    for _ in range(5_000):
        payload = random.randbytes(random.randrange(40))
        for twin in TWINS.values():
            is_v2(twin.kind, payload)


def test_each_v2_kind_that_is_kept_can_be_told_and_is_sent_on_by_its_own_path() -> None:
    assert {twin.kind for twin in TWINS.values()} == {
        Kind.V2_SEGMENT,
        Kind.V2_JVM_METRICS,
        Kind.V2_CLR_METRICS,
        Kind.V2_PROFILE_SNAPSHOT,
        Kind.V2_PROFILE_FINISH,
    }
    assert all(FORWARD[twin.kind].path == path for path, twin in TWINS.items())


@pytest.mark.parametrize("path", [TRACES, JVM, CLR, SNAPSHOTS])
def test_both_protocols_on_one_path_are_kept_each_under_its_kind(
    path: str, serve: Callable[..., Any]
) -> None:
    serving, rpc = serve(), BY_PATH[path]
    new = [message.SerializeToString() for message in V3[path]]
    mixed = [one for pair in zip(new, V2[path], strict=False) for one in pair]
    with grpc.insecure_channel(serving.address) as channel:
        if rpc.streaming is Streaming.UNARY:
            for message in mixed:
                channel.unary_unary(path)(message, timeout=TIMEOUT_S)
        else:
            channel.stream_unary(path)(iter([*mixed, b"\x0a\x7fcut"]), timeout=TIMEOUT_S)
            mixed.append(b"\x0a\x7fcut")
    v2 = [one for one in mixed if one in V2[path]]
    assert serving.kept(TWINS[path].kind) == v2
    assert serving.kept(rpc.kind) == [one for one in mixed if one not in v2]
    assert serving.counted(f'receiver_messages_total{{rpc="{path}"}} {len(mixed)}')


def test_both_protocols_in_one_read_are_one_append_each(
    serve: Callable[..., Any], raw: Callable[..., Any]
) -> None:
    serving = serve()
    client = raw(serving)
    stream = client.open(TRACES)
    old, new = V2[TRACES][0], V3[TRACES][0].SerializeToString()
    client.send(stream, b"".join(map(prefixed, (old, new, new, old, old))), end=True)
    assert client.trailers(stream)[b"grpc-status"] == b"0"
    assert sorted(serving.appends) == [(Kind.SEGMENT, [new] * 2), (Kind.V2_SEGMENT, [old] * 3)]


def test_the_path_with_a_package_is_of_one_protocol(serve: Callable[..., Any]) -> None:
    serving, old = serve(), V2[TRACES][0]
    with grpc.insecure_channel(serving.address) as channel:
        channel.stream_unary(f"/skywalking.v3.{TRACES[1:]}")(iter([old]), timeout=TIMEOUT_S)
    assert serving.kept(Kind.SEGMENT) == [old]
