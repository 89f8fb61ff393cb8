"""Decoders of what one shape cannot say: a message inside a message, OTLP's as an agent's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.pipeline.sources.decode import Decoder, decoder_named
from skyfarer.oap.pipeline.sources.otlp import segments_of
from skyfarer.oap.pipeline.sources.otlp_logs import logs_of
from skyfarer.oap.pipeline.sources.shapes import (
    LOG,
    LOG_RECORD,
    SEGMENT,
    SHAPES,
    SPAN,
    UPSTREAM_SEGMENT,
    V2_SEGMENT,
    Shape,
)
from skyfarer.wire.rpc import Kind

TRACE_IDS = "globalTraceIds"
Made: TypeAlias = Callable[[pa.ListArray, pa.StructArray, pa.Schema], pa.RecordBatch]


class UpstreamDecoder:
    """v2: the columns of the segment whose bytes an upstream segment holds, and its trace ids."""

    def __init__(self, name: str) -> None:
        self._outer = decoder_named(name)(UPSTREAM_SEGMENT)
        self._inner = decoder_named(name)(V2_SEGMENT)
        trace_ids = self._outer.schema.field(TRACE_IDS)
        self.schema: pa.Schema = self._inner.schema.append(trace_ids)

    def decode_all(self, payloads: pa.BinaryArray) -> pa.RecordBatch:
        outer = self._outer.decode_all(payloads)
        inner = self._inner.decode_all(outer["segment"])
        return pa.RecordBatch.from_arrays([*inner.columns, outer[TRACE_IDS]], schema=self.schema)


class PartDecoder:
    """OTLP: a resource with exactly one span or log, which is how exports are cut, as what an agent
    would have sent. `made` is given the resources' attributes, the items, and the form of both."""

    def __init__(self, name: str, part: Shape, form: Shape, lists: tuple[str, str], made: Made):
        self._whole = decoder_named(name)(part)
        self._scopes, self._items = lists
        self._made = made
        self.schema: pa.Schema = decoder_named(name)(form).schema

    def decode_all(self, payloads: pa.BinaryArray) -> pa.RecordBatch:
        batch = self._whole.decode_all(payloads)
        scopes = batch[self._scopes]
        items = pc.struct_field(pc.list_flatten(scopes), self._items)
        if not all(
            pc.all(pc.equal(pc.list_value_length(one), 1)).as_py() for one in (scopes, items)
        ):
            raise ValueError("not one part")
        resource = pc.struct_field(batch["resource"], "attributes")
        return self._made(resource, pc.list_flatten(items), self.schema)


def decoder_of(kind: int, name: str) -> Decoder:
    if kind == Kind.V2_SEGMENT:
        return UpstreamDecoder(name)
    if kind == Kind.OTLP_TRACES:
        return PartDecoder(name, SPAN, SEGMENT, ("scope_spans", "spans"), segments_of)
    if kind == Kind.OTLP_LOGS:
        return PartDecoder(name, LOG_RECORD, LOG, ("scope_logs", "log_records"), logs_of)
    return decoder_named(name)(SHAPES[kind])
