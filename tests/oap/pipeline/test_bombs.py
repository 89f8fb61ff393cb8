"""R2: a small message that would be a large one, counted before it is decoded."""

from __future__ import annotations

import pyarrow as pa
import pytest

from oap.pipeline.bench import NOON, Bench
from skyfarer.base.units import KIB
from skyfarer.oap.pipeline.sources.bombs import ELEMENTS_MAX, OVERSIZE, bombs_among
from skyfarer.testing.traces import segment
from skyfarer.wire.messages import InstanceProperties, SegmentObject, SpanObject, v2_trace
from skyfarer.wire.rpc import Kind
from skyfarer.wire.split import framed

EMPTY = framed(3, b"")
RECORD_BYTES_MAX = 256 * KIB  # of the bench


def spans(count: int) -> bytes:
    return SegmentObject(spans=[SpanObject(operationName="/a page")] * count).SerializeToString()


def references(count: int) -> bytes:
    return framed(3, framed(5, b"") * count)


def tags(count: int) -> bytes:
    return framed(3, framed(12, b"") * count)


def v2(count: int) -> bytes:
    inner = v2_trace.SegmentObject(spans=[v2_trace.SpanObjectV2(operationName="/a page")] * count)
    return v2_trace.UpstreamSegment(segment=inner.SerializeToString()).SerializeToString()


def attributes(count: int) -> bytes:
    """Of the one span that a part of an export has."""
    return framed(2, framed(2, framed(9, b"\x0a\x01k") * count))


def properties(count: int) -> bytes:
    return InstanceProperties(service="a" * 30_000).SerializeToString() + framed(3, b"") * count


def labels(count: int) -> bytes:
    return framed(1, framed(2, b"") * count)


def buckets(count: int) -> bytes:
    return framed(2, framed(3, b"") * count)


@pytest.mark.parametrize(
    ("kind", "make", "more"),
    [
        (Kind.SEGMENT, spans, 0),
        (Kind.SEGMENT, references, 1),
        (Kind.SEGMENT, tags, 1),
        (Kind.V2_SEGMENT, v2, 1),
        (Kind.OTLP_TRACES, attributes, 2),
        (Kind.INSTANCE_PROPERTIES, properties, 0),
        (Kind.METER, labels, 1),
        (Kind.METER, buckets, 1),
    ],
)
def test_one_element_more_than_the_bound_is_too_many(kind, make, more) -> None:
    """`more` elements hold those that are counted."""
    most = make(ELEMENTS_MAX - more)
    payloads = pa.array([b"small", most, make(ELEMENTS_MAX - more + 1), most], pa.binary())
    assert bombs_among(kind, payloads) == [2]


def test_what_is_no_message_is_left_to_the_decoder() -> None:
    payloads = pa.array([EMPTY * ELEMENTS_MAX + b"\x1a\xff\xff", b"\xff" * 30_000], pa.binary())
    assert bombs_among(Kind.SEGMENT, payloads) == []


def test_a_bomb_is_parked_whole_and_its_neighbours_are_stored(bench: Bench) -> None:
    bomb = EMPTY * (RECORD_BYTES_MAX // len(EMPTY))
    for number in range(3):
        bench.append(segment("shop", "shop-1", "/pay", NOON, 10, segment_id=f"{number}"))
        bench.writer.append(Kind.SEGMENT, [bomb])
    bench.apply()
    assert bench.progress().dropped == {"oversize": 3}
    assert bench.progress().delivered == 3
    [parked, *_] = bench.storage.parked(bench.writer.queue_id)
    assert (parked.reason, parked.payload) == (OVERSIZE, bomb)
