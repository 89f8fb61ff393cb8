from __future__ import annotations

from itertools import permutations
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfarer.oap.core.storage import Merge
from skyfarer.oap.storage import entries
from skyfarer.oap.storage.merging import TABLE, merged

SCHEMA = pa.schema(
    {
        "key": pa.string(),
        "bucket": pa.int64(),
        "added": pa.int64(),
        "least": pa.int64(),
        "most": pa.float64(),
        "table": TABLE,
        "highest": TABLE,
        "lowest": TABLE,
    }
)
TABLES = {"table": Merge.SUM, "highest": Merge.MAX, "lowest": Merge.MIN}
MERGES = {"added": Merge.SUM, "least": Merge.MIN, "most": Merge.MAX} | TABLES
BOTH = {Merge.SUM: lambda a, b: a + b, Merge.MIN: min, Merge.MAX: max}
SMALL = st.none() | st.integers(-9, 9)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(["a", "b", ""]),
            "bucket": st.integers(1, 2),
            "added": SMALL,
            "least": SMALL,
            "most": st.none() | st.integers(-9, 9).map(float),
            **dict.fromkeys(
                TABLES, st.none() | st.dictionaries(st.sampled_from("xyzé"), SMALL, max_size=4)
            ),
        }
    ),
    max_size=12,
)


def plainly(rows: list[dict[str, Any]]) -> dict[tuple[str, int], dict[str, Any]]:
    """The same, one row after the other; a null in a table is 0."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for row in rows:
        into = found.setdefault((row["key"], row["bucket"]), dict.fromkeys(MERGES))
        for name in MERGES.keys() - TABLES:
            into[name] = merged_plainly(name, into[name], row[name])
        for name in TABLES:
            for label, value in (row[name] or {}).items():
                into[name] = into[name] or {}
                into[name][label] = merged_plainly(name, into[name].get(label), value or 0)
    return found


def merged_plainly(name: str, *values: Any) -> Any:
    told = [value for value in values if value is not None]
    return BOTH[MERGES[name]](*told) if len(told) == 2 else next(iter(told), None)


@pytest.mark.parametrize("cells_an_entry_max", [0, 10**9], ids=["sorted", "in a grid"])
@given(rows=ROWS, skipped=st.integers(0, 3), chunks=st.integers(0, 3))
def test_rows_of_one_key_become_what_adding_them_one_by_one_gives(
    cells_an_entry_max: int, rows: list[dict[str, Any]], skipped: int, chunks: int
) -> None:
    table = pa.Table.from_pylist(rows, schema=SCHEMA).slice(skipped)
    if chunks:
        table = pa.concat_tables([table.slice(0, chunks), table.slice(chunks)])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(entries, "CELLS_AN_ENTRY_MAX", cells_an_entry_max)
        result = merged(table, ("key", "bucket"), MERGES)
    got = {
        (row.pop("key"), row.pop("bucket")): row
        | {name: row[name] and dict(row[name]) for name in TABLES}
        for row in result.to_pylist()
    }
    assert got == plainly(rows[skipped:])
    assert result.num_rows == len(got)


def test_large_numbers_are_added_exactly() -> None:
    rows = [{"key": "a", "bucket": 1, "table": {"x": 2**53}, "added": 2**53}] * 2
    rows.append({"key": "a", "bucket": 1, "table": {"x": 1}, "added": 1})
    (row,) = merged(
        pa.Table.from_pylist(rows, schema=SCHEMA), ("key", "bucket"), MERGES
    ).to_pylist()
    assert row["added"] == 2**54 + 1
    assert row["table"] == [("x", 2**54 + 1)]


@pytest.mark.parametrize("cells_an_entry_max", [0, 10**9], ids=["sorted", "in a grid"])
def test_a_table_keeps_its_stored_keys_and_takes_new_ones_by_text(
    cells_an_entry_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "CELLS_AN_ENTRY_MAX", cells_an_entry_max)
    tables = [{"z": 1, "m": 1}, {"b": 1}, {"é": 5, "a": 2, "z": 3}, {"c": 1, "b": 1}]
    rows = [{"key": "ab"[n % 2], "bucket": 1, "table": one} for n, one in enumerate(tables)]
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    merges = {"table": Merge.SUM}
    result = merged(table, ("key", "bucket"), merges, {"table": 3}, stored_count=2)
    found = {row["key"]: dict(row["table"]) for row in result.to_pylist()}
    assert found == {"a": {"z": 4, "m": 1, "a": 2}, "b": {"b": 2, "c": 1}}
    for keys_max, expected in ((1, {"m": 1}), (2, {"z": 4, "m": 1})):
        result = merged(table, ("key", "bucket"), merges, {"table": keys_max}, stored_count=2)
        (row,) = (row for row in result.to_pylist() if row["key"] == "a")
        assert dict(row["table"]) == expected


def test_a_table_is_the_same_bytes_whatever_came_first() -> None:
    brought = [{"9": 1, "10": 2}, {"2": 5}, {"10": 1, "1": 1}]
    seen = set[tuple[tuple[str, int], ...]]()
    for order in permutations(brought):
        rows = pa.table(
            {"k": ["a"] * 3, "t": pa.array([list(one.items()) for one in order], TABLE)}
        )
        (table,) = merged(rows, ["k"], {"t": Merge.SUM})["t"].to_pylist()
        seen.add(tuple(table))
    assert seen == {(("1", 1), ("10", 3), ("2", 5), ("9", 1))}


def test_what_a_null_hides_does_not_count() -> None:
    offsets, keys = pa.array([0, 1, 3, 4], pa.int32()), pa.array(["x", "hidden", "too", "y"])
    values, nulls = pa.array([1, 2, 3, 4]), pa.array([False, True, False])
    tables = pa.MapArray.from_arrays(offsets, keys, values, mask=nulls)
    rows = pa.table({"k": ["a", "a", "b"], "t": tables})
    found = merged(rows, ["k"], {"t": Merge.SUM}).to_pylist()
    assert {row["k"]: row["t"] for row in found} == {"a": [("x", 1)], "b": [("y", 4)]}


def test_numbers_wrap_around_and_a_number_beside_none_is_one() -> None:
    greatest = 2**63 - 1
    rows = [{"key": "a", "bucket": 1, "added": greatest}, {"key": "a", "bucket": 1, "added": 1}]
    rows.append({"key": "b", "bucket": 1, "most": float("nan")})
    rows.append({"key": "b", "bucket": 1, "most": -1.5})
    rows += [{"key": "c", "bucket": 1, "most": 1.5e308}] * 2
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    found = {row["key"]: row for row in merged(table, ("key", "bucket"), MERGES).to_pylist()}
    added = merged(table, ("key", "bucket"), {"most": Merge.SUM}).to_pylist()
    assert [row["most"] for row in added if row["key"] == "c"] == [float("inf")]
    assert found["a"]["added"] == -(2**63)
    assert found["b"]["most"] == -1.5
    assert found["b"]["added"] is None
