"""An OTLP span as a segment of its own (docs/adr/007-one-span-one-segment.md).

Its ids are made of the span alone, since its parent and its children come in other exports. All of
it is done on whole columns, in the worker: a segment leaves it in the form of v3's, and nothing
after this knows that there was another protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.pipeline.sources.columns import (
    hex_texts,
    is_id,
    list_of,
    pairs_of,
    struct_of,
    text_of,
)
from skyfarer.oap.pipeline.sources.shapes import NANOS_OF_MS, UNTOLD
from skyfarer.wire.messages import SpanLayer, SpanType
from skyfarer.wire.messages import otlp_trace as otlp

UNKNOWN_SERVICE: Final = "unknown_service"
TRACE_ID_BYTES: Final = 16
SPAN_ID_BYTES: Final = 8
_LAYERS: Final = {
    "db.system": SpanLayer.Database,
    "messaging.system": SpanLayer.MQ,
    "rpc.system": SpanLayer.RPCFramework,
}
_TAGS: Final = {
    "http.response.status_code": "http.status_code",
    "http.status_code": "http.status_code",
    "rpc.grpc.status_code": "rpc.status_code",
    "messaging.destination.name": "mq.topic",
    "messaging.destination": "mq.topic",
    "db.system": "db.type",
    "db.query.text": "db.statement",
    "db.statement": "db.statement",
    "gen_ai.provider.name": "gen_ai.provider.name",
    "gen_ai.response.model": "gen_ai.response.model",
    "gen_ai.usage.input_tokens": "gen_ai.usage.input_tokens",
    "gen_ai.usage.output_tokens": "gen_ai.usage.output_tokens",
    "gen_ai.server.time_to_first_token": "gen_ai.server.time_to_first_token",
}
"""Attribute → the tag of agents that says the same; others are not carried along."""
_ENTRY: Final = (otlp.Span.SPAN_KIND_SERVER, otlp.Span.SPAN_KIND_CONSUMER)
_EXIT: Final = (otlp.Span.SPAN_KIND_CLIENT, otlp.Span.SPAN_KIND_PRODUCER)


def named(resource: pa.ListArray) -> tuple[pa.Array, pa.Array]:
    """Service and instance, by the attributes of a resource."""
    service = pc.fill_null(text_of(resource, "service.name"), UNKNOWN_SERVICE)
    instance = pc.coalesce(
        text_of(resource, "service.instance.id"), text_of(resource, "host.name"), service
    )
    return service, instance


def segments_of(resource: pa.ListArray, span: pa.StructArray, form: pa.Schema) -> pa.RecordBatch:
    """Each span as a segment with the fields of that form; `resource` are the attributes of each.

    A span without sound ids gets a segment without an id. KeyError for a field of the form that
    is not made here.
    """
    service, instance = named(resource)
    trace_id, span_id = pc.struct_field(span, "trace_id"), pc.struct_field(span, "span_id")
    within = form.field("spans").type
    fields = {
        "traceId": hex_texts([trace_id], [TRACE_ID_BYTES]),
        "traceSegmentId": segment_ids(trace_id, span_id),
        "spans": list_of(
            struct_of(_span(span, within.value_type), within.value_type),
            np.ones(len(span), dtype=bool),
            within,
        ),
        "service": service,
        "serviceInstance": instance,
    }
    return pa.RecordBatch.from_arrays([fields[name] for name in form.names], schema=form)


def _span(span: pa.StructArray, form: pa.StructType) -> Mapping[str, pa.Array]:
    count, kinds = len(span), pc.struct_field(span, "kind").to_numpy()
    types = np.select(
        [np.isin(kinds, _ENTRY), np.isin(kinds, _EXIT)],
        [int(SpanType.Entry), int(SpanType.Exit)],
        int(SpanType.Local),
    )
    attributes = pc.struct_field(span, "attributes")
    status = pc.struct_field(pc.struct_field(span, "status"), "code")
    return {
        "spanId": pa.array(np.zeros(count, dtype=np.int32)),
        "parentSpanId": pa.array(np.full(count, -1, dtype=np.int32)),
        "startTime": pc.divide(pc.struct_field(span, "start_time_unix_nano"), NANOS_OF_MS),
        "endTime": pc.divide(pc.struct_field(span, "end_time_unix_nano"), NANOS_OF_MS),
        "refs": _refs(span, form.field("refs").type),
        "operationName": pc.struct_field(span, "name"),
        "peer": _peers(attributes),
        "spanType": pa.array(types.astype(np.int32)),
        "spanLayer": _layers(attributes),
        "componentId": pa.array(np.zeros(count, dtype=np.int32)),
        "isError": pc.fill_null(pc.equal(status, otlp.Status.STATUS_CODE_ERROR), False),
        "tags": pairs_of(attributes, _TAGS, form.field("tags").type),
        "skipAnalysis": pa.array(np.zeros(count, dtype=bool)),
    }


def _refs(span: pa.StructArray, form: pa.ListType) -> pa.ListArray:
    """One, to the segment of the parent span; of its service nothing is known here."""
    parent = pc.struct_field(span, "parent_span_id")
    child = is_id(parent, SPAN_ID_BYTES)
    here = pa.array(child)
    trace_id, parent = pc.struct_field(span, "trace_id").filter(here), parent.filter(here)
    count = len(parent)
    unknown = pa.array([""] * count, pa.string())
    fields = {
        "refType": pa.array(np.full(count, UNTOLD, dtype=np.int32)),
        "traceId": hex_texts([trace_id], [TRACE_ID_BYTES]),
        "parentTraceSegmentId": segment_ids(trace_id, parent),
        "parentSpanId": pa.array(np.zeros(count, dtype=np.int32)),
        **dict.fromkeys(("parentService", "parentServiceInstance", "parentEndpoint"), unknown),
        "networkAddressUsedAtPeer": unknown,
    }
    return list_of(struct_of(fields, form.value_type), child, form)


def _layers(attributes: pa.ListArray) -> pa.Int32Array:
    """By what the span says of itself; whatever it speaks to, it may do so by HTTP."""
    keys = pc.struct_field(pc.list_flatten(attributes), "key")
    http, gen_ai = (
        pc.list_parent_indices(attributes).filter(pc.starts_with(keys, family)).to_numpy()
        for family in ("http.", "gen_ai.")
    )
    layers = np.full(len(attributes), int(SpanLayer.Unknown), dtype=np.int32)
    layers[http] = SpanLayer.Http
    for key, layer in reversed(_LAYERS.items()):
        told = pc.is_valid(text_of(attributes, key)).to_numpy(zero_copy_only=False)
        layers[told] = layer
    layers[gen_ai] = SpanLayer.GenAI
    return pa.array(layers)


def _peers(attributes: pa.ListArray) -> pa.StringArray:
    host = pc.coalesce(text_of(attributes, "server.address"), text_of(attributes, "net.peer.name"))
    port = pc.coalesce(text_of(attributes, "server.port"), text_of(attributes, "net.peer.port"))
    whole = pc.binary_join_element_wise(host, port, ":")
    return pc.coalesce(whole, host, text_of(attributes, "peer.service"), pa.scalar(""))


def segment_ids(trace_id: pa.BinaryArray, span_id: pa.BinaryArray) -> pa.StringArray:
    return hex_texts([trace_id, span_id], [TRACE_ID_BYTES, SPAN_ID_BYTES])
