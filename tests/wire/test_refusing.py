"""R1 of the fault plan, at a server that refuses what is no protobuf message."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from skyfarer.testing.traces import segment
from skyfarer.wire.framing import prefixed
from skyfarer.wire.rpc import RPCS, Handling, Kind
from skyfarer.wire.split import join_repeated, sound_at_top

COLLECT = "/skywalking.v3.TraceSegmentReportService/collect"
IN_SYNC = "/skywalking.v3.TraceSegmentReportService/collectInSync"
LOGS = "/skywalking.v3.LogReportService/collect"
KEPT = [rpc for rpc in RPCS if rpc.handling is Handling.KEEP]
OK, INVALID = b"0", b"3"
GOOD = segment("shop", "shop-1", "/pay", 1_794_744_000_000, 10).SerializeToString()
BAD = GOOD[:-1]
ENDLESS = bytes.fromhex("0a" + "ff" * 9 + "01")
NESTED = bytes.fromhex("1a 0b 32" + "ff" * 9 + "01")  # the same in a span
BYTES = Random(1)

Serve = Callable[..., Any]
RawClient = Callable[..., Any]


def call(client: Any, path: str, *messages: bytes, **headers: str) -> bytes:
    stream = client.open(path, **headers)
    client.send(stream, b"".join(map(prefixed, messages)), end=True)
    return bytes(client.trailers(stream)[b"grpc-status"])


def refused(rpc: str, count: int) -> str:
    return f'receiver_messages_refused_total{{rpc="{rpc}",reason="malformed"}} {count}'


def test_noise_on_every_kept_path_is_refused_counted_and_not_kept(
    serve: Serve, raw: RawClient
) -> None:
    serving = serve(refuse_malformed=True)
    client = raw(serving)
    noise = [b"\xff" * 40, b"\x0a\xff\xff\xff\xff\x0f", b"\x0b" * 200, BAD]
    noise += [b"\xff" + BYTES.randbytes(size) for size in (1, 7, 300, 5000)]
    for rpc in KEPT:
        assert {call(client, rpc.path, one) for one in noise} == {INVALID}, rpc.path
        assert serving.counted(refused(rpc.path, len(noise))), rpc.path
    assert serving.appends == []
    assert call(client, COLLECT, GOOD) == OK, "the connection is kept"
    assert serving.kept(Kind.SEGMENT) == [GOOD]


def test_a_message_that_is_broken_in_a_nested_one_is_kept_for_the_analysis(
    serve: Serve, raw: RawClient
) -> None:
    serving = serve(refuse_malformed=True)
    client = raw(serving)
    assert call(client, COLLECT, ENDLESS) == INVALID
    assert call(client, COLLECT, NESTED, GOOD) == OK
    assert serving.kept(Kind.SEGMENT) == [NESTED, GOOD]
    assert serving.counted(refused(COLLECT, 1))


def test_an_element_of_a_collection_is_judged_at_its_own_top(serve: Serve, raw: RawClient) -> None:
    serving = serve(refuse_malformed=True)
    client = raw(serving)
    assert call(client, IN_SYNC, join_repeated([GOOD, ENDLESS], 1)) == INVALID
    assert serving.appends == []
    assert call(client, IN_SYNC, join_repeated([GOOD, NESTED], 1)) == OK
    assert serving.kept(Kind.SEGMENT) == [GOOD, NESTED]


def test_what_came_before_the_bad_one_is_kept_and_nothing_behind_it(
    serve: Serve, raw: RawClient
) -> None:
    serving = serve(refuse_malformed=True)
    client = raw(serving)
    stream = client.open(COLLECT)
    client.send(stream, prefixed(GOOD) * 3)
    client.send(stream, prefixed(GOOD) + prefixed(BAD) + prefixed(GOOD))
    trailers = client.trailers(stream)
    assert trailers[b"grpc-status"] == INVALID
    assert trailers[b"grpc-message"].startswith(b"message 5 of the call is no well-formed protobuf")
    assert serving.kept(Kind.SEGMENT) == [GOOD] * 4
    assert serving.counted(refused(COLLECT, 1))


def test_a_call_beside_it_in_the_same_read_is_not_touched(serve: Serve, raw: RawClient) -> None:
    serving = serve(refuse_malformed=True)
    client = raw(serving)
    first, second, third = (client.open(COLLECT) for _ in range(3))
    for stream, message in ((first, GOOD), (second, BAD), (third, GOOD)):
        client.h2.send_data(stream, prefixed(message), end_stream=True)
    client.flush()
    told = [client.trailers(stream)[b"grpc-status"] for stream in (first, second, third)]
    assert told == [OK, INVALID, OK]
    assert serving.kept(Kind.SEGMENT) == [GOOD, GOOD]


def test_a_collection_is_refused_whole_for_one_bad_element(serve: Serve, raw: RawClient) -> None:
    serving = serve(refuse_malformed=True)
    client = raw(serving)
    assert call(client, IN_SYNC, join_repeated([GOOD, BAD, GOOD], 1)) == INVALID
    assert serving.appends == []
    assert call(client, IN_SYNC, join_repeated([GOOD, GOOD], 1)) == OK
    assert serving.kept(Kind.SEGMENT) == [GOOD, GOOD]


@pytest.mark.parametrize("numbered", [False, True])
def test_inflated_numbered_and_identified_messages_are_judged_alike(
    serve: Serve, raw: RawClient, numbered: bool
) -> None:
    """Of logs a record is more than its message: the service, if it lacks that."""
    serving = serve(refuse_malformed=True)
    numbers = {"skyfarer_producer": "sat", "skyfarer_first_sequence": "7"} if numbered else {}
    named, unnamed, bad = b"\x12\x01s\x1a\x01i", b"\x08\x01", b"\x08"
    client = raw(serving)
    stream = client.open(LOGS, grpc_encoding="deflate", **numbers)
    for message in (named, unnamed, bad):
        packed = prefixed(zlib.compress(message))
        client.h2.send_data(stream, b"\x01" + packed[1:])
    client.flush()
    assert client.trailers(stream)[b"grpc-status"] == INVALID
    assert serving.kept(Kind.LOG) == [named, named + unnamed]


def test_without_the_option_everything_is_kept_as_it_came(serve: Serve, raw: RawClient) -> None:
    serving = serve()
    client = raw(serving)
    assert call(client, COLLECT, GOOD, BAD, b"\xff") == OK
    assert serving.kept(Kind.SEGMENT) == [GOOD, BAD, b"\xff"]
    assert "receiver_messages_refused_total{" not in serving.registry.render()


def test_a_thousand_mutations_are_kept_or_refused_by_what_they_are(
    serve: Serve, raw: RawClient
) -> None:
    serving = serve(refuse_malformed=True)
    client = raw(serving)
    mutated = [mutation() for _ in range(1000)]
    good = [one for one in mutated if sound_at_top(one)]
    assert 50 < len(good) < 950, "both ways are taken"
    for one in mutated:
        assert call(client, COLLECT, one) == (OK if one in good else INVALID)
    assert serving.kept(Kind.SEGMENT) == good
    assert serving.counted(refused(COLLECT, len(mutated) - len(good)))


def mutation() -> bytes:
    """Of a segment, at a place where its own fields are rather than those of a span."""
    payload = bytearray(GOOD)
    at = BYTES.choice((0, 1, len(GOOD) - BYTES.randrange(1, 20), BYTES.randrange(len(GOOD))))
    payload[at : at + BYTES.randrange(3)] = BYTES.randbytes(BYTES.randrange(3))
    return bytes(payload)
