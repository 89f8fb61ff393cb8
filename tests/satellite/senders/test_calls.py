"""However a batch is cut, each record is in one message, and its number can be read back."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from skyfarer.satellite.contracts import Batch
from skyfarer.satellite.senders import fields
from skyfarer.satellite.senders.calls import joined, pieces
from skyfarer.satellite.senders.numbering import (
    FIRST_SEQUENCE_KEY,
    LISTED_RECORDS_MAX,
    SEQUENCES_KEY,
    numbered,
)
from skyfarer.satellite.senders.taken import Taken
from skyfarer.wire import messages
from skyfarer.wire.rpc import Kind

KINDS = (Kind.SEGMENT, Kind.INSTANCE_PING, Kind.LOG, Kind.METER, Kind.METER_COLLECTION)


def payload(kind: int, origin: int, number: int) -> bytes:
    if kind == Kind.LOG:
        data = messages.log.LogData(service=f"service-{origin}", timestamp=number)
        return data.SerializeToString()
    meter = messages.meter.MeterData(serviceInstance=f"instance-{origin}", timestamp=number % 3)
    if kind == Kind.METER_COLLECTION:
        return messages.meter.MeterDataCollection(meterData=[meter]).SerializeToString()
    return meter.SerializeToString()


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    kind = draw(st.sampled_from(KINDS))
    first = draw(st.integers(0, 2**40))
    origins = draw(st.lists(st.integers(0, 3), min_size=1, max_size=40))
    size = len(origins) * draw(st.sampled_from([1, 1, 40]))
    payloads = tuple(payload(kind, origins[n % len(origins)], n) for n in range(size))
    if draw(st.booleans()):
        return Batch(first, kind, payloads)
    gaps = draw(st.lists(st.integers(0, 2), min_size=len(origins), max_size=len(origins)))
    kept, at = [], first
    for index in range(size):
        at += gaps[index % len(gaps)]
        kept.append(at)
        at += 1
    return Batch(first, kind, payloads, tuple(kept), at + 1)


def read_back(metadata: dict[str, str], count: int) -> list[list[int]]:
    """The records of each message, as an upstream would read them."""
    first = int(metadata[FIRST_SEQUENCE_KEY])
    text = metadata.get(SEQUENCES_KEY)
    if text is None:
        return [[first + index] for index in range(count)]
    found: list[list[int]] = []
    for item in re.findall(r"\([^)]*\)|[^,]+", text):
        numbers = []
        for run in item.strip("()").split(","):
            low, _, high = run.partition("-")
            numbers += range(first + int(low), first + int(high or low) + 1)
        found += [numbers] if item.startswith("(") else [[number] for number in numbers]
    return found


@settings(deadline=None)
@given(batches(), st.booleans(), st.sets(st.integers(0, 1600)))
def test_each_record_left_is_in_one_message_whose_numbers_say_so(
    batch: Batch, sticky: bool, taken_before: set[int]
) -> None:
    taken = Taken()
    taken.add(batch, [index for index in taken_before if index < len(batch.payloads)])
    left = taken.left(batch)
    calls = pieces(batch, left, sticky)
    keyed = [piece for piece in calls if piece.key is not None]
    calls = [*(piece for piece in calls if piece.key is None), *joined(keyed)]
    seen: list[int] = []
    for call in calls:
        metadata = dict(numbered("queue", batch, call.indexes))
        assert len(metadata.get(SEQUENCES_KEY, "")) < 8 * LISTED_RECORDS_MAX
        records = read_back(metadata, len(call.messages))
        assert len(records) == len(call.messages)
        seen += [number for numbers in records for number in numbers]
    assert sorted(seen) == [batch.numbers[index] for index in left]


@settings(deadline=None)
@given(batches(), st.booleans())
def test_no_message_is_changed_but_for_meters_that_are_packed(batch: Batch, sticky: bool) -> None:
    sent = [
        bytes(one)
        for piece in pieces(batch, range(len(batch.payloads)), sticky)
        for one in piece.messages
    ]
    if batch.kind == Kind.METER:
        sent = [
            one.SerializeToString()
            for message in sent
            for one in messages.meter.MeterDataCollection.FromString(message).meterData
        ]
    assert sorted(sent) == sorted(batch.payloads)


@given(st.binary(max_size=60), st.lists(st.integers(1, 15), min_size=1, max_size=3))
def test_whatever_a_payload_is_looking_into_it_does_no_harm(raw: bytes, path: list[int]) -> None:
    assert isinstance(fields.first(raw, tuple(path)), bytes)
    assert isinstance(fields.common(memoryview(raw), tuple(path)), bytes)


@given(st.integers(1, 15), st.binary(max_size=300))
def test_a_field_that_is_written_is_read(number: int, value: bytes) -> None:
    field = fields.length_delimited(number, len(value)) + value
    assert fields.first(b"\x80\x01\x01" + field, (number,)) == value
