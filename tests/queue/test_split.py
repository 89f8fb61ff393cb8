from __future__ import annotations

from itertools import accumulate, pairwise

import pytest

from skyfarer.base.units import MIB
from skyfarer.queue.disk import BUFFERS_PER_WRITE_MAX
from skyfarer.queue.layout import Geometry
from skyfarer.queue.split import LITTLE, PIECE_BYTES, Part, Piece, pieces, split

PAYLOAD_OFFSET = 4 * PIECE_BYTES


def cut(lengths: list[int], start: int = 0) -> tuple[list[bytes], list[Piece]]:
    payloads = [bytes([n % 251]) * length for n, length in enumerate(lengths)]
    offsets = list(accumulate(lengths, initial=PAYLOAD_OFFSET + start))
    return payloads, list(pieces(payloads, offsets))


@pytest.mark.parametrize("start", [0, 1, 4096, PIECE_BYTES - 1])
@pytest.mark.parametrize(
    "lengths",
    [
        [0],
        [7],
        [8192] * 100,
        [7777] * 100,
        [0, PIECE_BYTES, 0, 0, 1, PIECE_BYTES - 1, 0],
        [3 * PIECE_BYTES + 5, 9],
        [1] * (2 * BUFFERS_PER_WRITE_MAX + 3),
    ],
    ids=lambda lengths: f"{len(lengths)} of {max(lengths)}",
)
def test_the_pieces_of_a_batch_are_its_bytes_back_to_back(start, lengths):
    payloads, found = cut(lengths, start)
    assert b"".join(b"".join(piece.buffers) for piece in found) == b"".join(payloads)
    assert [sum(map(len, piece.buffers)) for piece in found] == [piece.size for piece in found]
    assert found[0].offset == PAYLOAD_OFFSET + start
    assert all(one.offset + one.size == next_.offset for one, next_ in pairwise(found))
    assert all(len(piece.buffers) <= BUFFERS_PER_WRITE_MAX for piece in found)


@pytest.mark.parametrize("start", [0, 1, 5000])
def test_a_piece_ends_on_a_multiple_of_the_piece_size_or_with_the_batch(start):
    *but_last, last = cut([7777] * 100, start)[1]
    assert all((piece.offset + piece.size) % PIECE_BYTES == 0 for piece in but_last)
    assert last.is_whole


def test_records_that_end_in_a_piece_are_its_buffers_but_for_one_that_goes_on():
    lengths = [PIECE_BYTES // 3 + 1] * 20
    ended = [len(piece.buffers) - (not piece.is_whole) for piece in cut(lengths)[1]]
    assert sum(ended) == len(lengths)


SHAPE = Geometry(16 * MIB, 4)
LITTLE_BYTES = SHAPE.payload_bytes // LITTLE
LITTLE_SLOTS = SHAPE.slots // LITTLE


@pytest.mark.parametrize(
    ("slots", "room"), [(SHAPE.slots, LITTLE_BYTES), (LITTLE_SLOTS, SHAPE.payload_bytes), (0, 0)]
)
def test_a_batch_is_left_whole_where_little_is_left_for_its_beginning(slots, room):
    lengths = [8192] * (LITTLE_SLOTS // 2)
    whole = [Part(0, 0, 0), Part(0, len(lengths), sum(lengths))]
    assert split(lengths, slots, room, SHAPE, whole=True) == whole


@pytest.mark.parametrize("room", [LITTLE_BYTES, LITTLE_BYTES + LITTLE])
@pytest.mark.parametrize("whole", [False, True])
def test_a_batch_is_split_where_that_is_not_so_or_it_fits_no_segment_whole(room, whole):
    lengths = [room // 2] * (2 * LITTLE + 2)
    first, second, *_ = split(lengths, SHAPE.slots, room, SHAPE, whole)
    assert (first.begin, first.end) == (0, 2)
    assert second.begin == 2
