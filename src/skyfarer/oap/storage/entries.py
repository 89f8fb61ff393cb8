"""Tables of rows that are merged, as entries side by side: (group, key, value).

They are merged in a grid of groups and keys where that is well filled, as percentiles are, else by
sorting. Keys are numbered in the order of their texts, so that the same table is the same bytes
whatever came first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.storage import Merge

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
_LIMITS: Final = np.iinfo(np.int64)
BOTH: Final = {Merge.SUM: np.add, Merge.MAX: np.maximum, Merge.MIN: np.minimum}
NONE: Final = {Merge.SUM: 0, Merge.MAX: _LIMITS.min, Merge.MIN: _LIMITS.max}
"""What a number becomes none by, and begins with."""
CELLS_AN_ENTRY_MAX: Final = 8
"""Of the grid: one that is emptier takes more time than to sort the entries."""


class Chunk(NamedTuple):
    """Of a column, as it lies in memory: nothing is copied to be in one place. A row goes into a
    group of each array of `groups`; `came` grows with the time when it came."""

    values: pa.Array
    groups: Sequence[Numbers]
    came: Numbers


def merged_tables(
    chunks: Sequence[Chunk], groups_count: int, merge: Merge, keys_max: int, coded: bool
) -> pa.MapArray:
    """A group's entries as a table of at most so many keys, those that came first; null where there
    is none."""
    taken = [taken_apart(chunk.values) for chunk in chunks]
    texts = pc.unique(pa.concat_arrays([one.keys.dictionary for one in taken]))
    texts = texts.take(pc.sort_indices(texts))
    width = max(len(texts), 1)
    pieces, cells = list(_pieces(taken, chunks, texts)), groups_count * width
    dense = cells <= CELLS_AN_ENTRY_MAX * sum(len(places) for places, _ in pieces)
    found, values = (_in_a_grid if dense else _sorted)(pieces, merge, cells)
    made = _Entries(found, values, np.searchsorted(found, np.arange(groups_count + 1) * width))
    if np.diff(made.offsets).max(initial=0) > keys_max:
        made = _bounded(made, _came(taken, chunks, pieces), keys_max)
    return _tables(made, texts, coded)


class Taken(NamedTuple):
    """Tables taken apart, with the `counts` of entries of each."""

    keys: pa.DictionaryArray
    values: Numbers
    counts: Numbers


_Piece: TypeAlias = tuple[Numbers, Numbers]
"""Places in the grid of groups and texts, and values for them."""


class _Entries(NamedTuple):
    """Merged, in the order of their places in the grid."""

    places: Numbers
    values: Numbers
    offsets: Numbers  # of each group's first, and the end


def taken_apart(tables: pa.MapArray) -> Taken:
    counts, valid = np.diff(tables.offsets), valid_rows(tables)
    if valid is not None and counts[~valid].any():  # a null may hide entries
        tables, counts = tables.filter(pa.array(valid)), np.where(valid, counts, 0)
    first, last = tables.offsets[0].as_py(), tables.offsets[-1].as_py()
    values = tables.items.slice(first, last - first)
    return Taken(
        keys=tables.keys.slice(first, last - first).dictionary_encode(),
        values=(values.fill_null(0) if values.null_count else values).to_numpy(),
        counts=counts,
    )


def valid_rows(values: pa.Array) -> Flags | None:
    """None where all are."""
    if not values.null_count:
        return None
    valid: Flags = values.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _pieces(taken: Sequence[Taken], chunks: Sequence[Chunk], texts: pa.Array) -> Iterator[_Piece]:
    for one, chunk in zip(taken, chunks, strict=True):
        ranks = pc.index_in(one.keys.dictionary, texts).to_numpy().astype(np.int64)
        labels = ranks[one.keys.indices.to_numpy()]
        for groups in chunk.groups:
            places = np.repeat(groups * max(len(texts), 1), one.counts)
            places += labels
            yield places, one.values


def _in_a_grid(pieces: Sequence[_Piece], merge: Merge, cells: int) -> tuple[Numbers, Numbers]:
    values, there = np.zeros(cells, np.int64), np.zeros(cells, np.bool_)
    if none := NONE[merge]:
        values.fill(none)
    for places, given in pieces:
        BOTH[merge].at(values, places, given)
        there[places] = True
    found = np.flatnonzero(there)
    return found, values[found]


def _sorted(pieces: Sequence[_Piece], merge: Merge, _cells: int = 0) -> tuple[Numbers, Numbers]:
    places, given = (np.concatenate(side) for side in zip(*pieces, strict=True))
    order = np.argsort(places, kind="stable")
    first = np.flatnonzero(np.diff(places[order], prepend=-1))
    if not len(first):
        return places, given
    return places[order][first], BOTH[merge].reduceat(given[order], first)


def _came(taken: Sequence[Taken], chunks: Sequence[Chunk], pieces: Sequence[_Piece]) -> Numbers:
    """Of merged entries, in their order: when the first of it came."""
    both = zip(taken, chunks, strict=True)
    came = (np.repeat(chunk.came, one.counts) for one, chunk in both for _ in chunk.groups)
    told = [(places, when) for (places, _), when in zip(pieces, came, strict=True)]
    return _sorted(told, Merge.MIN)[1]


def _bounded(made: _Entries, came: Numbers, keys_max: int) -> _Entries:
    counts = np.diff(made.offsets)
    groups = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((made.places, came, groups))
    kept = np.sort(order[np.arange(len(order)) - made.offsets[groups] < keys_max])
    offsets = np.append(0, np.cumsum(np.minimum(counts, keys_max)))
    return _Entries(made.places[kept], made.values[kept], offsets)


def _tables(made: _Entries, texts: pa.Array, coded: bool) -> pa.MapArray:
    counts = np.diff(made.offsets)
    firsts = np.arange(len(counts)) * max(len(texts), 1)
    labels = pa.array((made.places - np.repeat(firsts, counts)).astype(np.int32))
    return pa.MapArray.from_arrays(
        pa.array(made.offsets.astype(np.int32)),
        pa.DictionaryArray.from_arrays(labels, texts) if coded else texts.take(labels),
        pa.array(made.values),
        mask=pa.array(counts == 0),
    )
