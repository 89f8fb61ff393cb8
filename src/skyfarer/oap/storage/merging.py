"""Wide rows merged in Arrow: sums, extremes and tables of the rows of one key become one row.

Plain columns go through Arrow's own grouping. A table is taken apart into (group, key, value) and
put together again: merged in a grid of groups and keys where that is well filled, as percentiles
are, else by sorting. There is no loop over rows in Python. Sums of 64-bit numbers wrap around, as
Java's do: a number that grows too large must not stop a batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.storage import KEYS_MAX, Merge

TABLE: Final = pa.map_(pa.string(), pa.int64())
CODED: Final = pa.map_(pa.dictionary(pa.int32(), pa.string()), pa.int64())
"""A table whose keys are numbered already: they need not be looked for again."""
_ROW: Final = "row number"  # with a blank, which no column has

Numbers = npt.NDArray[np.int64]
_BOTH: Final = {Merge.SUM: np.add, Merge.MAX: np.maximum, Merge.MIN: np.minimum}
_LIMITS: Final = np.iinfo(np.int64)
_NONE: Final = {Merge.SUM: 0, Merge.MAX: _LIMITS.min, Merge.MIN: _LIMITS.max}
CELLS_AN_ENTRY_MAX: Final = 8
"""Of the grid: one that is emptier takes more time than to sort the entries."""


def merged(
    rows: pa.Table,
    keys: Sequence[str],
    merges: Mapping[str, Merge],
    bounds: Mapping[str, int] = MappingProxyType({}),
    stored_count: int = 0,
    came: Numbers | None = None,
) -> pa.Table:
    """One row per distinct `keys`, with the columns of `merges`; a null counts as none, and coded
    tables stay coded.

    Where a table has more keys than its bound, those stay that came first, and of those that came
    together the first by text. `came` are numbers of the rows that grow with it; without them the
    first `stored_count` rows are the stored ones, and the others came together.
    """
    rows = rows.combine_chunks()
    tables = [name for name in merges if rows.schema.field(name).type in (TABLE, CODED)]
    wanted = [(name, merge.value) for name, merge in merges.items() if name not in tables]
    numbered = rows.drop_columns(tables).append_column(_ROW, pa.array(np.arange(rows.num_rows)))
    grouped = numbered.group_by(list(keys), use_threads=False).aggregate([*wanted, (_ROW, "list")])
    groups = _groups(grouped[f"{_ROW}_list"].combine_chunks(), rows.num_rows)
    if came is None:
        came = (np.arange(rows.num_rows) >= stored_count).astype(np.int64)
    columns = {name: grouped[name] for name in keys}
    columns |= {name: grouped[f"{name}_{function}"] for name, function in wanted}
    for name in tables:
        entries = _entries(rows[name].combine_chunks(), groups, came)
        made = _one_each(entries, merges[name], grouped.num_rows)
        made = _bounded(made, entries, bounds.get(name, KEYS_MAX), grouped.num_rows)
        columns[name] = _tables(made, grouped.num_rows, rows.schema.field(name).type == CODED)
    return pa.table(columns)


_Merged: TypeAlias = tuple[Numbers, Numbers]
"""Places in the grid, in order, and their values."""


class _Entries(NamedTuple):
    """Of tables, side by side: `labels` are places in `texts`, which are sorted, so that the same
    table is the same bytes whatever came first."""

    groups: Numbers
    labels: Numbers
    values: Numbers
    texts: pa.Array
    came: Numbers | None = None  # None once they are merged: it is seldom asked

    def places(self) -> Numbers:
        """In a grid of groups and labels."""
        return self.groups * max(len(self.texts), 1) + self.labels


def _groups(members: pa.ListArray, count: int) -> Numbers:
    """Row → the group that has it among its members."""
    groups = np.empty(count, np.int64)
    groups[members.flatten().to_numpy()] = pc.list_parent_indices(members).to_numpy()
    return groups


def _entries(tables: pa.MapArray, groups: Numbers, came: Numbers) -> _Entries:
    rows = np.arange(len(tables))
    if tables.null_count:
        valid = tables.is_valid()
        rows, tables = np.flatnonzero(valid.to_numpy(zero_copy_only=False)), tables.filter(valid)
    owners = np.repeat(rows, np.diff(tables.offsets.to_numpy()))
    labels = tables.keys.dictionary_encode()
    order = pc.sort_indices(labels.dictionary)
    ranks = np.empty(len(order), np.int64)
    ranks[order.to_numpy()] = np.arange(len(order))
    return _Entries(
        groups=groups[owners],
        labels=ranks[labels.indices.to_numpy()],
        values=(tables.items.fill_null(0) if tables.items.null_count else tables.items).to_numpy(),
        texts=labels.dictionary.take(order),
        came=came[owners],
    )


def _one_each(entries: _Entries, merge: Merge, groups_count: int) -> _Entries:
    """One a group and label, in the order of groups and labels."""
    width = max(len(entries.texts), 1)
    places = entries.places()
    dense = groups_count * width <= CELLS_AN_ENTRY_MAX * len(places)
    found, values = (_in_a_grid if dense else _sorted)(
        places, entries.values, merge, groups_count * width
    )
    return _Entries(found // width, found % width, values, entries.texts)


def _in_a_grid(places: Numbers, given: Numbers, merge: Merge, cells: int) -> _Merged:
    values = np.full(cells, _NONE[merge], np.int64)
    _BOTH[merge].at(values, places, given)
    there = np.zeros(cells, np.bool_)
    there[places] = True
    found = np.flatnonzero(there)
    return found, values[found]


def _sorted(places: Numbers, given: Numbers, merge: Merge, _cells: int = 0) -> _Merged:
    order = np.argsort(places, kind="stable")
    first = np.flatnonzero(np.diff(places[order], prepend=-1))
    if not len(first):
        return places, given
    return places[order][first], _BOTH[merge].reduceat(given[order], first)


def _bounded(made: _Entries, entries: _Entries, keys_max: int, groups_count: int) -> _Entries:
    """At most so many of a group, those that came first; `made` is what `entries` make."""
    counts = np.bincount(made.groups, minlength=groups_count)
    if counts.max(initial=0) <= keys_max or entries.came is None:
        return made
    _, came = _sorted(entries.places(), entries.came, Merge.MIN)
    starts = np.cumsum(counts) - counts
    order = np.lexsort((made.labels, came, made.groups))
    kept = np.sort(order[np.arange(len(order)) - np.repeat(starts, counts) < keys_max])
    return made._replace(
        groups=made.groups[kept], labels=made.labels[kept], values=made.values[kept]
    )


def _tables(entries: _Entries, groups_count: int, coded: bool) -> pa.MapArray:
    """A group's entries as a table; null where there is none."""
    offsets = np.searchsorted(entries.groups, np.arange(groups_count + 1)).astype(np.int32)
    labels = pa.DictionaryArray.from_arrays(entries.labels.astype(np.int32), entries.texts)
    return pa.MapArray.from_arrays(
        pa.array(offsets),
        labels if coded else entries.texts.take(labels.indices),
        pa.array(entries.values),
        mask=pa.array(np.diff(offsets) == 0),
    )
