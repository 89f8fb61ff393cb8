"""An OTLP span as a segment of its own (docs/adr/007-one-span-one-segment.md).

Its ids are made of the span alone, since its parent and its children come in other exports:
segment id = trace id . span id, both in hex, and a child refers to its parent by the same rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from skyfarer.oap.pipeline.analysis.form import element_type, only, segment_type, struct_of
from skyfarer.oap.pipeline.sources.shapes import NANOS_OF_MS
from skyfarer.wire.messages import RefType, SpanLayer, SpanType
from skyfarer.wire.messages import otlp_trace as otlp

UNKNOWN_SERVICE: Final = "unknown_service"
_NO_ID: Final = ("", "0" * 16)
_LAYERS: Final = {
    "db.system": SpanLayer.Database,
    "messaging.system": SpanLayer.MQ,
    "rpc.system": SpanLayer.RPCFramework,
}


def translated(rows: DataFrame) -> DataFrame:
    made = F.when(F.col("otlp").isNotNull(), segment_of(segment_type(rows)))
    return rows.withColumn("segment", F.coalesce("segment", made))


def segment_of(form: StructType) -> Column:
    """What the column `otlp` says, in that form."""
    whole = only("otlp")
    resource = whole["resource"]["attributes"]
    span = _first(_first(whole["scope_spans"])["spans"])
    service = F.coalesce(_text(resource, "service.name"), F.lit(UNKNOWN_SERVICE))
    instance = F.coalesce(
        _text(resource, "service.instance.id"), _text(resource, "host.name"), service
    )
    fields = {
        "traceId": _hex(span["trace_id"]),
        "traceSegmentId": _segment_id(span["trace_id"], span["span_id"]),
        "spans": F.array(struct_of(_span(span, form), element_type(form, "spans"))),
        "service": service,
        "serviceInstance": instance,
    }
    return struct_of(fields, form)


def _span(span: Column, form: StructType) -> Mapping[str, Column]:
    spans = element_type(form, "spans")
    code = F.coalesce(span["status"]["code"], F.lit(0))
    return {
        "spanId": F.lit(0),
        "parentSpanId": F.lit(-1),
        "startTime": _ms(span["start_time_unix_nano"]),
        "endTime": _ms(span["end_time_unix_nano"]),
        "refs": _refs(span, spans),
        "operationName": span["name"],
        "peer": _peer(span["attributes"]),
        "spanType": _span_type(span["kind"]),
        "spanLayer": _layer(span["attributes"]),
        "componentId": F.lit(0),
        "isError": code == otlp.Status.STATUS_CODE_ERROR,
        "skipAnalysis": F.lit(False),
    }


def _refs(span: Column, spans: StructType) -> Column:
    """One, to the segment of the parent span; of its service nothing is known here."""
    called = _span_type(span["kind"]) == SpanType.Entry
    fields = {
        "refType": F.when(called, RefType.CrossProcess).otherwise(RefType.CrossThread),
        "traceId": _hex(span["trace_id"]),
        "parentTraceSegmentId": _segment_id(span["trace_id"], span["parent_span_id"]),
        "parentSpanId": F.lit(0),
        **dict.fromkeys(("parentService", "parentServiceInstance", "parentEndpoint"), F.lit("")),
        "networkAddressUsedAtPeer": F.lit(""),
    }
    child = ~F.hex(span["parent_span_id"]).isin(*_NO_ID)
    one = struct_of(fields, element_type(spans, "refs"))
    return F.filter(F.array(one), lambda _ref: child)


def _span_type(kind: Column) -> Column:
    span = otlp.Span
    return (
        F.when(kind.isin(span.SPAN_KIND_SERVER, span.SPAN_KIND_CONSUMER), SpanType.Entry)
        .when(kind.isin(span.SPAN_KIND_CLIENT, span.SPAN_KIND_PRODUCER), SpanType.Exit)
        .otherwise(SpanType.Local)
    )


def _layer(attributes: Column) -> Column:
    """By what the span says of itself; a database or a queue may be spoken to by HTTP."""
    http = F.exists(attributes, lambda one: one["key"].startswith("http."))
    layer = F.when(http, SpanLayer.Http).otherwise(SpanLayer.Unknown)
    for key, number in reversed(_LAYERS.items()):
        layer = F.when(_text(attributes, key).isNotNull(), number).otherwise(layer)
    return layer


def _peer(attributes: Column) -> Column:
    host = F.coalesce(_text(attributes, "server.address"), _text(attributes, "net.peer.name"))
    port = F.coalesce(_text(attributes, "server.port"), _text(attributes, "net.peer.port"))
    whole = F.concat_ws(":", host, port)  # leaves out what is null
    return F.when(host.isNotNull(), whole).otherwise(
        F.coalesce(_text(attributes, "peer.service"), F.lit(""))
    )


def _text(attributes: Column, key: str) -> Column:
    """The attribute as text, the first of that name; null when there is none, or it is empty."""
    value = _first(F.filter(attributes, lambda one: one["key"] == key))["value"]
    return F.when(value["string_value"] != "", value["string_value"]).when(
        value["int_value"] != 0, value["int_value"].cast("string")
    )


def _first(elements: Column) -> Column:
    return F.get(elements, F.lit(0))


def _segment_id(trace: Column, span: Column) -> Column:
    return F.concat(_hex(trace), F.lit("."), _hex(span))


def _hex(value: Column) -> Column:
    return F.lower(F.hex(value))


def _ms(nanos: Column) -> Column:
    return F.call_function("div", nanos, F.lit(NANOS_OF_MS))
