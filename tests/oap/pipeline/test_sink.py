"""Real queue, real Spark, real storage: what a micro-batch leaves behind."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from oap.pipeline.bench import BUCKET, NOON, PLAN, SETTINGS, SHOP, Bench, Calls
from skyfarer.base.errors import PermanentError
from skyfarer.oap.core import ids
from skyfarer.oap.core.storage import Applied
from skyfarer.oap.pipeline.ahead import Ahead
from skyfarer.oap.pipeline.metrics import Metrics
from skyfarer.testing.programs import eventually
from skyfarer.testing.traces import Caller, segment
from skyfarer.wire.messages import (
    InstancePingPkg,
    InstanceProperties,
    KeyStringValuePair,
    SegmentObject,
    SpanObject,
)
from skyfarer.wire.rpc import Kind


def shop(identifier: str, start_ms: int = NOON, latency_ms: int = 10) -> SegmentObject:
    return segment("shop", "shop-1", "/pay", start_ms, latency_ms, segment_id=identifier)


def test_entry_spans_are_grouped_per_service_instance_endpoint_and_minute(bench: Bench) -> None:
    bench.append(shop("a"), shop("b", NOON + 59_999, 30), shop("c", NOON + 60_000, 5))
    bench.append(segment("shop", "shop-2", "/cart", NOON, 7, error=True, segment_id="d"))
    bench.apply()
    first, second = Calls(3, 47, 1), Calls(1, 5, 0)
    assert bench.calls() == {BUCKET: first, BUCKET + 1: second}
    assert bench.calls("ServiceInstance", ids.instance_id(SHOP, "shop-2")) == {
        BUCKET: Calls(1, 7, 1)
    }
    assert bench.calls("Endpoint", ids.endpoint_id(SHOP, "/pay")) == {
        BUCKET: Calls(2, 40, 0),
        BUCKET + 1: second,
    }
    assert bench.progress() == Applied(4, 4, {})
    assert bench.consumer.committed() == 4


def test_a_segment_is_stored_with_its_own_bytes(bench: Bench) -> None:
    one = shop("a", NOON + 1_234, 40)
    bench.append(one)
    bench.apply()
    (row,) = bench.stored()
    parts = (ids.instance_id(SHOP, "shop-1"), ids.endpoint_id(SHOP, "/pay"))
    assert row == (
        *("a", one.traceId, SHOP, *parts, 20261115120001, NOON + 1_234, 40, False),
        one.SerializeToString(),
        Kind.SEGMENT,
    )


def test_a_batch_that_comes_again_changes_nothing(bench: Bench) -> None:
    bench.append(shop("a"), shop("b"))
    bench.apply()
    for start in (0, 1, 2):
        bench.apply(start)
    assert bench.calls() == {BUCKET: Calls(2, 20, 0)}
    assert len(bench.stored()) == 2
    assert bench.progress() == Applied(2, 2, {})


def test_a_batch_that_overlaps_what_is_stored_adds_only_the_rest(bench: Bench) -> None:
    bench.append(shop("a"), shop("b"))
    bench.apply()
    bench.append(shop("c"))
    bench.apply(start=0)
    assert bench.calls() == {BUCKET: Calls(3, 30, 0)}
    assert bench.progress() == Applied(3, 3, {})


def test_spark_compiles_nothing_for_a_batch_like_the_one_before(
    bench: Bench, spark: SparkSession
) -> None:
    """One that differs by a constant, or has an expression that was made again, would be compiled
    anew as a whole."""
    jvm: Any = spark._jvm
    compiled = jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
    times = []
    for name in "abc":
        bench.append(shop(name))
        bench.apply()
        bench.clock.seconds += 61.0
        times.append(compiled.getCount())
    assert 0 < times[1] == times[2]


def test_batches_with_and_without_traces_follow_one_another(bench: Bench) -> None:
    for name in "abcd":
        bench.append(shop(name))
        bench.apply()
        for _ in "by":
            ping = InstancePingPkg(service="shop", serviceInstance="shop-1")
            bench.keep(Kind.INSTANCE_PING, ping)
            bench.apply()
    assert bench.calls() == {BUCKET: Calls(4, 40, 0)}


def test_a_query_that_cannot_be_asked_fails_the_batch_that_asks_for_it(bench: Bench) -> None:
    bench.append(shop("a"))
    rows, wrong, ahead = bench.batch(0, 1), pa.table({"wrong": [1]}), Ahead(Metrics(PLAN, SETTINGS))
    ahead.begin(rows, wrong)
    with pytest.raises(AnalysisException, match="address"):
        ahead.of(rows, wrong)
    ahead.end()
    ahead.begin(rows, bench.storage.aliases())
    assert ahead.of(rows, bench.storage.aliases())["Service"].rows["service"].to_pylist() == [
        "shop"
    ]
    ahead.end()
    threads = {one for one in threading.enumerate() if one.name.startswith("ahead")}
    ahead.close()
    ahead.close()
    eventually(lambda: len([one for one in threads if one.is_alive()]) < len(threads), 60, "an end")


def test_a_batch_with_a_gap_is_refused_and_stores_nothing(bench: Bench) -> None:
    bench.append(shop("a"), shop("b"))
    with pytest.raises(PermanentError, match="where 0…1 were expected"):
        bench.apply(start=1)
    assert bench.progress() == Applied(0, 0, {})


def test_a_resent_segment_counts_once_in_and_across_batches(bench: Bench) -> None:
    bench.append(shop("a"), shop("a"), shop("b"))
    bench.apply()
    bench.append(shop("b"), shop("c"))
    bench.apply()
    assert bench.calls() == {BUCKET: Calls(3, 30, 0)}
    assert [row[0] for row in bench.stored()] == ["a", "b", "c"]
    assert bench.progress() == Applied(5, 3, {"duplicate": 2})


def test_what_cannot_be_analysed_is_parked_with_its_bytes_and_reason(bench: Bench) -> None:
    bench.append(shop("a"))
    no_span = SegmentObject(traceSegmentId="x", service="shop").SerializeToString()
    bad: Sequence[tuple[int, bytes]] = [
        (Kind.SEGMENT, b"\xff\xff\xff"),
        (Kind.SEGMENT, bytes(no_span)),
        (Kind.SEGMENT, b""),
        (Kind.INSTANCE_PING, b""),
        (Kind.INSTANCE_PROPERTIES, b"\x0a"),
        (777, b"what is this"),
    ]
    for kind, payload in bad:
        bench.writer.append(kind, [payload])
    bench.append(shop("b"))
    bench.apply()
    parked = bench.storage.parked(bench.reader.queue_id)
    assert [(record.kind, record.payload) for record in parked] == bad
    assert [record.sequence for record in parked] == [1, 2, 3, 4, 5, 6]
    assert [record.reason.partition(":")[0] for record in parked] == [
        *("undecodable", "incomplete", "incomplete", "incomplete", "undecodable", "unknown_kind")
    ]
    counts = {"undecodable": 2, "incomplete": 3, "unknown_kind": 1}
    assert bench.progress() == Applied(8, 2, counts)
    assert bench.calls() == {BUCKET: Calls(2, 20, 0)}


@pytest.mark.parametrize("missing", ["traceSegmentId", "service", "spans"])
def test_a_segment_without_what_it_needs_is_parked_and_nothing_is_made_of_it(
    bench: Bench, missing: str
) -> None:
    one = shop("a")
    one.ClearField(missing)
    bench.append(one)
    bench.apply()
    assert bench.parked() == [(0, "incomplete", one.SerializeToString())]
    assert bench.progress() == Applied(1, 0, {"incomplete": 1})
    assert bench.storage.services(None) == []


def test_a_batch_of_bad_records_alone_still_advances(bench: Bench) -> None:
    bench.writer.append(Kind.SEGMENT, [b"\xff"] * 3)
    bench.apply()
    assert bench.progress() == Applied(3, 0, {"undecodable": 3})


def test_an_empty_batch_changes_nothing(bench: Bench) -> None:
    bench.apply()
    assert bench.progress() == Applied(0, 0, {})


def test_each_reference_of_an_entry_span_is_a_call(bench: Bench) -> None:
    callers = [Caller("t", f"s{n}", 0, "web", "web-1", "/", "mq:9092") for n in range(3)]
    bench.append(segment("shop", "shop-1", "/pay", NOON, 10, callers=callers, segment_id="a"))
    bench.apply()
    assert bench.calls() == {BUCKET: Calls(3, 30, 0)}


def test_spans_that_are_no_entry_or_ask_to_be_skipped_are_not_counted(bench: Bench) -> None:
    one = shop("a")
    one.spans.append(SpanObject(spanId=7, spanType="Exit", startTime=NOON, endTime=NOON + 9))
    one.spans.append(SpanObject(spanId=8, spanType="Local", startTime=NOON, endTime=NOON + 9))
    skipped = shop("b")
    skipped.spans[-1].skipAnalysis = True
    bench.append(one, skipped)
    bench.apply()
    assert bench.calls() == {BUCKET: Calls(1, 10, 0)}
    assert len(bench.stored()) == 2


def test_long_names_are_cut_before_they_are_grouped(bench: Bench) -> None:
    for number in range(2):
        name = f"0123456789-{number}"
        bench.append(segment(name, name, f"/abcdefghijk-{number}", NOON, 1))
    bench.apply()
    service = ids.service_id("0123456789")
    assert [one.name for one in bench.storage.services(None)] == ["0123456789"]
    assert [one.name for one in bench.storage.endpoints(service, "", 9)] == ["/abcdefghijk"]
    assert bench.calls("Service", service) == {BUCKET: Calls(2, 2, 0)}


def test_heartbeats_make_instances_known(bench: Bench) -> None:
    pairs = [("language", "python"), ("ipv4", "10.0.0.1"), ("ipv4", "10.0.0.2")]
    told = InstanceProperties(
        service="shop",
        serviceInstance="shop-1",
        properties=[KeyStringValuePair(key=key, value=value) for key, value in pairs],
    )
    ping = InstancePingPkg(service="mesh", serviceInstance="m-1", layer="MESH")
    bench.writer.append(Kind.INSTANCE_PROPERTIES, [bytes(told.SerializeToString())])
    bench.writer.append(Kind.INSTANCE_PING, [bytes(ping.SerializeToString())])
    bench.apply()
    assert {one.name: one.layers for one in bench.storage.services(None)} == {
        "shop": ("GENERAL",),
        "mesh": ("MESH",),
    }
    (instance,) = bench.storage.instances(SHOP, 0, 999_999_999_999)
    assert instance.language == "PYTHON"
    assert instance.attributes == (("ipv4s", "10.0.0.1,10.0.0.2"),)
    assert bench.progress() == Applied(2, 2, {})


def test_a_damaged_record_is_parked_and_its_neighbours_are_counted(bench: Bench) -> None:
    bench.append(shop("a"), shop("b"), shop("c"))
    (file,) = [path for path in bench.directory.glob("*.seg") if b"\x01b\x1a" in path.read_bytes()]
    raw = bytearray(file.read_bytes())
    raw[raw.index(b"\x01b\x1a") + 1] ^= 0x40
    file.write_bytes(raw)
    bench.apply()
    assert bench.calls() == {BUCKET: Calls(2, 20, 0)}
    assert bench.progress() == Applied(3, 2, {"corrupt": 1})
