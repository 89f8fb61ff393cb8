"""Finds top-level fields of a message without decoding it.

A record of the queue is one element of a collection, whichever way the agent sent it, and carries
its stream's identity; decoding whole messages only to encode their parts again would cost more than
all the rest of receiving them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

_VARINT, _FIXED64, _LENGTH, _GROUP_START, _GROUP_END, _FIXED32 = range(6)
_TAG_MAX = 2**32 - 1
_VARINT32_BYTES_MAX = 5
_VARINT64_BYTES_MAX = 10
# The depth at which protobuf's own parsers give up.
_GROUPS_MAX = 100
_PLAIN = (_VARINT, _LENGTH)


def split_repeated(payload: bytes, field: int) -> list[bytes] | None:
    """The elements of the repeated message, bytes or string field of that number, in order.

    None when the payload is no well-formed message; what an element holds is not looked at. Fields
    of other numbers are skipped as protobuf skips unknown ones, and so is this field when it comes
    with another wire type. Never raises.
    """
    wanted = field << 3 | _LENGTH
    elements: list[bytes] = []
    groups: list[int] = []
    position, size = 0, len(payload)
    try:
        while position < size:
            tag, position = _varint(payload, position, _VARINT32_BYTES_MAX)
            if tag == wanted and not groups:
                length, start = _varint(payload, position, _VARINT32_BYTES_MAX)
                position = start + length
                elements.append(payload[start:position])
            else:
                position = _skip(payload, position, tag, groups)
    except (IndexError, ValueError):
        return None
    return elements if position == size and not groups else None


def split_apart(payload: bytes, field: int) -> tuple[bytes, list[bytes]] | None:
    """All other fields, as they stand there, and the elements as `split_repeated` gives them.

    None when the payload is no well-formed message. A message made of the first half and any of
    the elements is read as the original would be, had it only those. Never raises.
    """
    wanted = field << 3 | _LENGTH
    others: list[bytes] = []
    elements: list[bytes] = []
    groups: list[int] = []
    position, size = 0, len(payload)
    try:
        while position < size:
            begin = position
            tag, position = _varint(payload, position, _VARINT32_BYTES_MAX)
            if tag == wanted and not groups:
                length, start = _varint(payload, position, _VARINT32_BYTES_MAX)
                position = start + length
                elements.append(payload[start:position])
            else:
                position = _skip(payload, position, tag, groups)
                others.append(payload[begin:position])
    except (IndexError, ValueError):
        return None
    return (b"".join(others), elements) if position == size and not groups else None


def framed(field: int, element: bytes) -> bytes:
    """The element as a field of that number: its tag, its length, its bytes."""
    return _as_varint(field << 3 | _LENGTH) + _as_varint(len(element)) + element


def join_repeated(elements: Iterable[bytes], field: int) -> bytes:
    """A message of nothing but these elements of that field."""
    return b"".join(framed(field, element) for element in elements)


def pick_fields(
    payload: bytes | memoryview, numbers: Container[int], count: int
) -> dict[int, bytes]:
    """Number → the field as it stands there, tag and all, of the first `count` in `numbers`.

    Looks no further than the last it needs, so the rest may be anything; what is malformed ends
    the search. Of a field that stands there twice it is the first. Never raises.
    """
    found: dict[int, bytes] = {}
    groups: list[int] = []
    position, size = 0, len(payload)
    try:
        while position < size and len(found) < count:
            start = position
            tag = payload[start]
            if tag < 0x80 and tag & 7 == _LENGTH and payload[start + 1] < 0x80:
                position = start + 2 + payload[start + 1]
            else:
                tag, position = _varint(payload, start, _VARINT32_BYTES_MAX)
                position = _skip(payload, position, tag, groups)
            if tag >> 3 in numbers and tag & 7 in _PLAIN and not groups and position <= size:
                found.setdefault(tag >> 3, bytes(payload[start:position]))
    except (IndexError, ValueError):
        return found
    return found


def walk(payload: bytes) -> Iterator[tuple[int, int, int]]:
    """(tag, where its value begins, where it ends) of each top-level field, groups left out.

    The value of a length-delimited field begins behind its length. ValueError where it turns out
    to be no message, after the fields before that.
    """
    groups: list[int] = []
    position, size = 0, len(payload)
    try:
        while position < size:
            tag, start = _varint(payload, position, _VARINT32_BYTES_MAX)
            position = _skip(payload, start, tag, groups)
            if tag & 7 == _LENGTH:
                start = _varint(payload, start, _VARINT32_BYTES_MAX)[1]
            if position <= size and not groups and tag & 7 != _GROUP_END:
                yield tag, start, position
    except IndexError:
        raise ValueError(f"cut off at {position}") from None
    if position != size or groups:
        raise ValueError(f"cut off at {position}")


def sound_at_top(payload: bytes) -> bool:
    """Says whether a message can be walked to its end at its top level. Never raises.

    It checks tags, wire types, lengths and groups there, and nothing that a length-delimited field
    holds: nested messages may be cut off or have endless lengths, text may be no UTF-8, and the
    message may be one of another kind. The analysis finds those, and parks them (ADR 011).

    It takes the fewest steps for a field of a small number and up to 16 KiB, since a receiver may
    ask it of each message that comes.
    """
    groups: list[int] = []
    position, size = 0, len(payload)
    try:
        while position < size:
            tag = payload[position]
            if tag & 0x87 == _LENGTH < tag:
                length = payload[position + 1]
                if length < 0x80:
                    position += 2 + length
                    continue
                high = payload[position + 2]
                if high < 0x80:
                    position += 3 + (length & 0x7F | high << 7)
                    continue
            tag, position = _varint(payload, position, _VARINT32_BYTES_MAX)
            position = _skip(payload, position, tag, groups)
    except (IndexError, ValueError):
        return False
    return position == size and not groups


def varint(payload: bytes, position: int) -> tuple[int, int]:
    """A length at that position, and the position behind it; ValueError when it is none."""
    try:
        return _varint(payload, position, _VARINT32_BYTES_MAX)
    except IndexError:
        raise ValueError(f"cut off at {position}") from None


def _skip(payload: bytes | memoryview, position: int, tag: int, groups: list[int]) -> int:
    """The position behind that tag's value; of a group only the start or the end is taken."""
    number, wire_type = tag >> 3, tag & 7
    if number == 0 or tag > _TAG_MAX:
        raise ValueError(tag)
    if wire_type == _LENGTH:
        length, start = _varint(payload, position, _VARINT32_BYTES_MAX)
        return start + length
    if wire_type == _VARINT:
        return _varint(payload, position, _VARINT64_BYTES_MAX)[1]
    if wire_type == _FIXED64:
        return position + 8
    if wire_type == _FIXED32:
        return position + 4
    if wire_type == _GROUP_START and len(groups) < _GROUPS_MAX:
        groups.append(number)
    elif wire_type != _GROUP_END or not groups or groups.pop() != number:
        raise ValueError(tag)
    return position


def _varint(payload: bytes | memoryview, position: int, bytes_max: int) -> tuple[int, int]:
    """The number at that position and the position behind it."""
    value = payload[position]
    if value < 0x80:
        return value, position + 1
    value &= 0x7F
    for count in range(1, bytes_max):
        byte = payload[position + count]
        value |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            return value, position + count + 1
    raise ValueError(position)


def _as_varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
