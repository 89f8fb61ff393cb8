"""Sums that leave 64 bits: the batch goes on, whatever other sources keep in the same column."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from oap.pipeline.bench import NOON, Bench
from skyfarer.oap.core.storage import Applied
from skyfarer.oap.oal.compiler import Text, plan_of
from skyfarer.wire.messages import browser, runtime
from skyfarer.wire.rpc import Kind

PLAN = plan_of(
    [
        Text(
            "shared.oal",
            """
            page_redirect = from(BrowserAppPagePerf.redirectTime).longAvg();
            page_dns = from(BrowserAppPagePerf.dnsTime).longAvg();
            memory_used = from(ServiceInstanceJVMMemory.used).longAvg();
            """,
        )
    ]
)


def test_batch_survives_a_sum_beyond_64_bits_in_a_column_shared_with_small_numbers(
    spark: SparkSession, tmp_path: Path
) -> None:
    jvm = runtime.JVMMetricCollection(service="shop", serviceInstance="one")
    memory = runtime.Memory(isHeap=True, used=2**63 - 1, max=2**63 - 1)
    jvm.metrics.add(time=NOON, memory=[memory, memory, memory])
    page = browser.BrowserPerfData(service="web", pagePath="/", time=NOON, redirectTime=7)
    bench = Bench(tmp_path, spark, plan=PLAN)
    bench.start(tmp_path / "skyfarer.duckdb")
    bench.keep(Kind.JVM_METRICS, jvm)
    bench.keep(Kind.BROWSER_PAGE, page)
    bench.apply()
    assert bench.progress() == Applied(2, 2, {})
    bench.stop()
