from __future__ import annotations

import threading
from datetime import UTC
from pathlib import Path

import duckdb
import pytest

from contracts.expiry_contract import (
    LEASE,
    OLD,
    SHOP,
    TODAY,
    ExpiryContract,
    at,
    everything,
    held,
    of_day,
    tables_of,
)
from contracts.storage_contract import batch, calls_of, delta, segment
from skyfarer.base.errors import PermanentError
from skyfarer.oap.core.entities import DetectPoint, Entity
from skyfarer.oap.core.expiry import DayTable, DroppedDayError, Kept
from skyfarer.oap.core.traces import TraceCondition, TraceOrder
from skyfarer.oap.storage.embedded import EmbeddedStorage, schema
from skyfarer.testing.clock import HandClock


class TestEmbeddedStorage(ExpiryContract):
    pass


def test_t07_floors_and_leases_outlive_the_process(tmp_path: Path) -> None:
    path = tmp_path / "skyfarer.duckdb"
    storage = EmbeddedStorage()
    storage.start(path, UTC)
    storage.apply(of_day(OLD))
    lease = held(storage)
    for table in tables_of(storage, OLD):
        storage.drop(lease, table)
    storage.stop()
    again = EmbeddedStorage()
    again.start(path, UTC)
    assert again.expired() == {Kept.RECORD: OLD, Kept.METRICS: OLD}
    with pytest.raises(DroppedDayError, match="20261113 was dropped as expired"):
        again.apply(of_day(OLD, 1))
    assert again.take_lease(LEASE, "b", 1) is None
    again.stop()


def test_t01_what_a_killed_keeper_left_of_a_day_goes_with_the_next_drop(tmp_path: Path) -> None:
    path = tmp_path / "skyfarer.duckdb"
    storage = EmbeddedStorage()
    storage.start(path, UTC)
    storage.apply(everything(OLD))
    lease, tables = held(storage), tables_of(storage, OLD)
    metrics = [table for table in tables if table.kept is Kept.METRICS]
    for table in metrics:
        assert storage._put_out_of_sight(lease, table)
    assert not set(metrics) & set(storage.day_tables())
    storage.stop()
    again = EmbeddedStorage()
    again.start(path, UTC)
    left = {f"dropped_{one.model}_{one.day}" for one in metrics}
    assert left <= schema.present(again._cursor())
    with pytest.raises(DroppedDayError):
        again.apply(of_day(OLD, 1))
    assert not again.drop(lease, metrics[0])
    assert not any(name.startswith("dropped_") for name in schema.present(again._cursor()))
    again.stop()


def test_what_every_model_stores_is_listed_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "skyfarer.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE old_v2_metrics_service_20261113 (a INTEGER)")
        connection.execute("CREATE TABLE mine_20261113 (a INTEGER)")
        connection.execute("CREATE TABLE segment_2026111 (a INTEGER)")
    storage = EmbeddedStorage()
    storage.start(path, UTC)
    storage.apply(everything(OLD))
    relation = delta(minute=at(OLD) // 60_000, from_service="web", detect_point="SERVER")
    metrics = batch(1, 2, deltas=[relation]).metrics
    storage.apply(batch(1, 2, metrics={"ServiceRelation": metrics["Service"]}))
    found = storage.day_tables()
    assert [(one.model, one.kept.value) for one in found] == [
        ("metrics_endpoint", "metrics"),
        ("metrics_service", "metrics"),
        ("metrics_service_instance", "metrics"),
        ("metrics_service_relation", "metrics"),
        ("record", "record"),
        ("segment", "record"),
        ("service_relation_server_side", "metrics"),
        ("tag_autocomplete", "record"),
        ("top_n_database_statement", "record"),
        ("unsampled", "record"),
    ]
    lease = held(storage)
    for model in ("old_v2_metrics_service", "mine", "source_offset"):
        with pytest.raises(PermanentError, match="is no table of a day"):
            storage.drop(lease, DayTable(model, OLD, Kept.METRICS))
    for one in found:
        assert storage.drop(lease, one)
    late = {"ServiceRelation": metrics["Service"]}
    with pytest.raises(DroppedDayError):
        storage.apply(batch(2, 3, metrics=late))
    storage.stop()


def test_t05_a_lease_of_a_clock_that_was_set_back_is_no_longer_held(tmp_path: Path) -> None:
    clock = HandClock(at(TODAY))
    storage = EmbeddedStorage(clock=clock)
    storage.start(tmp_path / "skyfarer.duckdb", UTC)
    clock.set_ahead(365 * 86_400_000)
    first = held(storage, "a", 30)
    clock.set_ahead(-365 * 86_400_000)
    assert held(storage, "b", 30).epoch == first.epoch + 1
    storage.stop()


def test_a_query_never_meets_a_table_that_is_dropped_under_it(storage: EmbeddedStorage) -> None:
    """Days are made and dropped while others read all of them."""
    days = range(20261101, 20261113)
    for first, day in enumerate(days):
        minute = at(day) // 60_000
        storage.apply(
            batch(first, first + 1, [segment(f"s{first}", minute * 60_000)], [delta(minute=minute)])
        )
    failures, over = list[Exception](), threading.Event()

    def read() -> None:
        while not over.is_set():
            try:
                calls_of(storage, "Service", SHOP, 20250101, 20261231)
                storage.traces(TraceCondition(), TraceOrder.START_TIME, 0, 10)
                storage.tag_keys((0, 99991231235959), 10)
                storage.relations(Entity.SERVICE_RELATION, DetectPoint.SERVER, 20260101, 20261231)
            except Exception as error:
                failures.append(error)
                raise

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    lease = held(storage)
    for table in storage.day_tables():
        storage.drop(lease, table)
    over.set()
    for reader in readers:
        reader.join(30)
    assert failures == []
    assert storage.day_tables() == []
