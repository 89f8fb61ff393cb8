"""The messages of calls that say which records they carry, on their way to the queue.

They are kept apart from all others, and from each other's: an append is of one call, so that what
it says of its records can be kept with them. Everything else is as `intake` has it.
"""

from __future__ import annotations

from collections.abc import Iterator

from skyfarer.wire.calls import Call
from skyfarer.wire.numbering import Number, Numbered, Numbering
from skyfarer.wire.routes import Lane, Route
from skyfarer.wire.split import split_repeated
from skyfarer.wire.twins import is_v2


class NumberedGroups:
    """Of one connection, between two appends."""

    def __init__(self) -> None:
        self._groups: dict[tuple[Call, Lane], Numbered] = {}

    def add_all(
        self, call: Call, numbering: Numbering, lane: Lane, route: Route, messages: list[bytes]
    ) -> None:
        """Messages whose stream has no identity."""
        numbers = numbering.take(len(messages))
        if route.rpc.repeated_field is None and route.v2_lane is None:
            group = self._group(call, numbering, lane)
            group.extend(messages)
            group.numbers += numbers
            return
        for message, number in zip(messages, numbers, strict=True):
            for its, payload, its_number in _records(lane, route, message, number):
                self._group(call, numbering, its).add(payload, its_number)

    def add(self, call: Call, numbering: Numbering, lane: Lane, payload: bytes) -> None:
        self._group(call, numbering, lane).add(payload, *numbering.take(1))

    def take(self) -> list[tuple[Call, Lane, Numbered]]:
        """All of it, in the order of arrival."""
        groups, self._groups = self._groups, {}
        return [(call, lane, group) for (call, lane), group in groups.items() if group]

    def _group(self, call: Call, numbering: Numbering, lane: Lane) -> Numbered:
        group = self._groups.get((call, lane))
        if group is None:
            group = Numbered(numbering.producer, numbering.first)
            self._groups[call, lane] = group
        return group


def _records(
    lane: Lane, route: Route, message: bytes, number: Number
) -> Iterator[tuple[Lane, bytes, Number]]:
    """A collection's elements have its numbers one by one, and none if those are too few or too
    many."""
    if route.v2_lane is not None and is_v2(route.v2_lane.kind, message):
        yield route.v2_lane, message, number
        return
    field = route.rpc.repeated_field
    elements = split_repeated(message, field) if field is not None else None
    if elements is None:
        yield lane, message, number
        return
    numbers = number if isinstance(number, tuple) else (number,)
    fitting = len(numbers) == len(elements)
    for at, element in enumerate(elements):
        yield lane, element, numbers[at] if fitting else ()
