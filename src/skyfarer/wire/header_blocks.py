"""Header blocks that came before need not be read again.

An agent's calls have the same headers, and HPACK makes the same few bytes of them as soon as its
table has them all. Reading such a block is a sixth of what a call costs. What it says depends on
the table alone, so it is remembered until the table changes: by a new entry or by another size.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hpack import Decoder, HeaderTuple
from hpack.table import HeaderTable

# Of each connection, and there are thousands: who calls often enough to matter makes one call.
BLOCKS_MAX: Final = 2
BLOCK_BYTES_MAX: Final = 128


class _Table(HeaderTable):
    """`changes` says whether it is still the one it was."""

    changes = 0

    def add(self, name: bytes, value: bytes) -> None:
        self.changes += 1
        super().add(name, value)

    @property
    def maxsize(self) -> int:
        return super().maxsize

    @maxsize.setter
    def maxsize(self, newmax: int) -> None:
        self.changes += 1
        HeaderTable.maxsize.fset(self, newmax)  # type: ignore[attr-defined]


class HeaderBlocks(Decoder):
    """A `Decoder` that answers what it would, blocks in any order; of one connection."""

    def __init__(self, list_bytes_max: int) -> None:
        super().__init__(list_bytes_max)
        self._table = self.header_table = _Table()
        self._known: dict[tuple[bytes, bool], list[HeaderTuple]] = {}

    def decode(self, data: bytes, raw: bool = False) -> Iterable[HeaderTuple]:
        known = self._known.get((data, raw))
        if known is not None:
            return list(known)
        before = self._table.changes
        headers = list(super().decode(data, raw))
        if self._table.changes != before or len(self._known) == BLOCKS_MAX:
            self._known.clear()
        if self._table.changes == before and len(data) <= BLOCK_BYTES_MAX:
            self._known[bytes(data), raw] = headers
        return list(headers)
