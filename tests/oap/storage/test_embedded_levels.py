from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfarer.oap.core.storage import Merge
from skyfarer.oap.core.time_bucket import PRECISIONS
from skyfarer.oap.storage.embedded import levels
from skyfarer.oap.storage.embedded.levels import KEYS, Levels
from skyfarer.oap.storage.merging import TABLE, merged

COLUMNS = {"calls": pa.int64(), "longest": pa.float64(), "buckets": TABLE, "old": pa.int64()}
MERGES = {"calls": Merge.SUM, "longest": Merge.MAX, "buckets": Merge.SUM, "old": Merge.MAX}
BOUNDS = {"buckets": 3}
SCHEMA = pa.schema({"entity_id": pa.string(), "time_bucket": pa.int64(), **COLUMNS})
MINUTES = [202611150958, 202611150959, 202611151000, 202611151001]
VALUES = {
    "calls": st.none() | st.integers(0, 9),
    "longest": st.none() | st.integers(0, 9).map(float),
    "buckets": st.none() | st.dictionaries(st.sampled_from("wxyz"), st.integers(1, 9)),
}
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "entity_id": st.sampled_from(["a", "b", "é"]),
            "time_bucket": st.sampled_from(MINUTES),
            **VALUES,
        }
    ),
    min_size=1,
    max_size=9,
)


def all_levels(rows: pa.Table) -> pa.Table:
    """The same rows three times, for each of their buckets."""
    minutes = rows["time_bucket"].to_numpy()
    return pa.concat_tables(
        rows.set_column(1, "time_bucket", pa.array(minutes // precision))
        for precision in PRECISIONS
    )


def by_key(rows: pa.Table) -> dict[tuple[str, int], dict[str, Any]]:
    return {(row.pop("entity_id"), row.pop("time_bucket")): row for row in rows.to_pylist()}


@pytest.mark.parametrize("cells_a_row_max", [0, 10**9], ids=["sorted", "in cells"])
@given(earlier=ROWS, brought=ROWS)
def test_minutes_hours_and_days_are_what_their_rows_make_one_by_one(
    cells_a_row_max: int, earlier: list[dict[str, Any]], brought: list[dict[str, Any]]
) -> None:
    rows = pa.Table.from_pylist(brought, schema=SCHEMA)
    told = rows.drop_columns(["time_bucket", "old"])
    minutes = rows["time_bucket"].to_numpy()
    old = [{**row, "old": number} for number, row in enumerate(earlier)]
    there = all_levels(pa.Table.from_pylist(old, schema=SCHEMA))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(levels, "CELLS_A_ROW_MAX", cells_a_row_max)
        of_batch = Levels(told, minutes)
        touched = {tuple(key.values()) for key in of_batch.touched().to_pylist()}
        keys = zip(there["entity_id"].to_pylist(), there["time_bucket"].to_pylist(), strict=True)
        there = there.filter(pa.array([key in touched for key in keys], pa.bool_()))
        stored = merged(there, KEYS, MERGES)
        result = of_batch.merged(stored, MERGES, BOUNDS)
    everything = pa.concat_tables([stored, all_levels(rows)])
    assert by_key(result) == by_key(merged(everything, KEYS, MERGES, BOUNDS, stored.num_rows))
    assert set(by_key(result)) == touched


def test_rows_lie_in_the_order_of_minutes_hours_and_days() -> None:
    rows = pa.table({"entity_id": ["b", "a", "b"], "calls": [1, 2, 3]})
    minutes = np.array([202611150959, 202611150959, 202611151000])
    stored = pa.table({"entity_id": ["a"], "time_bucket": [20261115], "calls": [5]})
    result = Levels(rows, minutes).merged(stored, {"calls": Merge.SUM}, {})
    assert list(zip(*(result[name].to_pylist() for name in result.column_names), strict=True)) == [
        ("b", 202611150959, 1),
        ("a", 202611150959, 2),
        ("b", 202611151000, 3),
        ("b", 2026111509, 1),
        ("a", 2026111509, 2),
        ("b", 2026111510, 3),
        ("b", 20261115, 4),
        ("a", 20261115, 7),
    ]
