from __future__ import annotations

import re

import pytest

from contracts.expiry_contract import (
    LEASE,
    OLD,
    TODAY,
    ExpiryContract,
    at,
    everything,
    held,
    of_day,
    tables_of,
)
from contracts.storage_contract import batch, delta
from skyfarer.base.errors import PermanentError
from skyfarer.oap.core.expiry import DayTable, DroppedDayError, Kept
from skyfarer.oap.core.streams.catalog import LASTING, MODELS
from skyfarer.oap.core.streams.metrics import SOURCES
from skyfarer.oap.storage.expiring import OUT_OF_SIGHT
from skyfarer.oap.storage.postgresql import PostgresStorage, expiry, models, schema

NAME_BYTES_MAX = 63
INDEX = re.compile("CREATE INDEX IF NOT EXISTS ([a-z0-9_]+) ON")


class TestPostgresExpiry(ExpiryContract):
    pass


def test_t07_floors_and_leases_are_those_of_all_nodes(
    storage: PostgresStorage, other: PostgresStorage
) -> None:
    storage.apply(of_day(OLD))
    lease = held(storage)
    for table in tables_of(storage, OLD):
        assert other.drop(lease, table)
    assert storage.expired() == {Kept.RECORD: OLD, Kept.METRICS: OLD}
    with pytest.raises(DroppedDayError, match="20261113 was dropped as expired"):
        storage.apply(of_day(OLD, 1))
    assert other.take_lease(LEASE, "b", 1) is None
    assert storage.day_tables() == []


def test_what_every_model_stores_is_listed_and_nothing_else(storage: PostgresStorage) -> None:
    with storage._transaction() as cursor:
        cursor.execute("CREATE TABLE mine_20261113 (a INTEGER)")
        cursor.execute("CREATE TABLE segment_2026111 (a INTEGER)")
    storage.apply(everything(OLD))
    relation = delta(minute=at(OLD) // 60_000, from_service="web", detect_point="SERVER")
    metrics = batch(1, 2, deltas=[relation]).metrics
    storage.apply(batch(1, 2, metrics={"ServiceRelation": metrics["Service"]}))
    listed = {f"{one.model}_{one.day}" for one in storage.day_tables()}
    parts = {one for one in _of_day(storage, OLD) if one.startswith("appended_")}
    assert {one.replace("appended_", "metrics_") for one in parts} <= listed
    assert _of_day(storage, OLD) - listed - parts == {"mine_20261113", "segment_data_20261113"}
    lease = held(storage)
    for model in ("mine", "source_offset"):
        with pytest.raises(PermanentError, match="is no table of a day"):
            storage.drop(lease, DayTable(model, OLD, Kept.RECORD))


def test_t01_what_a_killed_keeper_left_of_a_day_goes_with_the_next_drop(
    storage: PostgresStorage, other: PostgresStorage
) -> None:
    storage.apply(everything(OLD))
    lease, tables = held(storage), tables_of(storage, OLD)
    with storage._transaction() as cursor:
        cursor.execute("CREATE TABLE dropped_mine (a INTEGER)")
    for table in tables:
        assert storage._put_out_of_sight(lease, table)
    assert storage.day_tables() == []
    assert "dropped_segment_data_20261113" in _of_day(storage, OLD)
    with pytest.raises(DroppedDayError):
        other.apply(of_day(OLD, 1))
    assert not other.drop(lease, tables[0])
    assert _of_day(storage, OLD) == set()
    with storage._reading() as cursor:
        assert "dropped_mine" in schema.present(cursor)


def test_the_bytes_of_segments_go_with_them(storage: PostgresStorage) -> None:
    storage.apply(everything(OLD))
    assert storage.drop(held(storage), DayTable("segment", OLD, Kept.RECORD))
    assert not any(name.startswith("segment_") for name in _of_day(storage, OLD))


def test_what_was_appended_goes_with_what_it_belongs_to(storage: PostgresStorage) -> None:
    storage.apply(of_day(OLD))
    for table in tables_of(storage, OLD):
        assert storage.drop(held(storage), table)
    assert _of_day(storage, OLD) == set()
    assert storage.fold() == 0


def _of_day(storage: PostgresStorage, day: int) -> set[str]:
    with storage._reading() as cursor:
        return {name for name in schema.present(cursor) if name.endswith(f"_{day}")}


def test_the_server_cuts_no_name_off() -> None:
    """The longest are those out of sight. Two that are cut off might be the same."""
    days = [one for one in MODELS.values() if one.is_time_series]
    tables = [one.of_day(OLD) for one in days]
    tables += [f"{part}_{OLD}" for one in days for part in expiry._parts(one.name)]
    made = [line for one in days for line in models.indexes(one, one.of_day(OLD))]
    made += [line for one in LASTING for line in models.indexes(one, one.name)]
    indexes = [INDEX.findall(line)[0] for line in made]
    assert len(tables) > 2 * len(SOURCES)
    assert len(indexes) > len(SOURCES)
    longest = max((f"{OUT_OF_SIGHT}{one}" for one in tables), key=len)
    assert len(longest.encode()) <= NAME_BYTES_MAX, longest
    assert len(max(indexes, key=len).encode()) <= NAME_BYTES_MAX


def test_a_batch_whose_table_is_dropped_under_it_is_refused_whole(
    storage: PostgresStorage, other: PostgresStorage
) -> None:
    """The other node remembers tables that are gone."""
    other.apply(of_day(OLD))
    lease = held(storage)
    for table in tables_of(storage, OLD):
        assert storage.drop(lease, table)
    with pytest.raises(DroppedDayError):
        other.apply(of_day(OLD, 1))
    other.apply(of_day(TODAY, 1))
    assert {one.day for one in other.day_tables()} == {TODAY}
