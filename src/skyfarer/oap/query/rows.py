"""A list of objects, kept as its columns.

A chart has hundreds of points of the same few fields. An object for each, of which another is made
by what is selected, takes longer than to look at a whole column at once (`selection`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, overload


class Rows(Sequence[dict[str, Any]]):
    """Reads as the list of objects that it stands for. `columns` are of one length, by field."""

    __slots__ = ("_length", "columns")

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        self.columns = columns
        self._length = len(next(iter(columns.values())))

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, place: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, place: slice) -> list[dict[str, Any]]: ...

    def __getitem__(self, place: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(self._length))]
        return {name: column[place] for name, column in self.columns.items()}
