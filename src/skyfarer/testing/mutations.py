"""Hostile messages: valid ones, changed in a place that the descriptor knows.

A message is cut into its fields on every level once. A mutation replaces one field by other bytes,
and the lengths of all messages around it are written anew, so that a reader gets as far as the
field. The mutations are those that break decoders: lengths near the ends of 31, 32, 63 and 64 bits,
nesting, groups, wrong wire types and numbers, repeats, numbers, times and texts that cannot be,
truncation and flipped bits. The same seed makes the same messages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from random import Random
from typing import Any, Final, NamedTuple, TypeVar

from skyfarer.testing import values
from skyfarer.testing.specimens import NESTED, Specimen
from skyfarer.testing.values import varint
from skyfarer.wire.split import walk

T = TypeVar("T")

REPEATED_BYTES_MAX: Final = 64 * 1024
DEEP: Final = (100, 101, 1_000, 10_000)
REPEATS: Final = (2, 100, 1_000, 10_001, 20_000)
RARELY: Final = 60
"""Large messages are one in so many, since they cost as much as a hundred others."""
AGAIN: Final = 0.15
"""The share of messages that are mutated as a whole once more."""

VARINT, FIXED64, LENGTH, GROUP_START, GROUP_END, FIXED32 = range(6)


class Around(NamedTuple):
    """The rest of a message around a field; `tag` is that of the message, empty at the top."""

    tag: bytes
    before: bytes
    after: bytes


class Place(NamedTuple):
    """A field where it stands: `value` is without tag and length, `around` innermost first."""

    number: int
    wire: int
    value: bytes
    field: Any
    around: tuple[Around, ...]

    @property
    def tag(self) -> bytes:
        return varint(self.number << 3 | self.wire)

    @property
    def whole(self) -> bytes:
        length = varint(len(self.value)) if self.wire == LENGTH else b""
        return self.tag + length + self.value

    def rebuilt(self, field: bytes) -> bytes:
        """The message with `field` in the place of this one."""
        for tag, before, after in self.around:
            content = before + field + after
            field = tag + varint(len(content)) + content if tag else content
        return field


def places(payload: bytes, descriptor: Any) -> list[Place]:
    """Every field of a valid message, on every level that its descriptor has."""
    return _places(payload, descriptor, (), b"")


def _places(
    payload: bytes, descriptor: Any, outer: tuple[Around, ...], own_tag: bytes
) -> list[Place]:
    found, last_end = list[Place](), 0
    for tag, start, end in walk(payload):
        field = descriptor.fields_by_number.get(tag >> 3)
        around = (Around(own_tag, payload[:last_end], payload[end:]), *outer)
        value = payload[start:end]
        found.append(Place(tag >> 3, tag & 7, value, field, around))
        inner = _message_of(field)
        if inner is not None and tag & 7 == LENGTH:
            found += _places(value, inner, around, varint(tag))
        last_end = end
    return found


def _message_of(field: Any) -> Any:
    if field is None or field.full_name not in NESTED:
        return field and field.message_type
    return NESTED[field.full_name].DESCRIPTOR


@lru_cache(maxsize=512)
def nested(tags: tuple[bytes, ...], depth: int) -> bytes:
    """Messages in messages, so many of them, the last one empty; `tags` are gone through again and
    again."""
    heads, size = list[bytes](), 0
    for level in range(depth):
        head = tags[-1 - level % len(tags)] + varint(size)
        heads.append(head)
        size += len(head)
    return b"".join(reversed(heads))


@lru_cache(maxsize=512)
def groups(number: int, depth: int, closed: int) -> bytes:
    """Groups in groups; so many of them are closed again."""
    opening, closing = varint(number << 3 | GROUP_START), varint(number << 3 | GROUP_END)
    return opening * depth + closing * closed


@lru_cache(maxsize=512)
def _cycle(name: str, descriptor: Any) -> tuple[bytes, ...]:
    """The tags that lead from a message to another one of its type; empty when none do."""
    pending: list[tuple[Any, tuple[bytes, ...]]] = [(descriptor, ())]
    seen = set[str]()
    while pending:
        at, path = pending.pop(0)
        for field in at.fields:
            inner = field.message_type
            if inner is None or inner.full_name in seen:
                continue
            longer = (*path, varint(field.number << 3 | LENGTH))
            if inner.full_name == name:
                return longer
            seen.add(inner.full_name)
            pending.append((inner, longer))
    return ()


class Mutator:
    """Makes hostile messages of specimens; not for several threads."""

    def __init__(self, random: Random, specimens: Sequence[Specimen]) -> None:
        self._random = random
        self._specimens = specimens
        self._places = [places(one.payload, one.descriptor) for one in specimens]

    def message(self) -> tuple[int, bytes]:
        """The kind of one of the specimens, and a payload that was one."""
        random = self._random
        chosen = int(random.random() * len(self._specimens))
        kind, payload, _ = self._specimens[chosen]
        found = self._places[chosen]
        if found and random.random() > 0.1:
            place = found[int(random.random() * len(found))]
            payload = place.rebuilt(self._field(place, found))
        else:
            payload = self._whole(payload)
        return kind, self._whole(payload) if random.random() < AGAIN else payload

    def _field(self, place: Place, others: list[Place]) -> bytes:
        choice = int(self._random.random() * (len(_FIELDS) + 1 / RARELY * len(_LARGE)))
        if choice == len(_FIELDS):
            return _LARGE[int(self._random.random() * len(_LARGE))](self, place)
        if self._random.random() < 0.04:
            return self._swapped(place, others)
        return _FIELDS[choice](self, place)

    def _one(self, of: Sequence[T]) -> T:
        return of[int(self._random.random() * len(of))]

    def _lying(self, place: Place) -> bytes:
        """A length that is not that of the value."""
        tag = varint(place.number << 3 | LENGTH)
        return tag + values.length(self._random, len(place.value)) + place.value

    def _overlong(self, place: Place) -> bytes:
        """Numbers written in more bytes than they need, up to one more than is allowed."""
        tag = place.number << 3 | place.wire
        if place.wire == VARINT and self._random.random() < 0.5:
            return place.tag + values.padded(place.value, self._one((5, 9, 10, 11)))
        head = values.padded(varint(tag), self._one((2, 5, 6, 10)))
        if place.wire != LENGTH:
            return head + place.value
        length = varint(len(place.value))
        return head + values.padded(length, self._one((1, 5, 6, 10, 11))) + place.value

    def _wrong_wire(self, place: Place) -> bytes:
        wire = self._one([one for one in range(8) if one != place.wire])
        return varint(place.number << 3 | wire) + self._one((place.value, b"", b"\x01", b"\0" * 8))

    def _wrong_number(self, place: Place) -> bytes:
        number = self._one((0, 2**29 - 1, 2**29, 19_000, 2**31, place.number + 1))
        length = varint(len(place.value)) if place.wire == LENGTH else b""
        return varint(number << 3 | place.wire) + length + place.value

    def _grouped(self, place: Place) -> bytes:
        """Groups that end without a beginning, or otherwise than they began."""
        depth = self._one((1, 2, 99, 100, 101))
        return self._one(
            (
                groups(place.number, 1, 0) + place.value + groups(place.number, 0, 1),
                groups(place.number, depth, depth),
                groups(place.number, depth, depth - 1),
                groups(place.number, 0, 1) + place.whole,
                groups(place.number, 1, 0) + place.whole + groups(place.number + 1, 0, 1),
            )
        )

    def _nested(self, place: Place) -> bytes:
        return self._to_depth(place, self._one((10, 33, 64, 100, 101)))

    def _to_depth(self, place: Place, depth: int) -> bytes:
        tags: tuple[bytes, ...] = ()
        if place.field is not None and place.field.message_type is not None:
            inner = place.field.message_type
            tags = _cycle(inner.full_name, inner)
        own = varint(place.number << 3 | LENGTH)
        content = nested(tags or (own,), depth)
        return own + varint(len(content)) + content

    def _odd(self, place: Place) -> bytes:
        """A value of the right form that no agent means."""
        value = values.odd(self._random, place)
        length = varint(len(value)) if place.wire == LENGTH else b""
        return place.tag + length + value

    def _duplicate(self, place: Place) -> bytes:
        return place.whole + self._odd(place)

    def _empty(self, place: Place) -> bytes:
        return self._one((b"", place.tag, varint(place.number << 3 | LENGTH) + b"\0"))

    def _noise(self, place: Place) -> bytes:
        noise = self._random.randbytes(int(self._random.random() * 24))
        return self._one((noise, place.tag + varint(len(noise)) + noise))

    def _swapped(self, place: Place, others: list[Place]) -> bytes:
        other = self._one(others)
        length = varint(len(other.value)) if place.wire == LENGTH else b""
        return place.tag + length + other.value

    def _deep(self, place: Place) -> bytes:
        depth = self._one(DEEP)
        if self._random.random() < 0.3:
            return groups(place.number, depth, self._one((0, depth)))
        return self._to_depth(place, depth)

    def _many(self, place: Place) -> bytes:
        field = self._one((place.whole, varint(place.number << 3 | LENGTH) + b"\0"))
        return bytes(field * min(self._one(REPEATS), REPEATED_BYTES_MAX // len(field) + 1))

    def _whole(self, payload: bytes) -> bytes:
        """The message cut off, with bits flipped, bytes put in, or bytes behind its end."""
        random, size = self._random, len(payload)
        choice = int(random.random() * 4)
        at = int(random.random() * (size + 1))
        if choice == 0:
            return payload[:at]
        if choice == 1:
            changed = bytearray(payload)
            for _ in range(self._one((1, 2, 8)) if size else 0):
                changed[int(random.random() * size)] ^= 1 << int(random.random() * 8)
            return bytes(changed)
        noise = random.randbytes(1 + int(random.random() * 11))
        return payload[:at] + noise + payload[at:] if choice == 2 else payload + noise


_Change = Callable[[Mutator, Place], bytes]
_FIELDS: Final[tuple[_Change, ...]] = (
    *(Mutator._lying, Mutator._lying, Mutator._odd, Mutator._odd, Mutator._odd),
    *(Mutator._overlong, Mutator._wrong_wire, Mutator._wrong_number, Mutator._grouped),
    *(Mutator._nested, Mutator._duplicate, Mutator._empty, Mutator._noise),
)
"""As often as they stand here."""
_LARGE: Final[tuple[_Change, ...]] = (Mutator._deep, Mutator._many)
