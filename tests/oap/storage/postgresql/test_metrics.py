from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contracts.metrics_contract import SHOP, MetricsContract, address, aliases_of, only
from contracts.storage_contract import BUCKET, MINUTE, TABLE, batch, delta, deltas_of
from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.base.units import MIB
from skyfarer.oap.core.entities import ADDRESS_ALIAS
from skyfarer.oap.core.storage import KEYS_MAX, Analysed, Deltas, Merge
from skyfarer.oap.oal.plan import COLUMN_CHARS_MAX
from skyfarer.oap.storage.postgresql import PostgresStorage
from skyfarer.oap.storage.postgresql.columns import ROOM, SPREAD

DAY = BUCKET // 10_000
LONG_MAX = 2**63 - 1


class TestPostgresMetrics(MetricsContract):
    """As they are read while they are merely appended."""


class Folded(PostgresStorage):
    """Folds after every batch."""

    def apply(self, batch: Analysed) -> None:
        super().apply(batch)
        self.fold()


class TestFoldedPostgresMetrics(MetricsContract):
    @pytest.fixture
    def storage(self, conninfo: str) -> Iterator[PostgresStorage]:
        storage = Folded(conninfo)
        storage.start(UTC)
        yield storage
        storage.stop()


def tables(values: dict[str, int], bound: int, merge: Merge = Merge.SUM) -> Deltas:
    rows = deltas_of([delta(kinds=values)], {"kinds": merge}, {"kinds": TABLE})
    return replace(rows, bounds={"kinds": bound})


def stored(storage: PostgresStorage) -> dict[str, int]:
    found = storage.series("Service", SHOP, ["kinds"], BUCKET, BUCKET)
    table: Any = found.get(BUCKET, {}).get("kinds", {})
    return dict(table)


def compared(storage: PostgresStorage) -> dict[str, int]:
    """The same, as it is read of all entities, for the day that the minute is in."""
    tables = storage.rows("Service", ["kinds"], DAY, DAY)["kinds"].to_pylist()
    return dict(tables[0] or ()) if tables else {}


def length(storage: PostgresStorage) -> int:
    with storage._reading() as cursor:
        cursor.execute(f"SELECT max(octet_length(kinds)) FROM metrics_service_{DAY}")
        return int(cursor.fetchall()[0][0])


def test_an_entity_has_one_row_a_bucket_once_all_is_folded(storage: PostgresStorage) -> None:
    for number in range(3):
        rows = [delta(MINUTE + n, service=f"s{n % 2}") for n in range(4)]
        storage.apply(batch(number, number + 1, deltas=rows))
    assert storage.fold() == 3 * 12, "of three sources"
    assert storage.fold() == 0
    with storage._reading() as cursor:
        cursor.execute(
            """SELECT count(*), sum(calls)::bigint FROM metrics_service_20261115
            GROUP BY entity_id, time_bucket ORDER BY entity_id, time_bucket"""
        )
        assert cursor.fetchall() == [(1, 6), (1, 6), (1, 3), (1, 3)] * 2


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.dictionaries(st.text("aé%\t\n\r\x85", max_size=2), st.integers(-9, 9)), max_size=9),
    st.integers(1, 9),
    st.sampled_from(list(Merge)),
    st.integers(1, 4),
)
def test_a_table_is_what_merging_one_after_the_other_gives(
    storage: PostgresStorage,
    told: list[dict[str, int]],
    bound: int,
    merge: Merge,
    folded_every: int,
) -> None:
    """Keys that are there stay; of new ones those come first that are first by their text. Whether
    what is read was folded, and how much at once, makes no difference."""
    both = {Merge.SUM: lambda a, b: a + b, Merge.MAX: max, Merge.MIN: min}[merge]
    with storage._transaction() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS metrics_service_{DAY}, appended_service_{DAY}")
    storage._tables = {}
    expected: dict[str, int] = {}
    for number, values in enumerate(told, 1):
        at = storage.applied("queue-a")
        storage.apply(batch(at, at + 1, metrics={"Service": tables(values, bound, merge)}))
        for key, value in sorted(values.items()):
            if key in expected:
                expected[key] = both(expected[key], value)
            elif len(expected) < bound:
                expected[key] = value
        assert stored(storage) == compared(storage) == expected
        if number % folded_every == 0:
            storage.fold()
            assert stored(storage) == compared(storage) == expected


def test_a_table_that_is_told_often_stays_short(storage: PostgresStorage) -> None:
    keys = [f"{number}" for number in range(20)]
    for number in range(30):
        values = dict.fromkeys(keys, number)
        storage.apply(batch(number, number + 1, metrics={"Service": tables(values, 999)}))
        storage.fold()
        assert length(storage) <= ROOM + SPREAD + 3 * len(keys) * len("10\t999\n")
    assert stored(storage) == dict.fromkeys(keys, sum(range(30)))


@pytest.mark.parametrize("told", [{"k" * 3 * MIB: 1}, {f"{n:040}": n for n in range(KEYS_MAX)}])
def test_a_table_may_be_long(storage: PostgresStorage, told: dict[str, int]) -> None:
    storage.apply(batch(0, 1, metrics={"Service": tables(told, KEYS_MAX)}))
    storage.fold()
    assert length(storage) > 2 * MIB
    assert stored(storage) == told
    assert compared(storage) == told


def test_a_table_without_a_key_is_none(storage: PostgresStorage) -> None:
    for number in range(2):
        storage.apply(batch(number, number + 1, metrics={"Service": tables({}, 9)}))
        assert storage.series("Service", SHOP, ["kinds"], BUCKET, BUCKET) == {}
    storage.apply(batch(2, 3, metrics={"Service": tables({"a": 1}, 9)}))
    assert stored(storage) == {"a": 1}


def test_sums_of_tables_wrap_around_read_or_put_together(storage: PostgresStorage) -> None:
    for number in range(3):
        values = {"a": LONG_MAX, "b": -LONG_MAX - 1}
        storage.apply(batch(number, number + 1, metrics={"Service": tables(values, 3)}))
        storage.fold()
        expected = {1: (LONG_MAX, -LONG_MAX - 1), 2: (-2, 0), 3: (LONG_MAX - 2, -LONG_MAX - 1)}
        a, b = expected[number + 1]
        assert stored(storage) == {"a": a, "b": b}
    assert length(storage) == len(f"a\t{LONG_MAX - 2}\nb\t{-LONG_MAX - 1}\n")


@pytest.mark.parametrize("folds", [0, 1, 2])
@pytest.mark.parametrize(("one", "other"), [(LONG_MAX, 1), (-LONG_MAX - 1, -1), (LONG_MAX, -5)])
def test_sums_of_numbers_wrap_around_in_both_directions(
    storage: PostgresStorage, one: int, other: int, folds: int
) -> None:
    for number, value in enumerate((one, other)):
        rows = deltas_of([delta(total=value)], {"total": Merge.SUM})
        storage.apply(batch(number, number + 1, metrics={"Service": rows}))
        if number >= 2 - folds:
            storage.fold()
    total = (one + other + 2**63) % 2**64 - 2**63
    series = storage.series("Service", SHOP, ["total"], BUCKET, BUCKET)
    assert series == {BUCKET: {"total": total}}
    assert storage.rows("Service", ["total"], DAY, DAY)["total"].to_pylist() == [total]


@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_sum_of_doubles_that_grows_too_large_is_infinite(
    storage: PostgresStorage, sign: int, folded: bool
) -> None:
    for number in range(3):
        row = delta(ratio=sign * 1.7e308)
        rows = deltas_of([row], {"ratio": Merge.SUM}, {"ratio": pa.float64()})
        storage.apply(batch(number, number + 1, metrics={"Service": rows}))
        if folded:
            storage.fold()
    infinite = sign * float("inf")
    series = storage.series("Service", SHOP, ["ratio"], BUCKET, BUCKET)
    assert series == {BUCKET: {"ratio": infinite}}
    assert storage.rows("Service", ["ratio"], DAY, DAY)["ratio"].to_pylist() == [infinite]


def test_a_table_whose_values_are_merged_otherwise_is_refused(storage: PostgresStorage) -> None:
    storage.apply(batch(0, 1, metrics={"Service": tables({"a": 1}, 9)}))
    rows = deltas_of([delta(kinds=3)], {"kinds": Merge.SUM})
    with pytest.raises(
        PermanentError, match=r"column kinds of metrics_service_20261115 is text, but"
    ):
        storage.apply(batch(1, 2, metrics={"Service": rows}))
    with pytest.raises(PermanentError, match=r"is merged by sum, but a batch brings max"):
        storage.apply(batch(1, 2, metrics={"Service": tables({"a": 1}, 9, Merge.MAX)}))


def test_a_name_that_leaves_no_room_for_a_tables_columns_is_refused(
    storage: PostgresStorage,
) -> None:
    name = "k" * 62
    rows = deltas_of([delta(**{name: {"a": 1}})], {name: Merge.SUM}, {name: TABLE})
    with pytest.raises(PermanentError, match="cannot be a column of metrics"):
        storage.apply(batch(0, 1, metrics={"Service": rows}))


def test_a_name_as_long_as_a_plan_gives_it_is_a_column(storage: PostgresStorage) -> None:
    table, number = "t" * COLUMN_CHARS_MAX, "n" * COLUMN_CHARS_MAX
    row = delta(**{table: {"a": 1}, number: 2})
    merges = {table: Merge.MAX, number: Merge.SUM}
    rows = deltas_of([row], merges, {table: TABLE})
    storage.apply(batch(0, 1, metrics={"Service": rows}))
    storage.fold()
    storage.apply(batch(1, 2, metrics={"Service": rows}))
    series = storage.series("Service", SHOP, [table, number], DAY, DAY)
    assert series == {DAY: {table: {"a": 1}, number: 4}}


def test_tables_of_the_first_schema_go_on(storage: PostgresStorage) -> None:
    """It had no appended tables, and spelt out what a table merges by."""
    storage.apply(batch(0, 1, metrics={"Service": tables({"a": 5, "b": 1}, 9, Merge.MAX)}))
    storage.fold()
    with storage._transaction() as cursor:
        cursor.execute(f'ALTER TABLE metrics_service_{DAY} RENAME COLUMN "kinds >" TO "kinds max"')
        cursor.execute(f"DROP TABLE appended_service_{DAY}")
        cursor.execute('CREATE TABLE metrics_sales_of_shop_20200101 (shop TEXT, "paid max" BIGINT)')
        cursor.execute("UPDATE schema_version SET version = 1")
    storage.stop()
    with pytest.raises(RetryableError, match="the tables are of schema 1, not yet of 4"):
        storage.start(UTC, install=False)
    storage.start(UTC)
    assert stored(storage) == compared(storage) == {"a": 5, "b": 1}
    storage.apply(batch(1, 2, metrics={"Service": tables({"a": 3, "c": 2}, 9, Merge.MAX)}))
    assert stored(storage) == {"a": 5, "b": 1, "c": 2}
    storage.fold()
    assert stored(storage) == compared(storage) == {"a": 5, "b": 1, "c": 2}


def _rows_each_by_itself(storage: PostgresStorage) -> None:
    """What the third schema would have appended: two batches, one with a bound of keys."""
    table = f"appended_service_{DAY}"
    with storage._transaction() as cursor:
        cursor.execute(f"DROP TABLE {table}")
        cursor.execute(
            f"""CREATE TABLE {table} (entity_id TEXT COLLATE "C", time_bucket BIGINT, batch BIGINT,
            "kinds +" TEXT COLLATE "C", "kinds #" INTEGER, "calls +" BIGINT,
            "ratio +" DOUBLE PRECISION)"""
        )
        cursor.execute(f"CREATE INDEX {table}_entity ON {table} (entity_id)")
        cursor.execute(
            f"""INSERT INTO {table} VALUES ('{SHOP}', {BUCKET}, 2, E'b\t1\nc\t2\n', 2, 5, 0.5),
            ('{SHOP}', {BUCKET}, 1, E'a\t7\n', NULL, NULL, NULL),
            ('other', {BUCKET}, 2, NULL, 2, 9, NULL)"""
        )
        cursor.execute("UPDATE schema_version SET version = 3")


def test_what_the_third_schema_has_appended_goes_on(storage: PostgresStorage) -> None:
    merges = {"kinds": Merge.SUM, "calls": Merge.SUM, "ratio": Merge.SUM}
    told = delta(kinds={"a": 1}, calls=1, ratio=0.25)
    rows = deltas_of([told], merges, {"kinds": TABLE, "ratio": pa.float64()})
    storage.apply(batch(0, 1, metrics={"Service": rows}))
    storage.fold()
    _rows_each_by_itself(storage)
    storage.stop()
    storage.start(UTC)
    expected = {"kinds": {"a": 8, "b": 1}, "calls": 6, "ratio": 0.75}
    for _ in range(2):
        for bucket in (BUCKET, DAY):
            assert storage.series("Service", SHOP, list(merges), bucket, bucket) == {
                bucket: expected
            }
        assert storage.rows("Service", ["calls"], DAY, DAY)["calls"].to_pylist() == [6, 9]
        storage.fold()
    storage.apply(batch(1, 2, metrics={"Service": rows}))
    assert storage.series("Service", SHOP, ["calls"], DAY, DAY) == {DAY: {"calls": 7}}


def test_aliases_are_read_again_only_when_one_has_changed(storage: PostgresStorage) -> None:
    claims = [address(MINUTE, "b:80", "bank", "b"), address(MINUTE + 1, "b:80", "bank", "b")]
    storage.apply(batch(0, 1, metrics=only(ADDRESS_ALIAS, claims[0])))
    read = storage.aliases()
    storage.apply(batch(1, 2, metrics=only(ADDRESS_ALIAS, claims[1])))
    assert storage.aliases() is read
    storage.apply(batch(2, 3, metrics=only(ADDRESS_ALIAS, address(MINUTE + 2, "b:80", "x", "y"))))
    assert aliases_of(storage) == {"b:80": ("x", "y")}


def test_aliases_that_another_node_has_changed_are_seen(
    storage: PostgresStorage, other: PostgresStorage
) -> None:
    assert aliases_of(other) == {}
    storage.apply(batch(0, 1, metrics=only(ADDRESS_ALIAS, address(MINUTE, "b:80", "bank", "b"))))
    assert aliases_of(other) == {"b:80": ("bank", "b")}


def test_a_column_that_another_node_has_added_is_no_hindrance(
    storage: PostgresStorage, other: PostgresStorage
) -> None:
    for number, node in enumerate((storage, other, storage)):
        merges = dict.fromkeys(("first", f"only_{number}"), Merge.SUM)
        row = delta(first=1, **{f"only_{number}": 1})
        node.apply(batch(number, number + 1, metrics={"Service": deltas_of([row], merges)}))
    names = ["first", "only_0", "only_1", "only_2"]
    series = storage.series("Service", SHOP, names, BUCKET, BUCKET)
    assert series == {BUCKET: {"first": 3, "only_0": 1, "only_1": 1, "only_2": 1}}
