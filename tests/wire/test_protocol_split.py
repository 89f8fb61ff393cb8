"""Finding fields of a message, judged by protobuf's own parser."""

from __future__ import annotations

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from skyfarer.wire.messages import KeyStringValuePair, SegmentCollection, SegmentObject, SpanObject
from skyfarer.wire.split import framed, pick_fields, sound_at_top, split_apart, split_repeated

VARINT, FIXED64, LENGTH, GROUP_START, GROUP_END, FIXED32 = range(6)


def judge(payload: bytes) -> list[bytes] | None:
    """What protobuf makes of a message whose field 1 is repeated bytes; None when it refuses."""
    try:
        return list(_JUDGE.FromString(payload).elements)  # type: ignore[attr-defined]
    except DecodeError:
        return None


def _judge_class() -> type:
    file = descriptor_pb2.FileDescriptorProto(name="judge.proto", syntax="proto3")
    field = file.message_type.add(name="Judge").field.add(name="elements", number=1)
    field.label, field.type = field.LABEL_REPEATED, field.TYPE_BYTES
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Judge"))


_JUDGE = _judge_class()


def varint(value: int, padding: int = 0) -> bytes:
    """`padding` bytes longer than needed, which is legal and never minimal."""
    groups = [value & 0x7F]
    while value := value >> 7:
        groups.append(value & 0x7F)
    groups += [0] * padding
    return bytes([group | 0x80 for group in groups[:-1]] + groups[-1:])


def field(number: int, wire_type: int, value: bytes) -> bytes:
    return varint(number << 3 | wire_type) + value


def delimited(number: int, value: bytes, padding: int = 0) -> bytes:
    return field(number, LENGTH, varint(len(value), padding) + value)


numbers = st.one_of(st.just(1), st.integers(1, 20), st.integers(1, 2**29 - 1))
scalars = st.one_of(
    st.builds(lambda n, v: field(n, VARINT, varint(v)), numbers, st.integers(0, 2**64 - 1)),
    st.builds(lambda n, v: field(n, FIXED64, v), numbers, st.binary(min_size=8, max_size=8)),
    st.builds(lambda n, v: field(n, FIXED32, v), numbers, st.binary(min_size=4, max_size=4)),
    st.builds(delimited, numbers, st.binary(max_size=200), st.integers(0, 3)),
)
messages = st.lists(
    st.recursive(
        scalars,
        lambda inner: st.builds(
            lambda n, body: field(n, GROUP_START, b"".join(body)) + field(n, GROUP_END, b""),
            numbers,
            st.lists(inner, max_size=3),
        ),
        max_leaves=6,
    ),
    max_size=6,
).map(b"".join)

texts = st.text(max_size=20)
segments = st.builds(
    SegmentObject,
    traceId=texts,
    traceSegmentId=texts,
    service=texts,
    serviceInstance=texts,
    isSizeLimited=st.booleans(),
    spans=st.lists(
        st.builds(
            SpanObject,
            spanId=st.integers(-1, 2**31 - 1),
            startTime=st.integers(-(2**63), 2**63 - 1),
            operationName=texts,
            tags=st.lists(st.builds(KeyStringValuePair, key=texts, value=texts), max_size=3),
        ),
        max_size=4,
    ),
)


@given(st.lists(segments, max_size=8))
def test_split_of_a_collection_is_its_segments(sent: list[SegmentObject]) -> None:
    payload = SegmentCollection(segments=sent).SerializeToString()
    parts = split_repeated(payload, 1)
    assert parts == [segment.SerializeToString() for segment in sent]


@given(messages)
def test_split_of_any_message_is_what_protobuf_finds(payload: bytes) -> None:
    expected = judge(payload)
    assert expected is not None
    assert split_repeated(payload, 1) == expected


@given(messages, st.data())
def test_torn_message_is_refused_exactly_when_protobuf_refuses_it(
    payload: bytes, data: st.DataObject
) -> None:
    torn = payload[: data.draw(st.integers(0, len(payload)))]
    assert split_repeated(torn, 1) == judge(torn)


@given(st.binary(max_size=64))
def test_garbage_never_raises_and_is_never_split_otherwise_than_by_protobuf(payload: bytes) -> None:
    parts = split_repeated(payload, 1)
    assert parts is None or parts == judge(payload)


def test_empty_payload_is_an_empty_collection() -> None:
    assert split_repeated(b"", 1) == []


def test_elements_may_be_empty_and_of_any_length() -> None:
    elements = [b"", b"x" * 127, b"y" * 128, b"z" * 70_000, b""]
    assert split_repeated(b"".join(delimited(1, element) for element in elements), 1) == elements


def test_field_number_above_fifteen_is_found() -> None:
    assert split_repeated(delimited(1, b"no") + delimited(2000, b"yes"), 2000) == [b"yes"]


def test_field_with_another_wire_type_is_skipped_as_unknown() -> None:
    assert split_repeated(field(1, VARINT, varint(5)) + delimited(1, b"x"), 1) == [b"x"]


def test_element_inside_a_group_is_not_an_element_of_the_message() -> None:
    group = field(9, GROUP_START, delimited(1, b"inner")) + field(9, GROUP_END, b"")
    assert split_repeated(group + delimited(1, b"outer"), 1) == [b"outer"]


def test_malformed_payloads_are_refused() -> None:
    malformed = {
        "length beyond the end": bytes.fromhex("0a 05 61"),
        "tag without a value": bytes.fromhex("0a"),
        "field number zero": bytes.fromhex("02 00"),
        "unknown wire type": bytes.fromhex("0e"),
        "endless varint": bytes.fromhex("08") + b"\xff" * 11,
        "tag above 32 bits": bytes.fromhex("fa ff ff ff 1f 00"),
        "length above five bytes": bytes.fromhex("0a 80 80 80 80 80 00"),
        "group never closed": bytes.fromhex("0b"),
        "group closed by another": bytes.fromhex("0b 14"),
        "group never opened": bytes.fromhex("0c"),
        "groups too deep": b"\x0b" * 101 + b"\x0c" * 101,
    }
    for name, payload in malformed.items():
        assert split_repeated(payload, 1) is None, name
        assert judge(payload) is None, name


@given(
    segment=st.builds(
        SegmentObject,
        traceId=st.text(max_size=200),
        traceSegmentId=st.text(max_size=5),
        service=st.text(max_size=5),
        isSizeLimited=st.booleans(),
    ),
    numbers=st.lists(st.integers(1, 8), unique=True, max_size=4),
    before=st.binary(max_size=20),
)
def test_picked_fields_are_those_that_a_reader_finds(
    segment: SegmentObject, numbers: list[int], before: bytes
) -> None:
    group = varint(9 << 3 | GROUP_START) + varint(1 << 3 | VARINT) + b"\x07"
    payload = segment.SerializeToString() + group + varint(9 << 3 | GROUP_END)
    payload += varint(1000 << 3 | LENGTH) + varint(len(before), padding=1) + before
    found = pick_fields(payload, numbers, len(numbers))
    present = {descriptor.number for descriptor, _ in segment.ListFields()}
    assert found.keys() == present.intersection(numbers)
    read = SegmentObject.FromString(b"".join(found.values()))
    for descriptor, value in segment.ListFields():
        if descriptor.number in found:
            assert getattr(read, descriptor.name) == value
    assert pick_fields(memoryview(payload), numbers, len(numbers)) == found


@given(payload=st.binary(max_size=60), numbers=st.lists(st.integers(1, 31), max_size=4))
def test_picking_never_raises_and_shows_only_what_stands_there(
    payload: bytes, numbers: list[int]
) -> None:
    for number, raw in pick_fields(payload, numbers, len(numbers)).items():
        assert number in numbers
        assert raw in payload


def test_picking_stops_at_what_it_needs() -> None:
    first = varint(1 << 3 | LENGTH) + b"\x01a"
    assert pick_fields(first + b"\xff" * 100, (1,), 1) == {1: first}
    assert pick_fields(b"\xff" * 100 + first, (1,), 1) == {}
    assert pick_fields(first[:-1], (1,), 1) == {}


@given(messages)
def test_what_is_split_apart_is_the_elements_and_all_the_rest(payload: bytes) -> None:
    apart = split_apart(payload, 1)
    assert apart is not None
    rest, elements = apart
    assert elements == judge(payload)
    assert split_repeated(rest, 1) == []
    for number in range(2, 21):
        assert split_repeated(rest, number) == split_repeated(payload, number)
    whole = rest + b"".join(framed(1, element) for element in elements)
    assert judge(whole) == elements
    assert split_apart(whole, 1) == apart


@given(st.one_of(st.binary(max_size=64), messages.map(lambda payload: payload[:-1])))
def test_splitting_apart_refuses_what_splitting_refuses(payload: bytes) -> None:
    apart = split_apart(payload, 1)
    assert (None if apart is None else apart[1]) == split_repeated(payload, 1)


@given(st.integers(1, 2**29 - 1), st.binary(max_size=300))
def test_a_framed_element_is_a_field_of_its_number(number: int, element: bytes) -> None:
    assert framed(number, element) == delimited(number, element)


@st.composite
def mutations(draw: st.DrawFn) -> bytes:
    """A message with some bytes changed, doubled, taken out or put in: nearly one."""
    payload = bytearray(draw(messages))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(payload)))
        length = draw(st.integers(0, 3))
        payload[at : at + length] = draw(st.one_of(st.binary(max_size=3), messages))
    return bytes(payload)


@given(st.one_of(messages, mutations(), st.binary(max_size=64)))
def test_sound_at_top_is_what_can_be_split_and_protobuf_takes_it(payload: bytes) -> None:
    told = sound_at_top(payload)
    assert told is (split_repeated(payload, 1) is not None)
    assert not told or judge(payload) is not None


@given(messages, st.data())
def test_a_torn_message_is_sound_at_top_exactly_when_protobuf_says_so(
    payload: bytes, data: st.DataObject
) -> None:
    torn = payload[: data.draw(st.integers(0, len(payload)))]
    assert sound_at_top(torn) is (judge(torn) is not None)


def test_lengths_of_every_size_are_walked_over() -> None:
    for length in (0, 1, 127, 128, 16_383, 16_384, 70_000):
        whole = delimited(3, bytes(length)) + field(2, VARINT, varint(1))
        assert sound_at_top(whole)
        assert not sound_at_top(whole[:-1])
        assert not sound_at_top(whole[: length + 1])


def padded(value: int, size: int) -> bytes:
    """A varint of exactly so many bytes."""
    return b"".join(
        bytes([value >> 7 * at & 0x7F | (0x80 if at < size - 1 else 0)]) for at in range(size)
    )


# Each may wrap round to something small, or below zero, in a reader of 32 or 64 bits.
HUGE_LENGTHS = [
    padded(near + more, size)
    for near, sizes in ((2**31, (5, 10)), (2**32, (5, 10)), (2**63, (10,)), (2**64, (10,)))
    for more in (-12, -2, -1, 0, 1, 12)
    for size in sizes
    if (near + more).bit_length() <= 7 * size
]


def test_a_huge_length_at_the_top_is_refused_wherever_it_stands() -> None:
    assert b"\xff" * 9 + b"\x01" in HUGE_LENGTHS
    for length in HUGE_LENGTHS:
        for before in (b"", delimited(2, b"x"), field(3, VARINT, varint(7))):
            for tag in (1, 3, 15, 16, 2**29 - 1):
                for behind in (b"", b"\0", bytes(200)):
                    payload = before + field(tag, LENGTH, length) + behind
                    assert not sound_at_top(payload), payload.hex()
                    assert split_repeated(payload, tag) is None, payload.hex()
                    assert split_apart(payload, tag) is None, payload.hex()
                    assert judge(payload) is None, payload.hex()


def test_nothing_inside_a_field_is_looked_at() -> None:
    spans = [field(6, LENGTH, length) for length in HUGE_LENGTHS]
    spans += [b"\xff", b"\x0b", b"\x0c", b"\x0e", b"\x02\x00", b"\x12\x05a"]
    for span in spans:
        segment = delimited(3, span)
        assert sound_at_top(segment), segment.hex()
        with pytest.raises(DecodeError):
            SegmentObject.FromString(segment)
    not_utf_8 = delimited(1, b"\xff\xfe")
    assert sound_at_top(not_utf_8)
