"""How much a payload would weigh as a message, told before it is one.

Two bytes are an empty span, which takes 116 as an object: 2 MB of them would take a satellite to
three times its limit. So the fields of a large payload are counted, those of its parts included,
by their tags alone.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from skyfarer.base.units import KIB

LIGHT_BYTES: Final = 64 * KIB  # whatever is in it, 4 MB as objects
FIELDS_MAX: Final = 100_000  # 12 MB as objects; the walk to there takes some 0.1 s
_VARINT, _LENGTH = 0, 2
_FIXED_BYTES: Final = {1: 8, 5: 4}

Parts = dict[int, Any]


def too_heavy(payload: bytes | memoryview, descriptor: Any) -> bool:
    """Whether it has more than FIELDS_MAX fields; to be asked of what is above LIGHT_BYTES.

    Where it is malformed the count ends, and so would the parser. Never raises.
    """
    try:
        return _has_more_fields(payload, _parts(descriptor), FIELDS_MAX)
    except IndexError:
        return False


@cache
def _parts(descriptor: Any) -> Parts:
    """Field number → the descriptor of the messages in it."""
    fields = descriptor.fields_by_number.items()
    return {number: field.message_type for number, field in fields if field.message_type}


def _has_more_fields(payload: bytes | memoryview, parts: Parts, fields_max: int) -> bool:
    """Groups are walked as if their fields stood beside them."""
    around: list[tuple[int, Parts]] = []
    position, end = 0, len(payload)
    for _ in range(fields_max):
        while position >= end:
            if not around:
                return False
            end, parts = around.pop()
        tag, position = _varint(payload, position)
        wire_type = tag & 7
        if wire_type == _LENGTH:
            length, position = _varint(payload, position)
            part = parts.get(tag >> 3)
            if part is None:
                position += length
            else:
                around.append((end, parts))
                end, parts = position + length, _parts(part)
        elif wire_type == _VARINT:
            position = _varint(payload, position)[1]
        else:
            position += _FIXED_BYTES.get(wire_type, 0)
    return True


def _varint(payload: bytes | memoryview, position: int) -> tuple[int, int]:
    value = payload[position]
    if value < 0x80:
        return value, position + 1
    value, shift = value & 0x7F, 7
    while True:
        position += 1
        byte = payload[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80 or shift > 63:
            return value, position + 1
        shift += 7
