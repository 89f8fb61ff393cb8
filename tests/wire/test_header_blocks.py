"""Remembered header blocks, judged by the library that reads each of them anew."""

from __future__ import annotations

from hpack import Decoder, Encoder, HPACKError, InvalidTableIndex
from hypothesis import given
from hypothesis import strategies as st

from skyfarer.base.units import KIB
from skyfarer.wire.header_blocks import BLOCK_BYTES_MAX, HeaderBlocks

LIST_BYTES_MAX = 16 * KIB
CALL = [(":method", "POST"), (":path", "/collect"), ("te", "trailers")]

names = st.sampled_from([":path", "te", "user-agent", "grpc-timeout", "x-long"])
values = st.one_of(st.sampled_from(["POST", "trailers", "5S"]), st.text("ab", max_size=150))
header_lists = st.lists(st.tuples(names, values, st.booleans()), max_size=5)
sizes = st.sampled_from([0, 64, 4096])


def read(decoder: Decoder, block: bytes) -> object:
    try:
        return list(decoder.decode(block, raw=True))
    except HPACKError as error:
        return type(error)


@given(st.data())
def test_every_block_is_read_as_by_the_library_however_often_it_comes(data: st.DataObject) -> None:
    """Blocks of an encoder, whose table has another size now and then, bytes that nobody encoded,
    and all of these again: whoever sends them may do so at any time."""
    encoder, plain, ours = Encoder(), Decoder(LIST_BYTES_MAX), HeaderBlocks(LIST_BYTES_MAX)
    came = [encoder.encode(CALL), data.draw(st.binary(max_size=12))]
    for _ in range(data.draw(st.integers(1, 15))):
        if data.draw(st.booleans()):
            encoder.header_table_size = data.draw(sizes)
        if data.draw(st.booleans()):
            came.append(encoder.encode(data.draw(header_lists)))
        block = data.draw(st.sampled_from(came))
        expected = read(plain, block)
        assert read(ours, block) == expected
        assert ours.header_table.dynamic_entries == plain.header_table.dynamic_entries
        if isinstance(expected, type):
            return  # such a connection is over


def test_a_block_is_read_once_until_the_table_changes() -> None:
    encoder, blocks = Encoder(), HeaderBlocks(LIST_BYTES_MAX)
    blocks.decode(encoder.encode(CALL))
    again = encoder.encode(CALL)
    first = blocks.decode(again, raw=True)
    assert blocks._known == {(again, True): first}
    assert blocks.decode(again, raw=True) == first
    assert blocks.decode(again, raw=True) is not first, "who got it may do with it as he likes"
    blocks.decode(encoder.encode([("x-new", "1")]))
    assert blocks._known == {}


def test_what_is_remembered_is_bounded() -> None:
    blocks = HeaderBlocks(LIST_BYTES_MAX)
    for number in range(50):
        blocks.decode(b"\x00\x01a\x01%c" % number)
    long = bytes([0, 1, ord("a"), 0x7F, BLOCK_BYTES_MAX - 0x7F]) + b"b" * BLOCK_BYTES_MAX
    assert blocks.decode(long) == [("a", "b" * BLOCK_BYTES_MAX)]
    assert len(blocks._known) <= 2
    assert all(len(block) <= BLOCK_BYTES_MAX for block, _ in blocks._known)


def test_the_same_bytes_mean_another_header_when_the_table_is_another() -> None:
    newest, blocks = b"\xbe", HeaderBlocks(LIST_BYTES_MAX)
    for name in (b"a", b"b"):
        blocks.decode(b"\x40\x01%b\x01x" % name)
        assert read(blocks, newest) == read(blocks, newest) == [(name, b"x")]
    blocks.decode(b"\x20")  # the table has room for nothing any more
    assert read(blocks, newest) is InvalidTableIndex
