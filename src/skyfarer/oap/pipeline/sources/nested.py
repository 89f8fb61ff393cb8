"""Decoders of what one shape cannot say: a message inside a message, a span as a segment."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.pipeline.sources.decode import DECODERS, Decoder
from skyfarer.oap.pipeline.sources.otlp import segments_of
from skyfarer.oap.pipeline.sources.shapes import (
    SEGMENT,
    SHAPES,
    SPAN,
    UPSTREAM_SEGMENT,
    V2_SEGMENT,
)
from skyfarer.wire.rpc import Kind

TRACE_IDS = "globalTraceIds"


class UpstreamDecoder:
    """v2: the columns of the segment whose bytes an upstream segment holds, and its trace ids."""

    def __init__(self, name: str) -> None:
        self._outer = DECODERS[name](UPSTREAM_SEGMENT)
        self._inner = DECODERS[name](V2_SEGMENT)
        trace_ids = self._outer.schema.field(TRACE_IDS)
        self.schema: pa.Schema = self._inner.schema.append(trace_ids)

    def decode_all(self, payloads: pa.BinaryArray) -> pa.RecordBatch:
        outer = self._outer.decode_all(payloads)
        inner = self._inner.decode_all(outer["segment"])
        return pa.RecordBatch.from_arrays([*inner.columns, outer[TRACE_IDS]], schema=self.schema)


class SpanDecoder:
    """OTLP: resource spans with exactly one span, which is how exports are cut, as segments."""

    def __init__(self, name: str) -> None:
        self._whole = DECODERS[name](SPAN)
        self.schema: pa.Schema = DECODERS[name](SEGMENT).schema

    def decode_all(self, payloads: pa.BinaryArray) -> pa.RecordBatch:
        batch = self._whole.decode_all(payloads)
        lists = [batch["scope_spans"]]
        lists.append(pc.struct_field(pc.list_flatten(lists[0]), "spans"))
        if not all(pc.all(pc.equal(pc.list_value_length(one), 1)).as_py() for one in lists):
            raise ValueError("not one span")
        return segments_of(batch, self.schema)


def decoder_of(kind: int, name: str) -> Decoder:
    if kind == Kind.V2_SEGMENT:
        return UpstreamDecoder(name)
    if kind == Kind.OTLP_TRACES:
        return SpanDecoder(name)
    return DECODERS[name](SHAPES[kind])
