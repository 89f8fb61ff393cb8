"""The groups that Spark gives back, folded into one wide row per entity and minute.

Arrow's own kernels do it, on the thread of the caller: nothing here looks at one row in Python.
A table is bounded here: of a minute's labels in one batch the first `bound` by text are kept,
whatever the order in which their rows came, so that a repeated batch gives the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.entities import ENTITY_COLUMNS
from skyfarer.oap.core.storage import Deltas, Merge
from skyfarer.oap.oal.plan import Accumulator, Operation, Plan, SourcePlan
from skyfarer.oap.oal.tables import cell_of, key_columns, key_of, scalars_of, tables_of

Numbers: TypeAlias = npt.NDArray[np.int64]

ROW: Final = (*ENTITY_COLUMNS, "minute")
_MERGES: Final[Mapping[Operation, Merge]] = {
    Operation.MAX: Merge.MAX,
    Operation.MAX_DOUBLE: Merge.MAX,
    Operation.MIN: Merge.MIN,
    Operation.MIN_DOUBLE: Merge.MIN,
    Operation.LABEL_MAX: Merge.MAX,
    Operation.LABEL_MIN: Merge.MIN,
}
_COUNTS: Final = frozenset({Operation.COUNT, Operation.SATISFIED, Operation.TOLERATED})
# Made once: to make a scalar Arrow looks for libraries that are not there.
_ZERO, _NOTHING = (pa.scalar(number, pa.int64()) for number in (0, None))
_text = cache(pa.scalar)


def folded(collected: pa.Table, plan: Plan) -> dict[str, Deltas]:
    """By source, of those with a row. `collected` is what `lowering.Lowered.named` gives.

    One row per entity and minute: ROW, and a column per accumulator of the source.
    """
    plans = {source.source: source for source in plan.sources}
    return {
        name: _folded(collected, plans.get(name) or _named(name))
        for name in pc.unique(collected["source"]).to_pylist()
    }


def together(one: Mapping[str, Deltas], other: Mapping[str, Deltas]) -> dict[str, Deltas]:
    """What both say of a source, of the same plan, in the order in which they are given."""
    both = {**one, **other}
    for source in one.keys() & other.keys():
        found = (one[source].rows, other[source].rows)
        rows = pa.concat_tables(found, promote_options="default")  # one of them may be never null
        both[source] = replace(one[source], rows=rows)
    return both


def merges(source: SourcePlan) -> dict[str, Merge]:
    """How each column of the source's rows takes in another value."""
    return {a.column: _merge(a) for a in source.accumulators}


def _merge(accumulator: Accumulator) -> Merge:
    return _MERGES.get(accumulator.operation, Merge.SUM)


def _named(source: str) -> SourcePlan:
    return SourcePlan(source, None, (), ())


def _folded(collected: pa.Table, source: SourcePlan) -> Deltas:
    scalars, tables, how = scalars_of(source), tables_of(source), merges(source)
    rows = _reached(collected, source)
    added = [(a.column, how[a.column].value) for a in scalars]
    grouped = rows.group_by(list(ROW), use_threads=False).aggregate([*added, ("row", "list")])
    folded = grouped.rename_columns([*ROW, *(a.column for a in scalars), "rows"])
    groups = _Groups(rows, folded["rows"].combine_chunks())
    names = key_columns(source)
    for table in tables:
        folded = folded.append_column(table.column, groups.table(table, names[key_of(table)]))
    bounds = {t.column: t.bound for t in tables if t.operation is not Operation.BUCKETS}
    return Deltas(folded.select([*ROW, *how]), how, bounds)


def _reached(collected: pa.Table, source: SourcePlan) -> pa.Table:
    """The groups of the source, with their number as `row`, and null for counts of nothing."""
    cells = dict.fromkeys((*scalars_of(source), *map(cell_of, tables_of(source))))
    here = pc.equal(collected["source"], _text(source.source))
    keys = [*ROW, *key_columns(source).values()]
    found = collected.select([*keys, *(cell.column for cell in cells)]).filter(here)
    columns = {name: found[name] for name in keys}
    columns["row"] = pa.array(np.arange(found.num_rows))
    for cell in cells:
        column = found[cell.column]
        if cell.operation in _COUNTS:
            column = pc.if_else(pc.equal(column, _ZERO), _NOTHING, column)
        columns[cell.column] = column
    return pa.table(columns)


class _Groups:
    """`members` are the numbers of the rows of each group."""

    def __init__(self, rows: pa.Table, members: pa.ListArray) -> None:
        self._rows = rows.take(members.flatten())
        self._group = pc.list_parent_indices(members)
        self._number = len(members)

    def table(self, table: Accumulator, key: str) -> pa.MapArray:
        """Per group key → cell; null where it has none."""
        keys, cells = self._rows[key], self._rows[cell_of(table).column]
        found = pa.table({"group": self._group, "key": keys, "cell": cells})
        found = found.filter(pc.and_(pc.is_valid(keys), pc.is_valid(cells)))
        grouped = found.group_by(["group", "key"], use_threads=False)
        added = grouped.aggregate([("cell", _merge(table).value)])
        found = added.rename_columns(["group", "key", "cell"])
        found = found.sort_by([("group", "ascending"), ("key", "ascending")])
        if table.operation is not Operation.BUCKETS:
            found = found.filter(self._place(found) < table.bound)
        return self._maps(found)

    def _place(self, found: pa.Table) -> Numbers:
        """The place of each key in its group."""
        groups: Numbers = found["group"].to_numpy()
        return np.arange(found.num_rows) - self._starts(found)[groups]

    def _starts(self, found: pa.Table) -> Numbers:
        groups: Numbers = found["group"].to_numpy()
        return np.searchsorted(groups, np.arange(self._number + 1))

    def _maps(self, found: pa.Table) -> pa.MapArray:
        starts = self._starts(found)
        return pa.MapArray.from_arrays(
            pa.array(starts, pa.int32()),
            found["key"].cast(pa.string()).combine_chunks(),
            found["cell"].combine_chunks(),
            mask=pa.array(starts[1:] == starts[:-1]),
        )
