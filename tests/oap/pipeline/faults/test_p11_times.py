"""Clocks that are wrong, and data that comes late: each record by itself, and nothing waits."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession

from oap.pipeline.bench import BUCKET, NOON, SHOP, Bench, Calls
from oap.pipeline.faults.line import Line, contents
from oap.pipeline.faults.work import fill, laced, pair, pairs, told
from skyfarer.oap.core.storage import Applied
from skyfarer.oap.pipeline.metrics import Metrics
from skyfarer.oap.pipeline.times import DAY_MS, FUTURE_MS_MAX
from skyfarer.telemetry import table
from skyfarer.testing.traces import segment
from skyfarer.wire.messages import SegmentObject
from skyfarer.wire.rpc import Kind

NOW = NOON + 3_600_000
OLDEST, NEWEST = (NOW // DAY_MS - 6) * DAY_MS, NOW + FUTURE_MS_MAX
"""Seven days, today among them."""
CALLS = 200
OWN = ("source_offset", "source_dropped", "parked_record")
"""Where a record that is out of its time may show; nothing else knows of it."""


def at(identifier: str, start_ms: int) -> SegmentObject:
    return segment("shop", "shop-1", "/pay", start_ms, 0, segment_id=identifier)


def days(bench: Bench, pattern: str) -> list[str]:
    """The tables there are of a name."""
    query = "SELECT table_name FROM information_schema.tables WHERE table_name LIKE ? ORDER BY 1"
    return [name for (name,) in bench.storage._cursor().execute(query, [pattern]).fetchall()]


def test_late_goes_to_its_bucket_expired_is_given_up_and_future_is_parked(bench: Bench) -> None:
    ahead = [at("ahead", NEWEST + 1), at("in a week", NOW + 7 * DAY_MS)]
    bench.append(at("now", NOON), ahead[0], at("expired", OLDEST - 1), at("epoch", 0))
    bench.append(at("oldest", OLDEST), at("newest", NEWEST), ahead[1], at("now too", NOON))
    bench.apply()
    assert bench.progress() == Applied(8, 4, {"future": 2, "expired": 2})
    assert bench.consumer.committed() == 8
    assert bench.parked() == [
        (1, "future", ahead[0].SerializeToString()),
        (6, "future", ahead[1].SerializeToString()),
    ]
    assert bench.calls() == {BUCKET: Calls(2, 0, 0)}
    assert [row[0] for row in bench.stored()] == ["newest", "now", "now too"]
    assert days(bench, "segment_2%") == ["segment_20261109", "segment_20261115"]
    assert days(bench, "metrics_service_2%") == [
        *("metrics_service_20261109", "metrics_service_20261115"),
    ]
    assert [one for one in bench.storage.services(None) if one.id == SHOP]
    counted = {
        outcome: bench.registry.value(table.PIPELINE_RECORDS, outcome=outcome)
        for outcome in ("stored", "parked", "expired", "duplicate")
    }
    assert counted == {"stored": 4, "parked": 2, "expired": 2, "duplicate": 0}


def test_one_span_out_of_its_time_decides_for_its_segment(bench: Bench) -> None:
    now = (NOON, NOON + 5)
    cases = {
        "a later span ends ahead": ([now, (NOON, NEWEST + 1)], "future"),
        "a later span begins ahead": ([now, (NEWEST + 1, NOON)], "future"),
        "a later span is too old": ([now, (OLDEST - 1, NOON)], "expired"),
        "one of each": ([(OLDEST - 1, NOON), (NEWEST + 1, NEWEST + 2)], "future"),
        "the end is no matter": ([(NOON, OLDEST - 1)], None),
    }
    for name, (times, _) in cases.items():
        made = SegmentObject(traceId=name, traceSegmentId=name, service="shop")
        made.serviceInstance = "shop-1"
        for number, (start_ms, end_ms) in enumerate(times):
            made.spans.add(spanId=number, startTime=start_ms, endTime=end_ms, operationName="/pay")
        bench.append(made)
    bench.apply()
    assert [row[0] for row in bench.stored()] == [n for n, (_, out) in cases.items() if not out]
    assert bench.progress().dropped == Counter(out for _, out in cases.values() if out)


def test_one_wrong_clock_moves_no_border_for_those_that_come_after_it(bench: Bench) -> None:
    bench.append(at("ahead", NOW + 7 * DAY_MS))
    bench.apply()
    bench.append(at("late", OLDEST), at("now", NOON))
    bench.apply()
    assert bench.progress() == Applied(3, 2, {"future": 1})
    assert bench.calls() == {BUCKET: Calls(1, 0, 0)}


def test_what_was_ahead_is_of_its_time_when_the_clock_has_come_there(bench: Bench) -> None:
    bench.append(at("ahead", NEWEST + 1), at("late", OLDEST))
    bench.apply()
    assert bench.progress() == Applied(2, 1, {"future": 1})
    bench.clock.seconds += DAY_MS / 1000
    bench.append(at("ahead", NEWEST + 1), at("late", OLDEST), at("late too", OLDEST))
    bench.apply()
    assert bench.progress() == Applied(5, 2, {"future": 1, "expired": 2})


def test_records_out_of_their_time_leave_the_tables_of_a_queue_without_them(
    spark: SparkSession, metrics: Metrics, tmp_path: Path
) -> None:
    """Before and between those of their time, late ones among them, in two batches. The border is
    at the same call: from there on addresses stand for those that the first batch tells of."""
    good = pairs(range(CALLS))
    times = (NEWEST + 1, OLDEST - 1, NOW + 7 * DAY_MS, 0, NEWEST - 30, OLDEST - 40 * DAY_MS)
    wrong = [pair(10_000 + n, start_ms)[0] for n, start_ms in enumerate(times)]
    fill(tmp_path / "clean", good)
    fill(tmp_path / "laced", laced(good, [told(Kind.SEGMENT, one) for one in wrong]))
    for name, border in (("clean", CALLS), ("laced", CALLS + 4)):
        with Line(tmp_path / name, spark, metrics) as line:
            line.run(batches=1, records=border)
            line.run(batches=1, records=len(good))
            progress = line.storage.progress(line.reader.queue_id)
            parked = line.storage.parked(line.reader.queue_id)
    assert progress == Applied(len(good) + 6, len(good), {"future": 3, "expired": 3})
    assert [one.payload for one in parked] == [wrong[n].SerializeToString() for n in (0, 2, 4)]
    assert contents(tmp_path / "laced", *OWN) == contents(tmp_path / "clean", *OWN)
