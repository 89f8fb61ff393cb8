"""What a call says of its records: written as a satellite does, read as a receiver does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfarer.wire.framing import prefixed
from skyfarer.wire.identity import IDENTITY_BYTES_MAX
from skyfarer.wire.numbering import (
    LISTED_RECORDS_MAX,
    Number,
    Numbered,
    Numbering,
    listed,
    numbers_of,
    parsed,
)
from skyfarer.wire.rpc import Kind
from skyfarer.wire.split import join_repeated, split_repeated

LOGS = "/skywalking.v3.LogReportService/collect"
COLLECT = "/skywalking.v3.TraceSegmentReportService/collect"
IN_SYNC = "/skywalking.v3.TraceSegmentReportService/collectInSync"
V2_TRACES = "/TraceSegmentReportService/collect"
KEEP_ALIVE = "/skywalking.v3.ManagementService/keepAlive"
TIMEOUT_S = 120.0

messages = st.lists(
    st.one_of(st.integers(0, 50), st.lists(st.integers(0, 50), min_size=1, max_size=5).map(tuple)),
    min_size=1,
)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(messages, st.integers(0, 2**40))
def test_what_is_listed_is_read_as_it_was_meant(said: list[Number], first: int) -> None:
    numbers = list(numbers_of(parsed(listed(said, 0)), first))
    assert numbers == [
        one + first if isinstance(one, int) else tuple(n + first for n in one) for one in said
    ]
    assert list(numbers_of(parsed(listed(numbers, first)), first)) == numbers


def headers(producer: str, first: str, sequences: str | None = None) -> dict[bytes, bytes]:
    fields = {b"skyfarer-producer": producer.encode(), b"skyfarer-first-sequence": first.encode()}
    if sequences is not None:
        fields[b"skyfarer-sequences"] = sequences.encode()
    return fields


def test_messages_are_numbered_from_the_first_if_nothing_else_is_said() -> None:
    numbering = Numbering.of_headers(headers("queue", "70"))
    assert (numbering.producer, numbering.first) == ("queue", 70)
    assert numbering.take(2) + numbering.take(1) == [70, 71, 72]


def test_messages_beyond_the_list_have_no_number() -> None:
    numbering = Numbering.of_headers(headers("queue", "70", "1-2,(4,7-9)"))
    assert numbering.take(1) == [71]
    assert numbering.take(4) == [72, (74, 77, 78, 79), (), ()]


def test_a_run_of_any_length_takes_no_room() -> None:
    numbering = Numbering.of_headers(headers("queue", "0", "5-99999999999999999"))
    assert numbering.take(2) == [5, 6]


@pytest.mark.parametrize(
    "fields",
    [
        headers("", "0"),
        headers("q" * 65, "0"),
        headers("a b", "0"),
        headers("é", "0"),
        headers("queue", ""),
        headers("queue", "-1"),
        headers("queue", "1e3"),
        headers("queue", "9" * 18),
        headers("queue", "9" * 4000),
        *(
            headers("queue", "0", text)
            for text in (
                *("", ",", "1,", ",1", "a", "1-", "-1", "2-1", "1--2", "1-2-3", "()", "(1", "1)"),
                *("(1)(2)", "((1))", "1 ,2", "9" * 18, "(1," + "9" * 18 + ",2)", "1" * 5000),
                f"(0-{LISTED_RECORDS_MAX})",
                "(0-99999999999999999)",
            )
        ),
        {b"skyfarer-producer": b"queue"},
    ],
)
def test_what_cannot_be_read_names_nobody(fields: dict[bytes, bytes]) -> None:
    numbering = Numbering.of_headers(fields)
    assert numbering.producer == ""
    assert numbering.take(2) == [(), ()]


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.lists(st.binary(max_size=300)))
def test_elements_are_put_together_as_they_are_taken_apart(elements: list[bytes]) -> None:
    assert split_repeated(join_repeated(elements, 1), 1) == elements


class Kept:
    """An append that writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[int, str, int, list[bytes], list[Number]]] = []
        self.plain: list[bytes] = []

    def append(self, kind: int, payloads: Any) -> None:
        if isinstance(payloads, Numbered):
            assert len(payloads) == len(payloads.numbers)
            self.told.append(
                (kind, payloads.producer, payloads.first, list(payloads), payloads.numbers)
            )
        else:
            self.plain += payloads


@pytest.fixture
def kept(serve: Callable[..., Any], loop_thread: Any) -> tuple[Kept, Any]:
    serving, door = serve(), Kept()

    async def open_doors() -> None:
        paths = (LOGS, COLLECT, IN_SYNC, V2_TRACES, KEEP_ALIVE)
        serving.server.serve(dict.fromkeys(paths, door.append), None)

    loop_thread.run(open_doors())
    return door, serving


def send(serving: Any, path: str, *sent: bytes, sequences: str | None = None) -> None:
    metadata = [("skyfarer-producer", "queue"), ("skyfarer-first-sequence", "100")]
    if sequences is not None:
        metadata.append(("skyfarer-sequences", sequences))
    with grpc.insecure_channel(serving.address) as channel:
        call = channel.stream_unary(path)
        call(iter(sent), timeout=TIMEOUT_S, metadata=metadata)


def flat(door: Kept) -> list[tuple[int, bytes, Number]]:
    return [
        (kind, payload, number)
        for kind, _, _, payloads, numbers in door.told
        for payload, number in zip(payloads, numbers, strict=True)
    ]


def test_a_streams_messages_keep_their_numbers_however_many_reads_they_come_in(
    kept: tuple[Kept, Any],
) -> None:
    door, serving = kept
    sent = [b"%d" % n * 3000 for n in range(1, 100)]
    send(serving, COLLECT, *sent)
    assert flat(door) == [(Kind.SEGMENT, one, 100 + n) for n, one in enumerate(sent)]
    assert {(producer, first) for _, producer, first, _, _ in door.told} == {("queue", 100)}
    assert not door.plain
    assert serving.counted(f'receiver_messages_total{{rpc="{COLLECT}"}} 99')


def test_calls_of_one_read_are_told_apart_and_others_are_kept_as_ever(
    kept: tuple[Kept, Any], raw: Callable[..., Any]
) -> None:
    door, serving = kept
    client = raw(serving)
    said = [("skyfarer-producer", "queue"), ("skyfarer-first-sequence", "7")]
    streams = [client.open(COLLECT, *said), client.open(COLLECT), client.open(COLLECT, *said)]
    for stream in streams:
        client.h2.send_data(stream, prefixed(b"%d" % stream), end_stream=True)
    client.flush()
    assert [client.trailers(stream)[b"grpc-status"] for stream in streams] == [b"0"] * 3
    assert flat(door) == [(Kind.SEGMENT, b"1", 7), (Kind.SEGMENT, b"5", 7)]
    assert door.plain == [b"3"]


def test_each_message_gets_the_identity_of_its_stream_beside_its_number(
    kept: tuple[Kept, Any],
) -> None:
    door, serving = kept
    service, body = b"\x12\x04shop", b"\x2a\x03say"
    send(serving, LOGS, service + body, body, body, sequences="3,5-6")
    assert flat(door) == [(Kind.LOG, service + body, number) for number in (103, 105, 106)]


def test_messages_that_grow_are_appended_in_parts_and_keep_their_numbers(
    kept: tuple[Kept, Any],
) -> None:
    door, serving = kept
    service = b"\x12" + b"\xf0\xff\x03" + bytes(IDENTITY_BYTES_MAX - 16)
    send(serving, LOGS, service, *[b"\x2a\x01x"] * 300)
    assert len(door.told) > 1
    assert [number for _, _, number in flat(door)] == list(range(100, 401))


def test_both_protocols_of_one_path_keep_the_numbers_of_their_messages(
    kept: tuple[Kept, Any],
) -> None:
    door, serving = kept
    old, new = b"\x0a\x02\x0a\x00\x12\x02\x18\x01", b"\x22\x04shop"
    send(serving, V2_TRACES, new, old, new, old)
    assert sorted(flat(door)) == [
        (Kind.SEGMENT, new, 100),
        (Kind.SEGMENT, new, 102),
        (Kind.V2_SEGMENT, old, 101),
        (Kind.V2_SEGMENT, old, 103),
    ]


def test_the_elements_of_a_collection_have_its_numbers_one_by_one(kept: tuple[Kept, Any]) -> None:
    door, serving = kept
    one, two = b"\x22\x01a", b"\x22\x01b"
    send(serving, IN_SYNC, join_repeated([one, two], 1), sequences="(4,9)")
    send(serving, IN_SYNC, join_repeated([one], 1), sequences="4")
    send(serving, IN_SYNC, join_repeated([one, two], 1), sequences="4")
    assert [number for _, _, number in flat(door)] == [104, 109, 104, (), ()]


def test_a_call_that_says_nonsense_is_kept_and_names_nobody(kept: tuple[Kept, Any]) -> None:
    door, serving = kept
    send(serving, COLLECT, b"one", b"two", sequences="nonsense")
    assert flat(door) == [(Kind.SEGMENT, b"one", ()), (Kind.SEGMENT, b"two", ())]
    assert {producer for _, producer, _, _, _ in door.told} == {""}


def test_a_failed_append_fails_its_call_and_no_other(
    serve: Callable[..., Any], raw: Callable[..., Any]
) -> None:
    serving = serve()

    def fault(payloads: Any) -> None:
        if isinstance(payloads, Numbered):
            raise OSError("broken")

    serving.fault = fault
    client = raw(serving)
    said = [("skyfarer-producer", "queue"), ("skyfarer-first-sequence", "7")]
    bad, good = client.open(COLLECT, *said), client.open(COLLECT)
    for stream in (bad, good):
        client.h2.send_data(stream, prefixed(b"%d" % stream), end_stream=True)
    client.flush()
    assert client.trailers(bad)[b"grpc-status"] == b"13"
    assert client.trailers(good)[b"grpc-status"] == b"0"
