"""Data that comes after its day was dropped: given up and counted, and nothing is made again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from oap.pipeline.bench import BUCKET, NOON, SETTINGS, Bench, Calls
from oap.pipeline.faults.line import BEGIN, METRICS, SEARCH, Fate, Line, Tables, contents
from oap.pipeline.faults.work import BATCH, BATCHES
from skyfarer.oap.core.expiry import Kept, Retention
from skyfarer.oap.core.storage import Applied
from skyfarer.oap.pipeline.metrics import Metrics
from skyfarer.oap.pipeline.times import DAY_MS
from skyfarer.oap.storage.embedded import EmbeddedStorage
from skyfarer.testing.traces import segment
from skyfarer.wire.messages import SegmentObject, log, runtime
from skyfarer.wire.rpc import Kind

YESTERDAY = 20261114


def at(identifier: str, days_ago: int) -> SegmentObject:
    start_ms = NOON - days_ago * DAY_MS
    return segment("shop", "shop-1", "/pay", start_ms, 0, segment_id=identifier)


def drop(storage: EmbeddedStorage, day: int, *kept: Kept) -> None:
    lease = storage.take_lease("ttl", "keeper", 300)
    assert lease is not None
    for table in storage.day_tables():
        if table.day <= day and table.kept in (kept or Kept):
            assert storage.drop(lease, table)


def days(storage: EmbeddedStorage) -> set[int]:
    return {table.day for table in storage.day_tables()}


def test_t07_late_segments_logs_and_measurements_of_a_dropped_day_are_counted_as_expired(
    bench: Bench,
) -> None:
    bench.append(at("old", 5), at("now", 0))
    bench.apply()
    drop(bench.storage, 20261110)
    late_ms = NOON - 5 * DAY_MS
    jvm = runtime.JVMMetricCollection(service="shop", serviceInstance="shop-1")
    jvm.metrics.add(time=late_ms).cpu.usagePercent = 40.0
    bench.append(at("late", 5), at("later", 6), at("now too", 0))
    bench.keep(Kind.LOG, log.LogData(timestamp=late_ms, service="shop"))
    bench.keep(Kind.JVM_METRICS, jvm)
    bench.apply()
    assert bench.progress() == Applied(7, 3, {"expired": 4})
    assert days(bench.storage) == {20261115}
    assert bench.calls() == {BUCKET: Calls(2, 0, 0)}


def test_t07_a_segment_goes_with_the_records_that_tell_a_resend(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Metrics of its day are kept longer: a resend would be counted in them again."""
    bench = Bench(tmp_path, spark, replace(SETTINGS, retention=Retention(3, 7)))
    bench.start(tmp_path / "skyfarer.duckdb")
    try:
        jvm = runtime.JVMMetricCollection(service="shop", serviceInstance="shop-1")
        jvm.metrics.add(time=NOON - 5 * DAY_MS).cpu.usagePercent = 40.0
        bench.append(at("two days", 2), at("three days", 3))
        bench.keep(Kind.JVM_METRICS, jvm)
        bench.apply()
        assert bench.progress() == Applied(3, 2, {"expired": 1})
        assert days(bench.storage) == {20261110, 20261113}
    finally:
        bench.stop()


@pytest.mark.parametrize(
    ("moment", "kept"),
    [(SEARCH, tuple(Kept)), (METRICS, (Kept.METRICS,)), (BEGIN, (Kept.RECORD,))],
)
def test_t07_a_day_dropped_while_its_rows_are_analysed_is_not_made_again(
    moment: str,
    kept: tuple[Kept, ...],
    filled: Path,
    undisturbed: Tables,
    tmp_path: Path,
    spark: SparkSession,
    metrics: Metrics,
) -> None:
    """In the third batch, in which there are rows of yesterday as in each."""
    directory, deeds = tmp_path / "life", list[Callable[[], None]]()
    shutil.copytree(filled, directory)
    fate = Fate(moment, 3, lambda: deeds[0]())
    with Line(directory, spark, metrics, fate) as line:
        deeds.append(lambda: drop(line.storage, YESTERDAY, *kept))
        line.run()
        progress = line.storage.progress(line.reader.queue_id)
        left = {table.kept for table in line.storage.day_tables() if table.day == YESTERDAY}
    assert left == set(Kept) - set(kept)
    assert progress.next_sequence == BATCHES * BATCH
    assert progress.delivered + sum(progress.dropped.values()) == BATCHES * BATCH
    found, today = contents(directory), str(YESTERDAY + 1)
    assert progress.dropped["expired"] > BATCHES
    for table, rows in undisturbed.items():
        if table.endswith(today):
            assert found[table] == rows, table
