"""What the driver is told of each record: what it is, and what of it is stored as it came."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
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


def told(naming: NamingSettings, kept: KeptSettings) -> tuple[Column, ...]:
    """One small row a record of the queue (of an OTLP export: a span, with its bytes), all but the
    payload, which never passes through Spark. The columns are to be made once a session, for each
    costs calls of the JVM.

    A stored segment's endpoint is the operation of span 0 or of an entry span, whichever comes
    last in the list. Rows with a `reason` are told too, so no number in them may stop the batch: a
    latency beyond 64 bits is null. A log without a time has none here. An event, which is rare, is
    told whole.
    """
    spans = F.col("segment.spans")
    log, event, properties, ping = map(only, ("log", "event", "properties", "ping"))
    reported = F.col(f"{REPORTS}.time")
    times = log["timestamp"], event["startTime"], event["endTime"]
    told_at, context = F.coalesce(*(F.nullif(one, F.lit(0)) for one in times)), log["traceContext"]
    start, end = F.array_min(spans["startTime"]), F.array_max(spans["endTime"])
    return (
        *map(F.col, ("sequence", "part", "kind", "reason", "data")),
        F.col("segment.traceSegmentId").alias("segment_id"),
        F.coalesce("segment.traceId", context["traceId"]).alias("trace_id"),
        _first(naming.service_chars_max, "segment.service", log["service"]).alias("service"),
        _first(naming.instance_chars_max, "segment.serviceInstance", log["serviceInstance"]).alias(
            "instance"
        ),
        _first(naming.endpoint_chars_max, _operation(spans), log["endpoint"], F.lit("")).alias(
            "endpoint"
        ),
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
        F.coalesce(properties["service"], ping["service"]).alias("beat_service"),
        F.coalesce(properties["serviceInstance"], ping["serviceInstance"]).alias("beat_instance"),
        F.coalesce(properties["layer"], ping["layer"]).alias("beat_layer"),
        properties["properties"].alias("beat_properties"),
        _updates(naming).alias("updates"),
        log["layer"].alias("log_layer"),
        context["traceSegmentId"].alias("log_segment_id"),
        context["spanId"].alias("log_span_id"),
        F.to_json(event).alias("event"),
    )


def _operation(spans: Column) -> Column:
    """Of the last span that is an entry or numbered 0; null when there is none. Without a lambda,
    which Spark would interpret: by its place, counted from the end."""
    places = (
        F.array_position(F.reverse(spans[name]), value)
        for name, value in (("spanType", ENTRY), ("spanId", 0))
    )
    last = F.least(*(F.nullif(place, F.lit(0)) for place in places))
    return F.get(spans["operationName"], (F.size(spans) - last).cast("int"))


def _updates(naming: NamingSettings) -> Column:
    """What a mesh says of instances, each once a minute."""
    told = F.filter(F.col(REPORTS), lambda report: report["source"] == INSTANCE_META)
    rows = F.transform(
        told,
        lambda report: F.struct(
            _first(naming.service_chars_max, report["service"]).alias("service"),
            _first(naming.instance_chars_max, report["instance"]).alias("instance"),
            report["layer"].alias("layer"),
            F.floor(report["time"] / MINUTE_MS).alias("minute"),
            report["properties"].alias("properties"),
        ),
    )
    return F.array_distinct(rows)


def cut(text: Column, chars_max: int) -> Column:
    """By characters. To count them takes time, so a text of as few bytes is left as it is."""
    short = F.octet_length(text) <= chars_max
    return F.when(short, text).otherwise(F.substring(text, 1, chars_max))


def _first(chars_max: int, *names: Column | str) -> Column:
    """Of the names that are there, cut."""
    return cut(F.coalesce(*names), chars_max)
