"""An OTLP log in the form of an agent's, on whole columns, in the worker.

Its trace and segment are those that its span has here (docs/adr/007-one-span-one-segment.md), so
that logs are found by them. Attributes are its tags, and so is its severity, as `level`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.logs import LEVEL, LEVELS, NUMBERS_A_LEVEL
from skyfarer.oap.pipeline.sources.columns import hex_texts, struct_of, text_of, texts_of
from skyfarer.oap.pipeline.sources.otlp import TRACE_ID_BYTES, named, segment_ids
from skyfarer.oap.pipeline.sources.shapes import NANOS_OF_MS


def logs_of(resource: pa.ListArray, record: pa.StructArray, form: pa.Schema) -> pa.RecordBatch:
    """`resource` are the attributes of each. KeyError for a field of the form not made here."""
    service, instance = named(resource)
    count = len(record)
    nothing = pa.repeat(pa.scalar(""), count)
    trace_id, span_id = (pc.struct_field(record, name) for name in ("trace_id", "span_id"))
    context = {
        "traceId": hex_texts([trace_id], [TRACE_ID_BYTES]),
        "traceSegmentId": segment_ids(trace_id, span_id),
        "spanId": pa.array(np.zeros(count, dtype=np.int32)),
    }
    tags = form.field("tags").type
    fields = {
        "timestamp": _times(record),
        "service": service,
        "serviceInstance": instance,
        "endpoint": nothing,
        "traceContext": struct_of(context, form.field("traceContext").type),
        "tags": struct_of({"data": _tags(record, tags.field("data").type)}, tags),
        "layer": pc.coalesce(text_of(resource, "service.layer"), nothing),
    }
    return pa.RecordBatch.from_arrays([fields[name] for name in form.names], schema=form)


def _times(record: pa.StructArray) -> pa.Array:
    told, observed = (
        pc.divide(pc.struct_field(record, name), NANOS_OF_MS)
        for name in ("time_unix_nano", "observed_time_unix_nano")
    )
    return pc.if_else(pc.equal(told, 0), observed, told)


def _levels(record: pa.StructArray) -> pa.Array:
    """As it is written, else by its number; null where there is neither."""
    written, number = (
        pc.struct_field(record, name) for name in ("severity_text", "severity_number")
    )
    at = pc.divide(pc.subtract(number, 1), NUMBERS_A_LEVEL)
    known = pc.and_(pc.greater(number, 0), pc.less(at, len(LEVELS)))
    by_number = pa.array(LEVELS).take(pc.if_else(known, at, None))
    return pc.if_else(pc.equal(written, ""), by_number, written)


def _tags(record: pa.StructArray, form: pa.ListType) -> pa.ListArray:
    """The level of each, if it has one, and its attributes that are text or a number."""
    attributes, levels = pc.struct_field(record, "attributes"), _levels(record)
    flat = pc.list_flatten(attributes)
    texts, told = texts_of(pc.struct_field(flat, "value")), pc.is_valid(levels)
    has = pc.is_valid(texts)
    rows = np.concatenate(
        [
            np.flatnonzero(told.to_numpy(zero_copy_only=False)),
            pc.list_parent_indices(attributes).filter(has).to_numpy(),
        ]
    )
    keys = pa.concat_arrays(
        [pa.repeat(LEVEL, pc.sum(told).as_py() or 0), pc.struct_field(flat, "key").filter(has)]
    )
    values = pa.concat_arrays([levels.filter(told), texts.filter(has)])
    order = pa.array(np.argsort(rows, kind="stable"))
    counts = np.bincount(rows, minlength=len(record))
    offsets = np.concatenate([np.zeros(1, dtype=np.int32), np.cumsum(counts, dtype=np.int32)])
    pairs = struct_of({"key": keys.take(order), "value": values.take(order)}, form.value_type)
    return pa.ListArray.from_arrays(pa.array(offsets), pairs, type=form)
