"""What the shop's programs report beside their traces: lines of log, and how their runtimes do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import Random

from skyfarer.wire.messages import SegmentObject, SpanObject, SpanType, log, meter

SLOW_STATEMENT_MS = 300
GAUGES = {
    "total_cpu_utilization": (30, 60),
    "total_mem_utilization": (55, 65),
    "process_cpu_utilization": (5, 25),
    "process_mem_utilization": (8, 12),
    "thread_active_count": (12, 30),
    "gc_g0": (0, 40),
    "gc_g1": (0, 8),
    "gc_g2": (0, 2),
    "gc_time": (0, 30),
}
"""Of the meters that an agent for Python sends: from where to where they go in the shop."""


def logs(trace: Iterable[SegmentObject]) -> list[log.LogData]:
    """What the programs wrote while they worked on it: failures, slow statements, orders taken."""
    return [line for segment in trace for line in _written(segment)]


def runtime(
    random: Random, instances: Mapping[str, Sequence[str]], now_ms: int
) -> list[meter.MeterDataCollection]:
    """One of every instance."""
    return [
        meter.MeterDataCollection(meterData=_gauges(random, service, instance, now_ms))
        for service, some in instances.items()
        for instance in some
    ]


def _gauges(random: Random, service: str, instance: str, now_ms: int) -> Iterator[meter.MeterData]:
    for name, (low, high) in GAUGES.items():
        value = meter.MeterSingleValue(name=f"instance_pvm_{name}", value=random.uniform(low, high))
        yield meter.MeterData(
            service=service, serviceInstance=instance, timestamp=now_ms, singleValue=value
        )


def _written(segment: SegmentObject) -> Iterator[log.LogData]:
    entry = next(span for span in segment.spans if span.spanType == SpanType.Entry)
    took_ms = entry.endTime - entry.startTime
    for span in segment.spans:
        spent_ms = span.endTime - span.startTime
        statement = next((tag.value for tag in span.tags if tag.key == "db.statement"), "")
        if statement and spent_ms >= SLOW_STATEMENT_MS:
            yield _line(segment, span, "WARN", f"slow statement, {spent_ms} ms: {statement}")
    if entry.isError:
        yield _line(segment, entry, "ERROR", f"{entry.operationName} failed after {took_ms} ms")
    elif entry.operationName.endswith("/Consumer"):
        yield _line(segment, entry, "INFO", f"order taken from the queue in {took_ms} ms")


def _line(segment: SegmentObject, span: SpanObject, level: str, text: str) -> log.LogData:
    return log.LogData(
        timestamp=span.endTime,
        service=segment.service,
        serviceInstance=segment.serviceInstance,
        endpoint=segment.spans[-1].operationName,
        layer="GENERAL",
        body=log.LogDataBody(type="text", text=log.TextLog(text=text)),
        traceContext=log.TraceContext(
            traceId=segment.traceId, traceSegmentId=segment.traceSegmentId, spanId=span.spanId
        ),
        tags=log.LogTags(data=[{"key": "level", "value": level}]),
    )
