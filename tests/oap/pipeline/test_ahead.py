"""What traces say is asked before the driver knows the batch, and never counted wrongly for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from oap.pipeline.bench import BUCKET, NOON, PLAN, SETTINGS, Bench, Calls
from skyfarer.oap.core.storage import Deltas
from skyfarer.oap.pipeline.metrics import Metrics
from skyfarer.testing.traces import segment
from skyfarer.wire.messages import InstancePingPkg, SegmentObject
from skyfarer.wire.rpc import Kind


class Asked(Metrics):
    times = 0

    def of(self, *of: Any) -> dict[str, Deltas]:
        self.times += 1
        return super().of(*of)


METRICS = Asked(PLAN, SETTINGS)


@pytest.fixture
def asked_bench(tmp_path: Path, spark: SparkSession) -> Iterator[Bench]:
    METRICS.times = 0
    bench = Bench(tmp_path, spark, metrics=METRICS)
    bench.start(tmp_path / "skyfarer.duckdb")
    yield bench
    bench.stop()


def shop(number: int) -> SegmentObject:
    return segment("shop", "i", "/pay", NOON, 10, segment_id=f"s{number}")


def test_a_batch_is_asked_once_and_again_only_where_records_of_it_are_left_out(
    asked_bench: Bench,
) -> None:
    bench, asked = asked_bench, []
    for numbers in ([0, 1], [2], [2, 3], [4], [5]):
        bench.append(*map(shop, numbers))
        bench.apply()
        asked.append(METRICS.times)
    assert bench.calls() == {BUCKET: Calls(6, 60, 0)}
    # The third has a resend. The fourth is not asked ahead, and so is asked once all the same.
    assert asked == [1, 2, 4, 5, 6]


def test_whoever_sends_everything_twice_is_asked_in_vain_once(asked_bench: Bench) -> None:
    bench, asked = asked_bench, []
    for numbers in ([0], [0, 1], [1, 2], [2, 3], [3, 4], [5], [6]):
        bench.append(*map(shop, numbers))
        bench.apply()
        asked.append(METRICS.times)
    assert bench.calls() == {BUCKET: Calls(7, 70, 0)}
    assert asked == [1, 3, 4, 5, 6, 7, 8]


def test_a_batch_without_traces_is_asked_at_most_once_ahead(asked_bench: Bench) -> None:
    bench = asked_bench
    for _ in range(3):
        bench.keep(Kind.INSTANCE_PING, InstancePingPkg(service="shop", serviceInstance="i"))
        bench.apply()
    assert METRICS.times == 1
    bench.append(shop(0))
    bench.apply()
    assert bench.calls() == {BUCKET: Calls(1, 10, 0)}
    assert METRICS.times == 2
