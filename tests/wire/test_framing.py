from __future__ import annotations

import gzip
import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfarer.wire.framing import BLOCK_BYTES, Splitter, blocks, prefixed
from skyfarer.wire.status import Status, StatusError, decode_message, encode_message

MESSAGES = st.lists(st.binary(max_size=40), max_size=12)


def split(data: bytes, cuts: list[int], splitter: Splitter) -> list[bytes]:
    messages: list[bytes] = []
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for start, end in pairwise(edges):
        splitter.feed(data[start:end], messages)
    return messages


def compressed(message: bytes) -> bytes:
    return b"\x01" + len(message).to_bytes(4, "big") + message


@given(messages=MESSAGES, cuts=st.lists(st.integers(0, 10_000), max_size=60))
def test_any_chunking_yields_the_same_messages(messages: list[bytes], cuts: list[int]) -> None:
    splitter = Splitter(bytes_max=40)
    assert split(b"".join(map(prefixed, messages)), cuts, splitter) == messages
    assert splitter.held_bytes == 0


@given(messages=MESSAGES, cuts=st.lists(st.integers(0, 10_000), max_size=60), gz=st.booleans())
def test_any_chunking_yields_the_same_inflated_messages(
    messages: list[bytes], cuts: list[int], gz: bool
) -> None:
    deflate = gzip.compress if gz else zlib.compress
    data = b"".join(compressed(deflate(message)) for message in messages)
    splitter = Splitter(bytes_max=200, encoding=b"gzip" if gz else b"deflate")
    assert split(data, cuts, splitter) == messages


@given(messages=MESSAGES)
def test_packed_blocks_split_into_the_messages_packed(messages: list[bytes]) -> None:
    views = [memoryview(message) for message in messages]
    assert split(b"".join(blocks(views)), [], Splitter(bytes_max=40)) == messages


def test_blocks_are_large_and_few() -> None:
    sizes = [len(block) for block in blocks([bytes(1000)] * 1000)]
    assert sum(sizes) == 1005 * 1000
    assert all(BLOCK_BYTES <= size < BLOCK_BYTES + 1005 for size in sizes[:-1])


def test_a_message_at_the_bound_is_taken_and_one_byte_more_is_not() -> None:
    messages: list[bytes] = []
    Splitter(bytes_max=100).feed(prefixed(bytes(100)), messages)
    assert messages == [bytes(100)]
    with pytest.raises(StatusError) as caught:
        Splitter(bytes_max=100).feed(prefixed(bytes(101))[:5], messages)
    assert caught.value.status is Status.RESOURCE_EXHAUSTED


@pytest.mark.parametrize("cut", range(1, 5))
def test_an_oversize_prefix_that_comes_in_two_parts_is_refused_when_it_is_whole(cut: int) -> None:
    splitter = Splitter(bytes_max=100)
    prefix = prefixed(bytes(101))[:5]
    splitter.feed(prefix[:cut], [])
    with pytest.raises(StatusError):
        splitter.feed(prefix[cut:], [])


def test_messages_before_an_oversize_one_are_still_given() -> None:
    messages: list[bytes] = []
    with pytest.raises(StatusError):
        Splitter(bytes_max=10).feed(prefixed(b"good") + prefixed(bytes(11)), messages)
    assert messages == [b"good"]


def test_an_inflated_message_at_the_bound_is_taken_and_one_byte_more_is_not() -> None:
    messages: list[bytes] = []
    Splitter(1000, b"gzip").feed(compressed(gzip.compress(bytes(1000))), messages)
    assert messages == [bytes(1000)]
    with pytest.raises(StatusError) as caught:
        Splitter(1000, b"gzip").feed(compressed(gzip.compress(bytes(1001))), messages)
    assert caught.value.status is Status.RESOURCE_EXHAUSTED


@pytest.mark.parametrize(
    "message",
    [
        b"not gzip",
        gzip.compress(b"cut short")[:-3],
        gzip.compress(b"more behind") + b"x",
        b"",
    ],
)
def test_a_message_that_cannot_be_inflated_ends_the_call(message: bytes) -> None:
    with pytest.raises(StatusError) as caught:
        Splitter(1000, b"gzip").feed(compressed(message), [])
    assert caught.value.status is Status.INTERNAL


def test_a_compressed_message_without_an_encoding_ends_the_call() -> None:
    with pytest.raises(StatusError):
        Splitter(1000).feed(compressed(gzip.compress(b"x")), [])


def test_an_encoding_we_do_not_know_is_unimplemented() -> None:
    with pytest.raises(StatusError) as caught:
        Splitter(1000, b"snappy")
    assert caught.value.status is Status.UNIMPLEMENTED


@given(st.text(max_size=200))
def test_a_status_message_survives_the_header(message: str) -> None:
    encoded = encode_message(message)
    assert all(0x20 <= byte <= 0x7E for byte in encoded)
    assert decode_message(encoded) == message.encode("utf-8", "replace").decode()
