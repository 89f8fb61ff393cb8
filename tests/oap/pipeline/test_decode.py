"""One suite for both decoders: what the native one answers, its plain twin answers too."""

from __future__ import annotations

from functools import partial
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfarer.oap.pipeline.sources.decode import DECODERS, Decoder, decode
from skyfarer.oap.pipeline.sources.shapes import PROPERTIES, SEGMENT
from skyfarer.wire.messages import (
    InstanceProperties,
    KeyStringValuePair,
    SegmentObject,
    SegmentReference,
    SpanObject,
)

TEXT = st.text(max_size=12)
TIME = st.integers(0, 2**62)
SPANS = st.builds(
    SpanObject,
    spanId=st.integers(-1, 2**31 - 1),
    startTime=TIME,
    endTime=TIME,
    operationName=TEXT,
    spanType=st.integers(0, 9),
    isError=st.booleans(),
    skipAnalysis=st.booleans(),
    refs=st.lists(st.builds(SegmentReference, refType=st.integers(0, 3)), max_size=2),
    tags=st.lists(st.builds(KeyStringValuePair, key=TEXT, value=TEXT), max_size=2),
)
SEGMENTS = st.builds(
    SegmentObject,
    traceId=TEXT,
    traceSegmentId=TEXT,
    service=TEXT,
    serviceInstance=TEXT,
    spans=st.lists(SPANS, max_size=4),
)


def both() -> list[Decoder]:
    return [DECODERS[name](SEGMENT) for name in sorted(DECODERS)]


@pytest.fixture(params=sorted(DECODERS))
def decoder(request: pytest.FixtureRequest) -> Decoder:
    return DECODERS[request.param](SEGMENT)


def payloads(*messages: bytes) -> pa.BinaryArray:
    return pa.array(messages, pa.binary())


def segment(identifier: str) -> bytes:
    span = SpanObject(spanId=0, startTime=5, endTime=9, operationName="/a", isError=True)
    message = SegmentObject(traceSegmentId=identifier, service="shop", spans=[span])
    return bytes(message.SerializeToString())


def test_a_segment_becomes_a_row_with_its_spans_nested(decoder: Decoder) -> None:
    (row,) = decoder.decode_all(payloads(segment("s1"))).to_pylist()
    assert (row["traceSegmentId"], row["service"], row["serviceInstance"]) == ("s1", "shop", "")
    (span,) = row["spans"]
    assert (span["startTime"], span["endTime"], span["isError"], span["refs"]) == (5, 9, True, [])


def test_no_payload_gives_no_row(decoder: Decoder) -> None:
    assert decoder.decode_all(payloads()).num_rows == 0


def test_fields_that_no_shape_names_are_skipped(decoder: Decoder) -> None:
    unknown = segment("s1") + bytes([0x7A, 2, 0xFF, 0xFE])  # field 15, length 2
    assert decoder.decode_all(payloads(unknown)).to_pylist()[0]["traceSegmentId"] == "s1"


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(segment("s")[:-1], id="cut short"),
        pytest.param(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", id="endless varint"),
        pytest.param(b"\x12\x02\xff\xfe", id="bad UTF-8 in an id"),
        pytest.param(b"\x0b\x00", id="open group"),
    ],
)
def test_bad_payloads_are_told_apart_and_the_good_ones_kept_in_order(
    decoder: Decoder, bad: bytes
) -> None:
    mixed = payloads(bad, segment("a"), segment("b"), bad, segment("c"), bad)
    batches, reasons = decode([lambda: decoder], mixed)
    kept = [row["traceSegmentId"] for batch in batches for row in batch.to_pylist()]
    assert kept == ["a", "b", "c"]
    assert sorted(reasons) == [0, 3, 5]
    assert all(reasons.values())


def test_one_bad_payload_costs_few_extra_calls(decoder: Decoder) -> None:
    calls = 0

    class Counting:
        schema = decoder.schema

        def decode_all(self, part: pa.BinaryArray) -> pa.RecordBatch:
            nonlocal calls
            calls += 1
            return decoder.decode_all(part)

    mixed = payloads(*[segment(str(n)) for n in range(1023)], b"\xff")
    decode([Counting], mixed)
    assert calls <= 2 * 10 + 1


@settings(max_examples=60, deadline=None)
@given(st.lists(SEGMENTS, max_size=5))
def test_both_decoders_give_the_same_rows(messages: list[SegmentObject]) -> None:
    array = payloads(*[message.SerializeToString() for message in messages])
    native, plain = (decoder.decode_all(array) for decoder in reversed(both()))
    assert native.schema.equals(plain.schema)
    assert native.to_pylist() == plain.to_pylist()


@settings(max_examples=60, deadline=None)
@given(st.integers(), SEGMENTS)
def test_a_flipped_bit_never_makes_the_decoders_disagree_on_what_they_accept(
    seed: int, message: SegmentObject
) -> None:
    random, raw = Random(seed), bytearray(message.SerializeToString()) or bytearray(b"\x0a")
    raw[random.randrange(len(raw))] ^= 1 << random.randrange(8)
    native, plain = (
        decode([partial(DECODERS[name], SEGMENT)], payloads(bytes(raw))) for name in DECODERS
    )
    # One parser refuses a known field with a wrong wire type, the other skips it as unknown.
    if not native[1] and not plain[1]:
        assert native[0][0].to_pylist() == plain[0][0].to_pylist()


def test_properties_keep_their_order_and_repeats() -> None:
    pairs = [KeyStringValuePair(key="ipv4", value=value) for value in ("10.0.0.1", "10.0.0.2")]
    message = InstanceProperties(service="shop", serviceInstance="i", properties=pairs)
    for name in DECODERS:
        decoder = DECODERS[name](PROPERTIES)
        (row,) = decoder.decode_all(payloads(message.SerializeToString())).to_pylist()
        assert [pair["value"] for pair in row["properties"]] == ["10.0.0.1", "10.0.0.2"]


def test_half_a_character_in_a_tag_costs_that_character_and_not_the_segment(
    decoder: Decoder,
) -> None:
    tag = KeyStringValuePair(key="note", value="caf?")
    whole = SegmentObject(traceSegmentId="x", spans=[SpanObject(peer="db", tags=[tag]), {}])
    cut = whole.SerializeToString().replace(b"caf?", b"caf\xc3")
    batch = decoder.decode_all(payloads(segment("a"), cut, whole.SerializeToString()))
    batch.validate(full=True)
    assert batch.schema == decoder.schema
    told = [[span["tags"] for span in spans] for spans in batch["spans"].to_pylist()]
    assert told == [
        [[]],
        [[{"key": "note", "value": "caf\ufffd"}], []],
        [[{"key": "note", "value": "caf?"}], []],
    ]


NEAR_2_64 = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
PANICS = [
    pytest.param(b"\x0a" + NEAR_2_64, id="a text longer than can be counted"),
    pytest.param(b"\x1a\x0b\x32" + NEAR_2_64, id="the same in a span"),
]


@pytest.mark.parametrize("poison", PANICS)
def test_decode_tells_a_payload_apart_that_makes_native_code_panic(
    decoder: Decoder, poison: bytes
) -> None:
    batches, reasons = decode(
        [lambda: decoder], payloads(segment("a"), poison, segment("b"), poison)
    )
    kept = [row["traceSegmentId"] for batch in batches for row in batch.to_pylist()]
    assert kept == ["a", "b"]
    assert sorted(reasons) == [1, 3]


class Refusing:
    """A decoder that refuses every payload with a `2` in it."""

    def __init__(self, decoder: Decoder) -> None:
        self.schema = decoder.schema
        self._decoder = decoder

    def decode_all(self, part: pa.BinaryArray) -> pa.RecordBatch:
        if any(b"2" in one for one in part.to_pylist()):
            raise RuntimeError("no")
        return self._decoder.decode_all(part)


def test_second_decoder_reads_what_the_first_refuses_in_its_place(decoder: Decoder) -> None:
    mixed = payloads(*[segment(str(n)) for n in range(5)], b"\xff2")
    batches, bad = decode([lambda: Refusing(decoder), lambda: decoder], mixed)
    assert [row["traceSegmentId"] for row in batches[0].to_pylist()] == ["0", "1", "2", "3", "4"]
    assert len(batches) == 1
    assert bad.keys() == {5}
    assert bad[5].startswith("RuntimeError: no; then: ")
