"""The little of protobuf that writing a message takes: three of its wire types.

A program that makes a few kinds of message of a few fields does without the library: a sidecar
would pay for it with several megabytes of its 30 and an object per record.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final

HEADS_MAX: Final = 4096

_pack_double = struct.Struct("<d").pack
_VARINT, _FIXED64, _DELIMITED = 0, 1, 2
_ONE_BYTE: Final = [bytes([number]) for number in range(0x80)]


def varint(number: int) -> bytes:
    """Of a number from 0 up."""
    if number < 0x80:
        return _ONE_BYTE[number]
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


@lru_cache(HEADS_MAX)
def head(field: int, length: int) -> bytes:
    """What stands before the `length` bytes of a string or a message."""
    return varint(field << 3 | _DELIMITED) + varint(length)


def delimited(field: int, data: bytes) -> bytes:
    """A string or a message, also an empty one."""
    return head(field, len(data)) + data


def text(field: int, value: str | bytes) -> bytes:
    """A string; nothing for an empty one, as proto3 has it."""
    data = value.encode("utf-8", "replace") if isinstance(value, str) else value
    return delimited(field, data) if data else b""


def number(field: int, value: int) -> bytes:
    """An int64 or bool from 0 up; nothing for 0."""
    return varint(field << 3 | _VARINT) + varint(value) if value else b""


def double(field: int, value: float) -> bytes:
    """Nothing for 0.0."""
    return varint(field << 3 | _FIXED64) + _pack_double(value) if value else b""
