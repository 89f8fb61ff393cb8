"""Which bytes of which files are about to become which records."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from skyfarer.satellite.fetchers.log.place import UNKNOWN, Place

_INTENT: Final = struct.Struct("<QqII")
_PIECE: Final = struct.Struct("<IQQQ")


class Piece(NamedTuple):
    """`length` bytes of a file from `start`; it takes `width` of a batch, which is more by a
    newline where the file had none at its end."""

    key: int
    start: int
    length: int
    width: int


@dataclass(frozen=True, slots=True)
class Intent:
    """The records from `sequence` on: record i is made of the pieces up to `ends[i]`.

    sequence u64 | before_crc i64 | pieces u32 | records u32
    | per piece: key u32, start u64, length u64, width u64 | per record: end u32 |
    """

    sequence: int
    pieces: tuple[Piece, ...]
    ends: Sequence[int]
    before_crc: int

    def encode(self) -> bytes:
        head = _INTENT.pack(self.sequence, self.before_crc, len(self.pieces), len(self.ends))
        pieces = b"".join(_PIECE.pack(*piece) for piece in self.pieces)
        return head + pieces + array("I", self.ends).tobytes()

    @classmethod
    def decode(cls, body: bytes) -> Intent:
        sequence, before_crc, pieces, records = _INTENT.unpack_from(body)
        at = _INTENT.size + pieces * _PIECE.size
        rows = _PIECE.iter_unpack(body[_INTENT.size : at])
        ends = array("I", body[at:])
        return cls(sequence, tuple(map(Piece._make, rows)), ends[:records], before_crc)

    def apply(self, writing: int, places: Mapping[int, Place]) -> int:
        """Moves the places to where a queue of `writing` records has them; how many of these
        records it has."""
        done = max(0, min(writing - self.sequence, len(self.ends)))
        if not done:
            return 0
        left = self.ends[done - 1]
        for piece in self.pieces:
            used = min(left, piece.width)
            left -= used
            place = places.get(piece.key)
            if used and place is not None:
                place.offset, place.before_crc = piece.start + min(used, piece.length), UNKNOWN
        last = places.get(self.pieces[-1].key)
        if done == len(self.ends) and last is not None:
            last.before_crc = self.before_crc
        return done
