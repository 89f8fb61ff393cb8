"""What is stored of segments beside their bytes: as workers tell it, and on Spark."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from oap.pipeline.bench import BUCKET, NOON, PLAN, Bench, Calls
from skyfarer.oap.core import ids
from skyfarer.oap.core.sampling import Policy, Sampling
from skyfarer.oap.core.slow import Slow
from skyfarer.oap.core.storage import Applied
from skyfarer.oap.core.traces import TraceCondition, TraceOrder
from skyfarer.oap.oal.compiler import Text, plan_of
from skyfarer.oap.pipeline.analysis.settings import (
    AnalysisSettings,
    KeptSettings,
    SlowSettings,
    Strategy,
)
from skyfarer.oap.pipeline.sources.decode import PtarsDecoder
from skyfarer.oap.pipeline.sources.shapes import SEGMENT
from skyfarer.oap.pipeline.told import Telling
from skyfarer.oap.pipeline.told.segments import segments
from skyfarer.oap.pipeline.told.tags import TAGS_MAX
from skyfarer.telemetry import table
from skyfarer.testing.traces import segment
from skyfarer.wire.messages import KeyStringValuePair, SegmentObject, SpanObject, event, log
from skyfarer.wire.rpc import Kind

KEYS = ("http.method", "db.type", "mq.queue")
SETTINGS = AnalysisSettings(
    kept=KeptSettings("FROM_ENTRY_SPAN", KEYS), sampling=Sampling(Policy(98, 50))
)


@pytest.fixture
def sampling_bench(tmp_path: Path, spark: SparkSession) -> Iterator[Bench]:
    bench = Bench(tmp_path, spark, SETTINGS)
    bench.start(tmp_path / "skyfarer.duckdb")
    yield bench
    bench.stop()


def span(number: int, kind: str, error: bool = False, **tags: str | list[str]) -> SpanObject:
    made = SpanObject(spanId=number, spanType=kind, isError=error)
    made.startTime, made.endTime = NOON, NOON + 10
    for key, values in tags.items():
        for value in [values] if isinstance(values, str) else values:
            made.tags.append(KeyStringValuePair(key=key.replace("_", "."), value=value))
    return made


def segment_of(identifier: str, *spans: SpanObject) -> SegmentObject:
    return SegmentObject(traceSegmentId=identifier, traceId="t", service="s", spans=spans)


FIRST, ENTRY, LAST = span(0, "Local", True), span(0, "Entry", True), span(2, "Exit", True)
CALM = span(0, "Entry")
CASES: Mapping[str, tuple[SegmentObject, tuple[bool, bool, bool], list[str]]] = {
    "calm": (segment_of("calm", CALM), (False, False, False), []),
    "first": (segment_of("first", FIRST), (True, False, True), []),
    "entry": (segment_of("entry", span(1, "Entry", True)), (True, True, False), []),
    "both": (segment_of("both", ENTRY), (True, True, True), []),
    "last": (segment_of("last", CALM, LAST), (True, False, False), []),
    "tags": (
        segment_of(
            "tags",
            span(0, "Entry", http_method=["GET", "", "GET", "PUT"], url="/pay"),
            span(1, "Exit", db_type="a=b", http_method="GET"),
        ),
        (False, False, False),
        ["http.method=GET", "http.method=", "http.method=PUT", "db.type=a=b"],
    ),
    "long": (
        segment_of("long", span(0, "Entry", db_type=["é" * 248, "é" * 249, "x" * 300])),
        (False, False, False),
        ["db.type=" + "é" * 248],
    ),
    "many": (
        segment_of("many", span(0, "Entry", mq_queue=[str(n) for n in range(TAGS_MAX + 1)])),
        (False, False, False),
        [f"mq.queue={n}" for n in range(TAGS_MAX)],
    ),
}


def decoded(*sent: SegmentObject) -> pa.RecordBatch:
    payloads = pa.array([bytes(one.SerializeToString()) for one in sent], pa.binary())
    return PtarsDecoder(SEGMENT).decode_all(payloads)


def told_of(sent: pa.RecordBatch, kept: KeptSettings) -> list[dict[str, Any]]:
    return pa.table(segments(sent, Telling(kept=kept))).to_pylist()


STRATEGIES: tuple[Strategy, ...] = ("FROM_SPAN_STATUS", "FROM_ENTRY_SPAN", "FROM_FIRST_SPAN")


def test_a_segment_fails_by_the_strategy_and_is_found_by_searchable_tags() -> None:
    sent = decoded(*(one for one, _, _ in CASES.values()))
    by_strategy = [told_of(sent, KeptSettings(strategy, KEYS)) for strategy in STRATEGIES]
    found = {
        rows[0]["segment_id"]: (tuple(row["is_error"] for row in rows), rows[0]["tags"])
        for rows in zip(*by_strategy, strict=True)
    }
    assert found == {name: (errors, tags) for name, (_, errors, tags) in CASES.items()}
    assert [row["tags"] for row in told_of(sent, KeptSettings())] == [[]] * len(CASES)


def test_a_segment_without_spans_has_no_times_and_stops_nothing() -> None:
    """Such a record is parked, and told all the same; the ones around it are whole."""
    sent = decoded(segment_of("a", CALM), segment_of("b"), segment_of("c", CALM), segment_of("d"))
    rows = told_of(sent, KeptSettings(searchable_tags=KEYS, slow=THRESHOLDS))
    times = [(row["start_time"], row["last_time"], row["latency"]) for row in rows]
    assert times == [(NOON, NOON + 10, 10), (None, None, None)] * 2
    assert [(row["is_error"], row["endpoint"]) for row in rows] == [(False, ""), (None, "")] * 2


def test_a_segment_that_is_not_sampled_is_measured_and_never_stored(
    sampling_bench: Bench,
) -> None:
    bench = sampling_bench

    def shop(name: str, trace: str, latency_ms: int = 10, error: bool = False) -> SegmentObject:
        made = segment(
            "shop", "i", "/pay", NOON, latency_ms, error, trace_id=trace, segment_id=name
        )
        made.spans[0].tags.append(KeyStringValuePair(key="db.type", value=name))
        return made

    seldom, always = "hello", "a"  # numbers 2,322 and 97 of 10,000
    out = shop("out", seldom)
    bench.append(out, shop("in", always), shop("slow", seldom, 50), shop("bad", seldom, 10, True))
    bench.append(out)
    bench.apply()
    bench.append(out)
    bench.apply()
    assert [row[0] for row in bench.stored()] == ["bad", "in", "slow"]
    assert bench.calls() == {BUCKET: Calls(4, 80, 1)}
    assert bench.progress() == Applied(6, 4, {"duplicate": 2})
    assert bench.registry.value(table.PIPELINE_UNSAMPLED) == 1
    between = (20261115120000, 20261115120000)
    assert bench.storage.tag_values("db.type", between, 9) == ["bad", "in", "slow"]
    page = bench.storage.traces(TraceCondition(tags=("db.type=in",)), TraceOrder.DURATION, 0, 9)
    assert [one.segment_id for one in page] == ["in"]


def slow_span(number: int, latency_ms: int, layer: str, peer: str, **tags: str) -> SpanObject:
    made = span(number, "Exit", **tags)
    made.endTime, made.spanLayer, made.peer = NOON + latency_ms, layer, peer
    return made


def query(number: int, latency_ms: int, **tags: str) -> SpanObject:
    return slow_span(number, latency_ms, "Database", "db", **tags)


def command(number: int, latency_ms: int, peer: str, **tags: str) -> SpanObject:
    told = {"cache_type": "redis", "cache_cmd": "get", "cache_key": "k", "cache_op": "read"}
    return slow_span(number, latency_ms, "Cache", peer, **(told | tags))


SLOW = [
    query(1, 101, db_type="SQL", db_statement="SELECT 1"),
    query(2, 100, db_type="sql", db_statement="just not slow"),
    query(3, 11, db_type="mongodb", db_statement="x" * 2_001),
    query(4, 999, db_type="sql", db_statement=" "),
    query(5, 999, db_statement="no type"),
    slow_span(6, 999, "Http", "db", db_type="sql", db_statement="no database"),
    command(7, 6, "r:1"),
    command(8, 5, "r:1"),
    command(9, 8, " ", cache_op="write", cache_type="Redis"),
    command(10, 999, "r:1", cache_op="other"),
    command(11, 999, "r:1", cache_type="lru"),
    command(12, 999, "r:1", cache_type=""),
]
THRESHOLDS = SlowSettings({"default": 100, "mongodb": 10}, {"redis": 5}, {"default": 7})
FOUND = {
    Slow.DATABASE: [("s-1", "db.0", "SELECT 1", 101), ("s-3", "db.0", "x" * 2_000, 11)],
    Slow.SERVICE_DATABASE: [("s-1", "s.1", "SELECT 1", 101), ("s-3", "s.1", "x" * 2_000, 11)],
    Slow.CACHE_READ: [("s-7", "r:1.0", "get k", 6)],
    Slow.CACHE_WRITE: [("s-9", "Redis-local.0", "get k", 8)],
}


def test_slow_statements_and_commands_are_kept_of_whom_they_asked(
    tmp_path: Path, spark: SparkSession
) -> None:
    kept, nothing = KeptSettings(slow=THRESHOLDS), Sampling(Policy(0))
    bench = Bench(tmp_path, spark, AnalysisSettings(kept=kept, sampling=nothing))
    bench.start(tmp_path / "skyfarer.duckdb")
    bench.append(segment_of("s", *SLOW), segment_of("s", *SLOW), segment_of("calm", CALM))
    bench.apply()
    between = (20261115120000, 20261115120000)
    found = {one: bench.storage.slowest(one, None, between, 99) for one in Slow}
    bench.stop()
    assert {
        what: [(one.id, _readable(one.entity_id), one.statement, one.latency) for one in some]
        for what, some in found.items()
    } == FOUND
    assert {(one.trace_id, one.timestamp) for some in found.values() for one in some} == {
        ("t", NOON)
    }


def _readable(entity_id: str) -> str:
    name, _, flag = entity_id.partition(".")
    return f"{b64decode(name).decode()}.{flag}"


def test_only_what_is_slow_for_its_own_type_is_told_to_the_driver() -> None:
    """Nearly all of these took longer than the lowest threshold, that of a cache."""
    sent = decoded(segment_of("calm", CALM), segment_of("s", *SLOW), segment_of("none"))
    calm, slow, none = (row["slow"] for row in told_of(sent, KeptSettings(slow=THRESHOLDS)))
    assert (calm, none) == ([], [])
    assert [(one["span_id"], one["what"]) for one in slow] == [
        *((1, "DATABASE"), (3, "DATABASE"), (7, "CACHE_READ"), (9, "CACHE_WRITE")),
    ]


def test_of_a_disabled_stream_nothing_is_stored_and_all_else_is(
    tmp_path: Path, spark: SparkSession
) -> None:
    off = "disable(top_n_database_statement); disable(segment); disable(log); disable(event);"
    plan = replace(PLAN, disabled=plan_of([Text("off.oal", off)]).disabled)
    settings = AnalysisSettings(kept=KeptSettings(slow=THRESHOLDS))
    bench = Bench(tmp_path, spark, settings, plan)
    bench.start(tmp_path / "skyfarer.duckdb")
    bench.append(segment_of("s", CALM, *SLOW))
    bench.keep(Kind.LOG, log.LogData(timestamp=NOON, service="writer"))
    bench.keep(Kind.EVENT, event.Event(uuid="u", name="Start", layer="GENERAL", startTime=NOON))
    bench.apply()
    bench.append(segment_of("s", CALM))
    bench.apply()
    between = (20261115120000, 20261115120000)
    found = {one: len(bench.storage.slowest(one, None, between, 99)) for one in Slow}
    there = bench.storage._cursor().execute("SHOW TABLES").fetchall()
    progress, calls = bench.progress(), bench.calls(entity=ids.service_id("s"))
    heard = [one.name for one in bench.storage.services(None)]
    bench.stop()
    assert found == {one: len(some) for one, some in FOUND.items()} | {Slow.DATABASE: 0}
    assert not [name for (name,) in there if name.startswith(("segment_2", "log_2", "event_2"))]
    assert calls == {BUCKET: Calls(1, 10, 0)}
    assert "writer" in heard
    assert progress == Applied(4, 3, {"duplicate": 1})
