"""Wide rows merged in Arrow: sums, extremes and tables of the rows of one key become one row.

Plain columns go through Arrow's own grouping. A table is taken apart into (group, key, value),
added up by sorting, and put together again; there is no loop over rows in Python. Sums of 64-bit
numbers wrap around, as Java's do: a number that grows too large must not stop a batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.storage import Merge

TABLE: Final = pa.map_(pa.string(), pa.int64())
_ROW: Final = "row number"  # with a blank, which no column has

Numbers = npt.NDArray[np.int64]


def merged(rows: pa.Table, keys: Sequence[str], merges: Mapping[str, Merge]) -> pa.Table:
    """One row per distinct `keys`, with the columns of `merges`; a null counts as none."""
    rows = rows.combine_chunks()
    tables = [name for name in merges if rows.schema.field(name).type == TABLE]
    plain = [name for name in merges if name not in tables]
    numbered = rows.drop_columns(tables).append_column(_ROW, pa.array(np.arange(rows.num_rows)))
    wanted = [(name, merges[name].value) for name in plain]
    grouped = numbered.group_by(list(keys), use_threads=False).aggregate([*wanted, (_ROW, "list")])
    groups = _groups(grouped[f"{_ROW}_list"].combine_chunks(), rows.num_rows)
    columns = {name: grouped[name] for name in keys}
    columns |= {name: grouped[f"{name}_{function}"] for name, function in wanted}
    for name in tables:
        columns[name] = _added(rows[name].combine_chunks(), groups, grouped.num_rows)
    return pa.table(columns)


def _groups(members: pa.ListArray, count: int) -> Numbers:
    """Row → the group that has it among its members."""
    groups = np.empty(count, np.int64)
    groups[members.flatten().to_numpy()] = pc.list_parent_indices(members).to_numpy()
    return groups


def _added(tables: pa.MapArray, groups: Numbers, groups_count: int) -> pa.MapArray:
    """A group's tables added key by key; null where none has an entry."""
    valid = tables.is_valid()
    groups, tables = groups[valid.to_numpy(zero_copy_only=False)], tables.filter(valid)
    encoded = tables.keys.dictionary_encode()
    labels = max(len(encoded.dictionary), 1)
    owners = np.repeat(groups, np.diff(tables.offsets.to_numpy()))
    places = owners * labels + encoded.indices.to_numpy()
    order = np.argsort(places, kind="stable")
    places, values = places[order], tables.items.fill_null(0).to_numpy()[order]
    first = np.flatnonzero(np.diff(places, prepend=-1))
    places, sums = places[first], np.add.reduceat(values, first) if len(first) else values
    offsets = np.searchsorted(places, np.arange(groups_count + 1) * labels).astype(np.int32)
    return pa.MapArray.from_arrays(
        pa.array(offsets),
        encoded.dictionary.take(pa.array(places % labels)),
        pa.array(sums),
        mask=pa.array(np.diff(offsets) == 0),
    )
