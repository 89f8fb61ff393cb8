"""One record among many that nothing was made for, of whatever kind: it is parked, and that is
all."""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import SparkSession

from oap.pipeline.bench import NOON
from oap.pipeline.faults.line import Line, contents
from oap.pipeline.faults.work import fill, laced, pair, pairs, told
from skyfarer.oap.core.storage import Applied, Parked
from skyfarer.oap.pipeline.metrics import Metrics
from skyfarer.wire.messages import log, meter, otlp_logs, otlp_trace
from skyfarer.wire.rpc import Kind

CALLS = 500
OWN = ("source_offset", "source_dropped", "parked_record")
"""Where a parked record may show; nothing else knows of it."""
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
BROKEN = b"\xff\xff\xff\xff"
PANIC = b"\x0a" + b"\xff" * 9 + b"\x01"
"""A field as long as can be said: native code panics where it adds that length to its place."""


def timed(start_ms: int, end_ms: int) -> tuple[int, bytes]:
    one, _ = pair(10_000, NOON)
    one.spans[-1].startTime, one.spans[-1].endTime = start_ms, end_ms
    return told(Kind.SEGMENT, one)


def logged(time_ms: int) -> log.LogData:
    return log.LogData(timestamp=time_ms, service="web", serviceInstance="web-0")


def gauge(time_ms: int) -> meter.MeterData:
    value = meter.MeterSingleValue(name="instance_pvm_gc_g0", value=3)
    whose = {"service": "web", "serviceInstance": "web-0"}
    return meter.MeterData(singleValue=value, timestamp=time_ms, **whose)


def gauges(time_ms: int) -> meter.MeterDataCollection:
    return meter.MeterDataCollection(meterData=[gauge(NOON), gauge(time_ms)])


def spans() -> otlp_trace.ExportTraceServiceRequest:
    nanos = NOON * 1_000_000
    span = otlp_trace.Span(trace_id=b"t" * 16, span_id=b"s" * 8, start_time_unix_nano=nanos)
    scope = otlp_trace.ScopeSpans(spans=[span])
    of = otlp_trace.ResourceSpans(resource=web(), scope_spans=[scope])
    return otlp_trace.ExportTraceServiceRequest(resource_spans=[of])


def logs() -> otlp_logs.ExportLogsServiceRequest:
    scope = otlp_logs.ScopeLogs(log_records=[otlp_logs.LogRecord(time_unix_nano=NOON * 1_000_000)])
    of = otlp_logs.ResourceLogs(resource=web(), scope_logs=[scope])
    return otlp_logs.ExportLogsServiceRequest(resource_logs=[of])


def web() -> otlp_trace.Resource:
    name = otlp_trace.KeyValue(key="service.name", value=otlp_trace.AnyValue(string_value="web"))
    return otlp_trace.Resource(attributes=[name])


OTHERS = [
    told(Kind.LOG, logged(NOON)),
    told(Kind.METER, gauge(NOON)),
    told(Kind.METER_COLLECTION, gauges(NOON)),
    told(Kind.OTLP_TRACES, spans()),
    told(Kind.OTLP_LOGS, logs()),
]
"""Good ones of each kind that is poisoned. Some are stored under their numbers and the name of
their queue, so they come before any poison, in the same queue."""
POISON = {
    "undecodable": [
        (Kind.SEGMENT, BROKEN),
        (Kind.SEGMENT, pairs([10_000])[0][1][:-3]),
        (Kind.SEGMENT, PANIC),
        (Kind.SEGMENT, b"\x1a\x0b\x32" + PANIC[1:]),
        *((kind, bad) for bad in (BROKEN, PANIC) for kind, _ in OTHERS),
        *((kind, payload[:-3]) for kind, payload in OTHERS),
    ],
    "incomplete": [(Kind.SEGMENT, b""), (Kind.LOG, b"")],
    "implausible": [
        timed(LONG_MIN, 1),
        timed(NOON, LONG_MIN),
        timed(LONG_MAX, LONG_MIN),
        timed(-1, LONG_MAX),
        timed(NOON * 1_000_000, NOON * 1_000_000 + 5),
        told(Kind.LOG, logged(-1)),
        told(Kind.METER, gauge(LONG_MAX)),
        told(Kind.METER_COLLECTION, gauges(LONG_MIN)),
    ],
}


def test_poison_of_any_kind_is_parked_with_its_reason_bytes_and_place_and_spoils_nothing_else(
    spark: SparkSession, metrics: Metrics, tmp_path: Path
) -> None:
    calls = pairs(range(CALLS))
    bad = [one for those in POISON.values() for one in those]
    good = len(OTHERS) + len(calls)
    fill(tmp_path / "clean", OTHERS)
    shutil.copytree(tmp_path / "clean", tmp_path / "laced")
    fill(tmp_path / "clean", calls)
    fill(tmp_path / "laced", laced(calls, bad))
    for name in ("clean", "laced"):
        with Line(tmp_path / name, spark, metrics) as line:
            line.run(records=good + len(bad))
            progress = line.storage.progress(line.reader.queue_id)
            parked = line.storage.parked(line.reader.queue_id)
    dropped = {code: len(those) for code, those in POISON.items()}
    assert progress == Applied(good + len(bad), good, dropped)
    assert [(one.kind, one.payload) for one in parked] == bad
    assert [code(one) for one in parked] == [code for code in POISON for _ in POISON[code]]
    distance = len(calls) // len(bad) + 1
    places = [len(OTHERS) + n * distance for n in range(len(bad))]
    assert [one.sequence for one in parked] == places
    assert contents(tmp_path / "laced", *OWN) == contents(tmp_path / "clean", *OWN)


def code(one: Parked) -> str:
    return one.reason.partition(":")[0]
