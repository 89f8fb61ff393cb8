"""What v2 sends in the form of v3's: ids that agents were given are exchanged for their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from skyfarer.oap.core.inventory import InventoryReader
from skyfarer.oap.pipeline.analysis.form import element_type, only, segment_type, struct_of
from skyfarer.oap.pipeline.analysis.names import COLUMNS, instance_id, looked_up, with_names
from skyfarer.oap.pipeline.sources.reports import INSTANCE_ID
from skyfarer.oap.pipeline.sources.rows import segment_schema
from skyfarer.oap.pipeline.sources.shapes import REPORTS
from skyfarer.wire.messages import SpanType

UNKNOWN_INSTANCE: Final = "unknown_instance: "
NO_NAME: Final = "{domain}"
"""How the protocol writes the operation of an entry span that has none."""
WHOLE: Final = "whole"
"""The column of translated segments with all that the driver is told of them."""


def translated(rows: DataFrame, inventories: InventoryReader) -> DataFrame:
    rows = rows.withColumn("v2", only("v2"))
    identifier = instance_id()
    told = identifier.isNotNull() & F.col("reason").isNull()
    unknown = told & looked_up("instances", identifier).isNull()
    reason = F.concat(F.lit(UNKNOWN_INSTANCE), identifier.cast("string"), F.lit(" has no name"))
    traced = told & F.col("v2").isNotNull()
    made = F.when(traced, segment_of(segment_type(rows)))
    named = F.when(told, F.transform(REPORTS, _report)).otherwise(F.col(REPORTS))
    return (
        with_names(rows, told, inventories)
        .withColumns(
            {
                "segment": F.coalesce("segment", made),
                WHOLE: F.when(traced, segment_of(from_arrow_schema(segment_schema()))),
                REPORTS: named,
                "reason": F.when(unknown, reason).otherwise(F.col("reason")),
            }
        )
        .drop(*COLUMNS)
    )


def segment_of(form: StructType) -> Column:
    """What the message in `v2` says, in that form; needs the columns of names."""
    trace_id = _joined(F.get(F.col("v2.globalTraceIds"), F.lit(0)))
    instance = looked_up("instances", F.col("v2.serviceInstanceId"))
    spans = element_type(form, "spans")
    fields = {
        "traceId": trace_id,
        "traceSegmentId": _joined(F.col("v2.traceSegmentId")),
        "spans": F.transform(
            "v2.spans", lambda span: struct_of(_span(span, spans, trace_id), spans)
        ),
        "service": instance["service"],
        "serviceInstance": instance["name"],
    }
    return struct_of(fields, form)


def _report(report: Column) -> Column:
    instance = looked_up("instances", report[INSTANCE_ID])
    return report.withField("service", instance["service"]).withField("instance", instance["name"])


def _span(span: Column, spans: StructType, trace_id: Column) -> Mapping[str, Column]:
    refs = element_type(spans, "refs")
    same = ("spanId", "parentSpanId", "startTime", "endTime", "spanType", "spanLayer")
    nameless = (span["spanType"] == SpanType.Entry) & (span["operationNameId"] == 0)
    operation = _named(span["operationName"], "endpoints", span["operationNameId"])
    return {
        **{name: span[name] for name in (*same, "componentId", "isError")},
        "refs": F.transform(span["refs"], lambda ref: struct_of(_ref(ref, trace_id), refs)),
        "operationName": F.when((operation == "") & nameless, NO_NAME).otherwise(operation),
        "peer": _named(span["peer"], "addresses", span["peerId"]),
        "tags": span["tags"],
        "skipAnalysis": F.lit(False),
    }


def _ref(ref: Column, trace_id: Column) -> Mapping[str, Column]:
    parent = looked_up("instances", ref["parentServiceInstanceId"])
    return {
        "refType": ref["refType"],
        "traceId": trace_id,
        "parentTraceSegmentId": _joined(ref["parentTraceSegmentId"]),
        "parentSpanId": ref["parentSpanId"],
        "parentService": F.coalesce(parent["service"], F.lit("")),
        "parentServiceInstance": F.coalesce(parent["name"], F.lit("")),
        "parentEndpoint": _named(ref["parentEndpoint"], "endpoints", ref["parentEndpointId"]),
        "networkAddressUsedAtPeer": _named(
            ref["networkAddress"], "addresses", ref["networkAddressId"]
        ),
    }


def _named(name: Column, names: str, key: Column) -> Column:
    """The name as it stands there, else that of the id; empty when neither is known."""
    return F.when(name != "", name).otherwise(F.coalesce(looked_up(names, key), F.lit("")))


def _joined(identifier: Column) -> Column:
    parts = F.transform(identifier["idParts"], lambda part: part.cast("string"))
    return F.array_join(parts, ".")
