"""Cutting a batch at segment ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from skyfarer.queue.layout import Geometry


class Part(NamedTuple):
    """Records `begin` to `end - 1` of a batch, `total` bytes, go to one segment."""

    begin: int
    end: int
    total: int


def split(lengths: Sequence[int], slots: int, room: int, geometry: Geometry) -> list[Part]:
    """The first part, maybe empty, fits `slots` and `room`; each other an empty segment."""
    parts: list[Part] = []
    begin = total = 0
    for position, length in enumerate(lengths):
        if slots == 0 or length > room:
            parts.append(Part(begin, position, total))
            begin, total = position, 0
            slots, room = geometry.slots, geometry.payload_bytes
        slots, room, total = slots - 1, room - length, total + length
    parts.append(Part(begin, len(lengths), total))
    return parts
