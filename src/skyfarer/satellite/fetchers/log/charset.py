"""What the bytes of a file mean, and where its lines end.

Three families. UTF-8, with ASCII inside it, is what a record needs and is only checked. Of other
encodings that write a newline as the byte 0x0A and never use that byte for anything else (Latin-1,
GBK, Big5, Shift-JIS, …), lines are cut before they are decoded. UTF-16 and UTF-32 have newlines of
two and four bytes, at places divisible by that.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from itertools import accumulate, count
from operator import add
from typing import Final

UTF_8: Final = "utf-8"
BOM: Final = codecs.BOM_UTF8

_NEWLINE = b"\n"
_STATEFUL: Final = frozenset({"utf-7", "hz", "idna", "punycode"})
# Longest marks first: that of UTF-32-LE begins with that of UTF-16-LE.
_WIDE: Final = {
    "utf-32": ((codecs.BOM_UTF32_BE, "utf-32-be"), (codecs.BOM_UTF32_LE, "utf-32-le")),
    "utf-16": ((codecs.BOM_UTF16_BE, "utf-16-be"), (codecs.BOM_UTF16_LE, "utf-16-le")),
}
_WIDE_NAMES: Final = frozenset(name for rows in _WIDE.values() for _, name in rows)


def check_encoding(name: str) -> None:
    """ValueError for what cannot be cut into lines, or is no encoding of text."""
    try:
        canonical = codecs.lookup(name).name
        plain = "\n Az".encode(canonical) == b"\n Az" and canonical not in _STATEFUL
    except (LookupError, UnicodeError, TypeError) as error:
        raise ValueError(f"encoding '{name}' is not known") from error
    if not plain and canonical not in _WIDE and canonical not in _WIDE_NAMES:
        raise ValueError(f"encoding '{name}' cannot be read line by line")


@dataclass(frozen=True, slots=True)
class Charset:
    """The encoding of one file, its byte order known."""

    codec: str

    @property
    def is_utf_8(self) -> bool:
        return self.codec == UTF_8

    @property
    def newline(self) -> bytes:
        return "\n".encode(self.codec)

    def line_ends(self, block: bytes) -> list[int]:
        """Where each whole line of the block ends, its newline included."""
        newline = self.newline
        if len(newline) > 1:
            return _aligned_ends(block, newline)
        lengths = map(len, block.split(_NEWLINE)[:-1])
        return list(map(add, accumulate(lengths), count(1)))

    def whole_characters(self, data: bytes) -> int:
        """How many of these bytes are whole characters: a cut must not go through one."""
        decoder = codecs.getincrementaldecoder(self.codec)("replace")
        decoder.decode(data)
        return len(data) - len(decoder.getstate()[0])


def charset_of(name: str, first_bytes: bytes) -> Charset:
    """The file's own byte order mark decides, if its encoding may have one; little-endian else."""
    canonical = codecs.lookup(name).name
    if canonical in ("utf-8-sig", "ascii"):
        return Charset(UTF_8)
    if canonical not in _WIDE:
        return Charset(canonical)
    for mark, codec in _WIDE[canonical]:
        if first_bytes.startswith(mark):
            return Charset(codec)
    return Charset(f"{canonical}-le")


def _aligned_ends(block: bytes, newline: bytes) -> list[int]:
    width, ends = len(newline), []
    at = block.find(newline)
    while at >= 0:
        if at % width == 0:
            ends.append(at + width)
            at += width - 1
        at = block.find(newline, at + 1)
    return ends
