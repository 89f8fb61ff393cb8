"""What is known of every producer, in bounds, and its bytes. No I/O, no clock.

    snapshot   | producers u32 | then of each, the one that was heard of last at the end:
               | name length u8 | name | settled u64 | floor u64 | ranges u32 | start u64, end u64 …

Too many producers, and the one not heard of for longest is forgotten; too many ranges, and those of
the lowest numbers. What is forgotten is not repeated knowingly: a record that comes again is kept
again. So forgetting never loses a record.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from skyfarer.oap.receivers.held import Held
from skyfarer.wire.numbering import Number

_COUNT: Final = struct.Struct("<I")
_ENTRY: Final = struct.Struct("<QQI")


@dataclass(frozen=True)
class Bounds:
    """`ranges_max` is one producer's: a batch of so many records may be in any state. A producer
    whose records all come here has one range."""

    producers_max: int = 4096
    ranges_max: int = 4096
    all_ranges_max: int = 131_072


class Producers:
    """`forgotten` counts producers."""

    def __init__(self, bounds: Bounds | None = None) -> None:
        self._bounds = bounds or Bounds()
        self._known: OrderedDict[str, Held] = OrderedDict()
        self._ranges = 0
        self.forgotten = 0

    def __len__(self) -> int:
        return len(self._known)

    def known(self, name: str) -> Held:
        """Not to be changed but by `add`; empty for one that is not known."""
        held = self._known.get(name)
        return held if held is not None else Held()

    def add(self, name: str, first: int, numbers: Sequence[Number]) -> None:
        """The queue has these; all of the producer before `first` is settled."""
        held = self._known.get(name)
        if held is None:
            held = self._known[name] = Held()
        before = len(held)
        held.settled = max(held.settled, first)
        for start, end in _runs(numbers):
            held.add(start, end)
        held.forget(self._bounds.ranges_max)
        self._ranges += len(held) - before
        self._known.move_to_end(name)
        self._bound()

    def _bound(self) -> None:
        bounds = self._bounds
        while len(self._known) > bounds.producers_max or (
            self._ranges > bounds.all_ranges_max and len(self._known) > 1
        ):
            _, held = self._known.popitem(last=False)
            self._ranges -= len(held)
            self.forgotten += 1

    def snapshot(self) -> bytes:
        parts = [_COUNT.pack(len(self._known))]
        for name, held in self._known.items():
            text, ranges = name.encode("ascii"), held.ranges()
            parts += (bytes([len(text)]), text)
            parts.append(_ENTRY.pack(held.settled, held.floor, len(ranges)))
            flat = [edge for pair in ranges for edge in pair]
            parts.append(struct.pack(f"<{len(flat)}Q", *flat))
        return b"".join(parts)

    @classmethod
    def restored(cls, snapshot: bytes, bounds: Bounds | None = None) -> Producers:
        """The bytes are those of `snapshot`: a checksum has vouched for them."""
        found = cls(bounds)
        (count,), at = _COUNT.unpack_from(snapshot), _COUNT.size
        for _ in range(count):
            end = at + 1 + snapshot[at]
            name = snapshot[at + 1 : end].decode("ascii")
            settled, floor, size = _ENTRY.unpack_from(snapshot, end)
            edges = struct.unpack_from(f"<{2 * size}Q", snapshot, end + _ENTRY.size)
            at = end + _ENTRY.size + 16 * size
            pairs = zip(edges[::2], edges[1::2], strict=True)
            found._known[name] = held = Held(pairs, settled, floor)
            found._ranges += len(held)
        found._bound()
        return found


def _runs(numbers: Sequence[Number]) -> list[tuple[int, int]]:
    """As few ranges as their order allows; to add one costs more than to look at a number."""
    if isinstance(numbers, range):
        return [(numbers.start, numbers.stop)] if numbers else []
    found: list[tuple[int, int]] = []
    start = end = -1
    for number in numbers:
        for one in (number,) if isinstance(number, int) else number:
            if one != end:
                if end > start:
                    found.append((start, end))
                start = one
            end = one + 1
    return [*found, (start, end)] if end > start else found
