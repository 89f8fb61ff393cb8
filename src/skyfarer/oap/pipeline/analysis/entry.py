"""What the driver is told of each record: what it is, and what of it is stored as it came."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from skyfarer.oap.core.entities import INSTANCE_META
from skyfarer.oap.pipeline.analysis.form import only
from skyfarer.oap.pipeline.analysis.kept import ENTRY, KeptSettings, failed, found_by
from skyfarer.oap.pipeline.analysis.latency import latency_ms
from skyfarer.oap.pipeline.analysis.slow import slow_spans
from skyfarer.oap.pipeline.sources.shapes import REPORTS

MINUTE_MS = 60_000


@dataclass(frozen=True)
class NamingSettings:
    service_chars_max: int = 70
    instance_chars_max: int = 70
    endpoint_chars_max: int = 150


def records(rows: DataFrame, naming: NamingSettings, kept: KeptSettings) -> DataFrame:
    """One small row a record of the queue (of an OTLP export: a span, with its bytes), all but the
    payload, which never passes through Spark."""
    return rows.select(*told(naming, kept))


def told(naming: NamingSettings, kept: KeptSettings) -> tuple[Column, ...]:
    """The columns of `records`: to be made once a session, for each costs calls of the JVM.

    A stored segment's endpoint is the operation of span 0 or of an entry span, whichever comes
    last in the list. Rows with a `reason` are told too, so no number in them may stop the batch: a
    latency beyond 64 bits is null. A log without a time has none here. An event, which is rare, is
    told whole.
    """
    spans, log, event = F.col("segment.spans"), only("log"), only("event")
    named = F.filter(spans, lambda s: (s["spanType"] == ENTRY) | (s["spanId"] == 0))
    reported = F.col(f"{REPORTS}.time")
    times = log["timestamp"], event["startTime"], event["endTime"]
    told_at, context = F.coalesce(*(F.nullif(one, F.lit(0)) for one in times)), log["traceContext"]
    operation = F.try_element_at(named, F.lit(-1))["operationName"]
    start, end = F.array_min(spans["startTime"]), F.array_max(spans["endTime"])
    return (
        *map(F.col, ("sequence", "part", "kind", "reason", "data")),
        F.col("segment.traceSegmentId").alias("segment_id"),
        F.coalesce("segment.traceId", context["traceId"]).alias("trace_id"),
        _cut(naming.service_chars_max, "segment.service", log["service"]).alias("service"),
        _cut(naming.instance_chars_max, "segment.serviceInstance", log["serviceInstance"]).alias(
            "instance"
        ),
        _cut(naming.endpoint_chars_max, operation, log["endpoint"], F.lit("")).alias("endpoint"),
        F.coalesce(start, F.array_min(reported), told_at).alias("start_time"),
        F.greatest(end, F.array_max(spans["startTime"]), F.array_max(reported), told_at).alias(
            "last_time"
        ),
        latency_ms(start, end).alias("latency"),
        failed(spans, kept.failed_by).alias("is_error"),
        F.coalesce(
            found_by(F.flatten(spans["tags"]), kept.searchable_tags),
            found_by(log["tags"]["data"], kept.searchable_log_tags),
        ).alias("tags"),
        slow_spans(spans, kept.slow).alias("slow"),
        F.coalesce("properties.service", "ping.service").alias("beat_service"),
        F.coalesce("properties.serviceInstance", "ping.serviceInstance").alias("beat_instance"),
        F.coalesce("properties.layer", "ping.layer").alias("beat_layer"),
        F.col("properties.properties").alias("beat_properties"),
        _updates(naming).alias("updates"),
        log["layer"].alias("log_layer"),
        context["traceSegmentId"].alias("log_segment_id"),
        context["spanId"].alias("log_span_id"),
        F.to_json(event).alias("event"),
    )


def _updates(naming: NamingSettings) -> Column:
    """What a mesh says of instances, each once a minute."""
    told = F.filter(F.col(REPORTS), lambda report: report["source"] == INSTANCE_META)
    rows = F.transform(
        told,
        lambda report: F.struct(
            _cut(naming.service_chars_max, report["service"]).alias("service"),
            _cut(naming.instance_chars_max, report["instance"]).alias("instance"),
            report["layer"].alias("layer"),
            F.floor(report["time"] / MINUTE_MS).alias("minute"),
            report["properties"].alias("properties"),
        ),
    )
    return F.array_distinct(rows)


def _cut(chars_max: int, *names: Column | str) -> Column:
    """The first of the names that is there."""
    return F.substring(F.coalesce(*names), 1, chars_max)
