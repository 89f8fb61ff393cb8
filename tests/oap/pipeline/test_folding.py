"""Groups become one wide row per entity and minute, tables included; without Spark."""

from __future__ import annotations

import pyarrow as pa

from skyfarer.oap.core.entities import ENTITY_COLUMNS, SERVICE_META
from skyfarer.oap.core.storage import Deltas, Merge
from skyfarer.oap.oal.compiler import Text, plan_of
from skyfarer.oap.oal.plan import Plan
from skyfarer.oap.pipeline.folding import folded

ENTITY = dict.fromkeys(ENTITY_COLUMNS, "") | {"layer": 2, "from_layer": 0, "component": 0}


def plan(text: str) -> Plan:
    return plan_of([Text("test.oal", text)])


def group(service: str, minute: int = 1, source: str = "Service", **cells: object) -> dict:
    return ENTITY | {"source": source, "service": service, "minute": minute} | cells


def rows(found: Deltas, *columns: str) -> list[tuple[object, ...]]:
    """By service and minute."""
    told = found.rows.to_pylist(maps_as_pydicts="strict")
    told.sort(key=lambda row: (row["service"], row["minute"]))
    return [(row["service"], row["minute"], *(row[name] for name in columns)) for row in told]


def fold(text: str, *groups: dict, source: str = "Service") -> Deltas:
    return folded(pa.Table.from_pylist([*groups]), plan(text))[source]


def test_groups_of_an_entity_and_minute_are_merged_by_their_operation() -> None:
    found = fold(
        "a = from(Service.latency).sum(); b = from(Service.latency).max();"
        "c = from(Service.latency).min();",
        group("one", sum_latency=3, max_latency=3, min_latency=3),
        group("one", sum_latency=5, max_latency=4, min_latency=1),
        group("one", minute=2, sum_latency=8, max_latency=8, min_latency=8),
        group("two", sum_latency=None, max_latency=None, min_latency=None),
    )
    assert rows(found, "sum_latency", "max_latency", "min_latency") == [
        ("one", 1, 8, 4, 1),
        ("one", 2, 8, 8, 8),
        ("two", 1, None, None, None),
    ]
    assert [*found.merges.values()] == [Merge.SUM, Merge.MAX, Merge.MIN]


def test_a_table_has_the_cells_of_its_keys_and_is_null_without_any() -> None:
    found = fold(
        "a = from(Service.latency).percentile2(10); b = from(Service.latency).histogram(5, 9);",
        group("one", bucket_0=10, bucket_1=9, count=1),
        group("one", bucket_0=9, bucket_1=9, count=2),
        group("one", bucket_0=-1, bucket_1=-2, count=4),
        group("two", bucket_0=None, bucket_1=1, count=8),
    )
    assert rows(found, "buckets_latency_10", "buckets_latency_5_9") == [
        ("one", 1, {"-1": 4, "9": 2, "10": 1}, {"-2": 4, "9": 3}),
        ("two", 1, None, {"1": 8}),
    ]
    assert found.rows.schema.field("buckets_latency_10").type == pa.map_(pa.string(), pa.int64())


def test_a_count_of_nothing_is_null_and_no_key_of_a_table() -> None:
    found = fold(
        "a = from(Service.latency).filter(status == true).percentile2(10);"
        "b = from(Service.*).filter(status == true).cpm();",
        group("one", bucket_0=3, count_where_status_true_74564e47=0),
        group("two", bucket_0=3, count_where_status_true_74564e47=0),
        group("two", bucket_0=4, count_where_status_true_74564e47=1),
    )
    assert rows(found, *found.merges) == [("one", 1, None, None), ("two", 1, {"4": 1}, 1)]


def test_of_too_many_labels_the_first_by_text_are_kept_in_sums_and_counts_alike() -> None:
    labels = [("one", "c"), ("one", "ä"), ("two", "z"), ("one", "b"), ("two", None), ("one", "b")]
    found = fold(
        "a = from(Service.*).labelAvg(rpcStatusCode, latency, 2);",
        *(group(name, label_0=label, count=1, sum_latency=7) for name, label in labels),
    )
    sums, counts = found.merges
    assert rows(found, sums, counts) == [
        ("one", 1, {"b": 14, "c": 7}, {"b": 2, "c": 1}),
        ("two", 1, {"z": 7}, {"z": 1}),
    ]


def test_cells_of_a_key_are_compared_where_the_table_is_of_extremes() -> None:
    cells = [("a", 7, 5), ("b", 0, -2), ("a", 3, 3), ("a", None, None), (None, 99, -99)]
    found = fold(
        'a = from(Service.latency).labelIncrease(rpcStatusCode, "x", 9);',
        *(group("one", label_0=key, max_latency=m, min_latency=n) for key, m, n in cells),
    )
    assert rows(found, *found.merges) == [("one", 1, {"a": 7, "b": 0}, {"a": 3, "b": -2})]
    assert [*found.merges.values()] == [Merge.MAX, Merge.MIN]
    assert {*found.bounds.values()} == {9}


def test_sources_are_told_apart_and_read_their_own_columns_alone() -> None:
    text = "a = from(Service.*).cpm(); b = from(Endpoint.latency).sum();"
    table = pa.Table.from_pylist(
        [
            group("one", count=1, sum_latency=9),
            group("one", source="Endpoint", count=2, sum_latency=5),
            group("one", source=SERVICE_META, count=3, sum_latency=7),
        ]
    )
    found = folded(table, plan(text))
    assert {name: [*one.merges] for name, one in found.items()} == {
        "Service": ["count"],
        "Endpoint": ["sum_latency"],
        SERVICE_META: [],
    }
    assert rows(found["Endpoint"], "sum_latency") == [("one", 1, 5)]
    assert found[SERVICE_META].rows.column_names == [*ENTITY_COLUMNS, "minute"]


def test_nothing_folds_into_nothing() -> None:
    text = "a = from(Service.latency).percentile2(10);"
    empty = pa.Table.from_pylist([group("one", bucket_0=1, count=1)]).slice(0, 0)
    assert folded(empty, plan(text)) == {}
