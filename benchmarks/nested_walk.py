"""Two checks of a whole segment that a receiver does not make: candidates of ADR 011, measured.

`nested` walks every message inside a segment by its schema, in plain Python; `parsed` has
protobuf's own library make the objects of the segment. `in_receiver` has the receivers that are
started meanwhile make one of these checks in place of the walk at the top level.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError

from skyfarer.wire.messages import SegmentObject
from skyfarer.wire.split import _skip, _varint, sound_at_top

Nested = dict[int, "Nested"]
_LENGTH: Final = 2
_LENGTH_BYTES_MAX: Final = 5


def nested_messages(message: Descriptor, known: dict[str, Nested] | None = None) -> Nested:
    """Tag of a field that holds messages → the same of its messages."""
    known = {} if known is None else known
    if message.full_name not in known:
        table: Nested = {}
        known[message.full_name] = table
        for field in message.fields:
            if field.message_type is not None:
                table[field.number << 3 | _LENGTH] = nested_messages(field.message_type, known)
    return known[message.full_name]


_SEGMENT: Final = nested_messages(SegmentObject.DESCRIPTOR)


def nested(payload: bytes) -> bool:
    try:
        return _walk(payload, 0, len(payload), _SEGMENT)
    except (IndexError, ValueError):
        return False


def parsed(payload: bytes) -> bool:
    try:
        SegmentObject.FromString(payload)
    except DecodeError:
        return False
    return True


def _walk(payload: bytes, position: int, end: int, table: Nested) -> bool:
    """As `sound_at_top` does, with the fewest steps for fields of small numbers and lengths."""
    groups: list[int] = []
    while position < end:
        tag = payload[position]
        if tag & 0x87 == _LENGTH < tag:
            length = payload[position + 1]
            position += 2
            if length >= 0x80:
                length, position = _varint(payload, position - 1, _LENGTH_BYTES_MAX)
            inner = table.get(tag)
            position += length
            if inner is None:
                continue
            if position > end or not _walk(payload, position - length, position, inner):
                return False
        elif tag < 0x80 and not tag & 7 and tag > 7:
            position += 1
            while payload[position] >= 0x80:
                position += 1
            position += 1
        else:
            tag, position = _varint(payload, position, _LENGTH_BYTES_MAX)
            position = _skip(payload, position, tag, groups)
    return position == end and not groups


CHECKS: Final[Mapping[str, Callable[[bytes], bool]]] = {
    "top": sound_at_top,
    "nested": nested,
    "parsed": parsed,
}
_AT_START: Final = """
from nested_walk import CHECKS
from skyfarer.wire import intake
intake.sound_at_top = CHECKS[{name!r}]
"""


@contextmanager
def in_receiver(name: str) -> Iterator[None]:
    """Python runs `sitecustomize` before the receiver's own module."""
    before = os.environ.get("PYTHONPATH", "")
    with TemporaryDirectory() as directory:
        (Path(directory) / "sitecustomize.py").write_text(_AT_START.format(name=name))
        paths = [directory, str(Path(__file__).parent), *filter(None, [before])]
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
        try:
            yield
        finally:
            os.environ["PYTHONPATH"] = before
