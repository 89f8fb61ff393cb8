"""Wide rows merged in Arrow: sums, extremes and tables of the rows of one key become one row.

Which rows these are is said by the numbers of their groups: Arrow finds them for any keys
(`merged`), and who knows more of the keys finds them sooner (`together`). Numbers are added up in
an array of groups, tables are taken apart and put together again (`entries`). There is no loop over
rows in Python. Sums of 64-bit numbers wrap around, as Java's do: a number that grows too large must
not stop a batch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.storage import KEYS_MAX, Merge
from skyfarer.oap.storage.entries import BOTH, NONE, Chunk, merged_tables, valid_rows
from skyfarer.oap.storage.entries import Numbers as Numbers

TABLE: Final = pa.map_(pa.string(), pa.int64())
CODED: Final = pa.map_(pa.dictionary(pa.int32(), pa.string()), pa.int64())
"""A table whose keys are numbered already: they need not be looked for again."""
_ROW: Final = "row number"  # with a blank, which no column has

_BOTH_REAL: Final = {Merge.SUM: np.add, Merge.MAX: np.fmax, Merge.MIN: np.fmin}
_NONE_REAL: Final = {Merge.SUM: 0.0, Merge.MAX: -np.inf, Merge.MIN: np.inf}


class Part(NamedTuple):
    """Rows, and the groups that they go into, once for each array of `groups`: what a minute has
    is its hour's too. `came` grows with the time when a row came."""

    rows: pa.Table
    groups: Sequence[Numbers]
    came: Numbers


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
    numbered = rows.select(keys).append_column(_ROW, pa.array(np.arange(rows.num_rows)))
    grouped = numbered.group_by(list(keys), use_threads=False).aggregate([(_ROW, "list")])
    groups = _groups(grouped[f"{_ROW}_list"].combine_chunks(), rows.num_rows)
    if came is None:
        came = (np.arange(rows.num_rows) >= stored_count).astype(np.int64)
    coded = [name for name in merges if rows.schema.field(name).type == CODED]
    made = together([Part(rows, [groups], came)], grouped.num_rows, merges, bounds, coded)
    return pa.table({name: grouped[name] for name in keys} | made)


def together(
    parts: Sequence[Part],
    groups_count: int,
    merges: Mapping[str, Merge],
    bounds: Mapping[str, int],
    coded: Collection[str],
) -> dict[str, pa.Array]:
    """As `merged`, a row a group. A part may lack columns that another has; the tables named in
    `coded` become coded."""
    columns = {}
    for name, merge in merges.items():
        chunks = [chunk for part in parts for chunk in _chunks(part, name)]
        if pa.types.is_map(chunks[0].values.type):
            keys_max = bounds.get(name, KEYS_MAX)
            columns[name] = merged_tables(chunks, groups_count, merge, keys_max, name in coded)
        else:
            columns[name] = _merged_numbers(chunks, groups_count, merge)
    return columns


def _groups(members: pa.ListArray, count: int) -> Numbers:
    """Row → the group that has it among its members."""
    groups = np.empty(count, np.int64)
    groups[members.flatten().to_numpy()] = pc.list_parent_indices(members).to_numpy()
    return groups


def _chunks(part: Part, name: str) -> Iterator[Chunk]:
    if name not in part.rows.column_names:
        return
    first, column = 0, part.rows[name]
    for values in column.chunks or [pa.array([], column.type)]:
        of = slice(first, first + len(values))
        yield Chunk(values, [groups[of] for groups in part.groups], part.came[of])
        first = of.stop


def _merged_numbers(chunks: Sequence[Chunk], groups_count: int, merge: Merge) -> pa.Array:
    real = pa.types.is_floating(chunks[0].values.type)
    both, none = (_BOTH_REAL if real else BOTH)[merge], (_NONE_REAL if real else NONE)[merge]
    found: npt.NDArray[Any] = np.full(groups_count, none, np.float64 if real else np.int64)
    there = np.zeros(groups_count, np.bool_)
    for values, times, _ in chunks:
        valid = valid_rows(values)
        told = values.drop_null().to_numpy().astype(found.dtype, copy=False)
        for groups in times:
            places = groups if valid is None else groups[valid]
            with np.errstate(over="ignore", invalid="ignore"):  # a sum may become infinite
                both.at(found, places, told)
            there[places] = True
    return pa.array(found, mask=None if there.all() else ~there)
