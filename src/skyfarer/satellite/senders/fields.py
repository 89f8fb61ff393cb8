"""A field or two of a record, by number: which upstream it belongs to, and its key in Kafka."""

from __future__ import annotations

from skyfarer.wire.split import pick_fields

_LENGTH = 2  # the wire type of strings, bytes and messages

Payload = bytes | memoryview


def first(payload: Payload, path: tuple[int, ...]) -> bytes:
    """The first string, bytes or message at that path of field numbers, each below 16; empty when
    there is none."""
    value: Payload = payload
    for number in path:
        field = pick_fields(value, (number,), 1).get(number)
        if field is None or field[0] != number << 3 | _LENGTH:
            return b""
        at = 1
        while field[at] > 0x7F:
            at += 1
        value = field[at + 1 :]
    return bytes(value)


def common(payload: Payload, numbers: tuple[int, ...]) -> bytes:
    """Those fields as they stand there: what records must share to share a message or a call."""
    found = pick_fields(payload, numbers, len(numbers))
    return b"".join([found[number] for number in numbers if number in found])


def length_delimited(number: int, size: int) -> bytes:
    """The tag and the length that make the `size` bytes behind them a field of that number."""
    out = bytearray()
    for rest in (number << 3 | _LENGTH, size):
        while rest > 0x7F:
            out.append(rest & 0x7F | 0x80)
            rest >>= 7
        out.append(rest)
    return bytes(out)
