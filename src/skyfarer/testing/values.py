"""Values at the ends of what a protobuf field can hold, and beyond what an agent may mean."""

from __future__ import annotations

import struct
from random import Random
from typing import Any, Final

_CONTINUED: Final = 0x80


def varint(value: int) -> bytes:
    """The number as protobuf writes it, of whatever size."""
    if value < _CONTINUED:
        return bytes((value,))
    encoded = bytearray()
    while value >= _CONTINUED:
        encoded.append(value & 0x7F | _CONTINUED)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def padded(encoded: bytes, size: int) -> bytes:
    """The same number in so many bytes, if it does not need more."""
    if len(encoded) >= size:
        return encoded
    filler = bytes((_CONTINUED,)) * (size - len(encoded) - 1)
    return encoded[:-1] + bytes((encoded[-1] | _CONTINUED,)) + filler + b"\0"


def near(*numbers: int) -> tuple[int, ...]:
    return tuple(number + delta for number in numbers for delta in (-2, -1, 0, 1) if number + delta)


LENGTHS: Final = (
    *(varint(number) for number in near(2**31, 2**32, 2**63)),
    *(varint(number) for number in (2**16, 2**20, 2**24, 2**30, 2**33, 2**62, 2**64 - 1)),
    *(varint(2**64 - number) for number in (2, 3, 8, 16, 100, 2**31)),
    *(b"\xff" * 9 + b"\x7f", b"\xff" * 10 + b"\x01", b"\xff" * 5, b"\x80" * 10),
)
INTEGERS: Final = tuple(
    varint(number)
    for number in (0, 1, 2, 3, 99, *near(2**7, 2**31, 2**32, 2**53, 2**63), 2**64 - 1, 2**70 - 1)
)
YEAR_1, YEAR_9999 = -62_135_596_800_000, 253_402_300_799_999
TIMES: Final = (
    *(0, -1, 1, 999, 2**31, 2**42 - 1, 2**42, 2**42 + 1, 2**53, 2**63 - 1, -(2**63)),
    *(YEAR_1, YEAR_1 * 1_000, YEAR_9999, YEAR_9999 + 1, YEAR_9999 * 1_000, YEAR_9999 * 10_000),
    *(1_794_744_000, 1_794_744_000_000_000, 1_794_744_000_000_000_000),
)
"""In milliseconds, and what comes of the wrong unit."""
_NUMBERS: Final = (
    *(float("nan"), float("inf"), float("-inf"), 0.0, -0.0, -1.0, 5e-324, 1.7e308, -1.7e308),
    *(2.0**31, 2.0**53 + 2, 2.0**63, -(2.0**63), 1e19, 1e300),
)
DOUBLES: Final = (
    *(struct.pack("<d", number) for number in _NUMBERS),
    *(b"\x01\0\0\0\0\0\xf0\x7f", b"\xff" * 8),  # NaNs that nobody makes
)
FIXED64S: Final = (*(struct.pack("<Q", number % 2**64) for number in TIMES), *DOUBLES)
FIXED32S: Final = (b"\0\0\xc0\x7f", b"\0\0\x80\x7f", b"\0\0\x80\xff", b"\xff" * 4, b"\0" * 4)
TEXTS: Final = (
    *(b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xed\xb0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"),
    *(b"\0", b"\x80", "\u202e\ufeff".encode(), b"\x1f", b"\n\r", b"'\";--<script>", b"\xf0\x9f"),
    *(b"\xef\xbf\xbf", b" ", b"", "é".encode() * 200, b"x" * 5_000),
)


def length(random: Random, true: int) -> bytes:
    """A length that is wrong: by one, by the size of an integer, or no number at all."""
    choice = random.random()
    if choice < 0.3:
        return varint(max(true + (1 if choice < 0.15 else -1), 0))
    if choice < 0.35:
        return varint(true * 2 + 1)
    return LENGTHS[int(random.random() * len(LENGTHS))]


def odd(random: Random, place: Any) -> bytes:
    """The value of a field of that wire type, without its length; `place` is as in `mutations`."""
    if place.wire == 0:
        return _integer(random, place.field)
    if place.wire == 1:
        return FIXED64S[int(random.random() * len(FIXED64S))]
    if place.wire == 5:
        return FIXED32S[int(random.random() * len(FIXED32S))]
    text, at = TEXTS[int(random.random() * len(TEXTS))], int(random.random() * len(place.value))
    choice = random.random()
    value = bytes(place.value)
    return text if choice < 0.3 else value[:at] + text + (value[at:] if choice < 0.8 else b"")


def _integer(random: Random, field: Any) -> bytes:
    if field is not None and "time" in field.name.lower() and random.random() < 0.7:
        return varint(TIMES[int(random.random() * len(TIMES))] % 2**64)
    return INTEGERS[int(random.random() * len(INTEGERS))]
