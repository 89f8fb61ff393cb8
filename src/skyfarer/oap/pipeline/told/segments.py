"""What is told of segments."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.pipeline.analysis.settings import Strategy
from skyfarer.oap.pipeline.told.lists import Mask, bounds_of, cut, last_of, reduced
from skyfarer.oap.pipeline.told.slow import LATENCY_MS_MAX, slow_spans
from skyfarer.oap.pipeline.told.tags import found_by
from skyfarer.oap.pipeline.told.telling import Telling
from skyfarer.wire.messages import SpanLayer, SpanType

NOTHING: Final = pa.scalar("")
LATENCY_MS_MIN: Final = -(2**31)


def segments(batch: pa.RecordBatch, telling: Telling) -> dict[str, pa.Array]:
    """A segment's endpoint is the operation of span 0 or of an entry span, whichever comes last in
    the list."""
    bounds, spans = bounds_of(batch["spans"]), batch["spans"].values
    starts, ends = (spans.field(name).to_numpy() for name in ("startTime", "endTime"))
    start, end = reduced(np.minimum, starts, bounds), reduced(np.maximum, ends, bounds)
    entries = spans.field("spanType").to_numpy() == SpanType.Entry
    first = spans.field("spanId").to_numpy() == 0
    layers = spans.field("spanLayer").to_numpy()
    operation = spans.field("operationName").take(last_of(entries | first, bounds))
    tags, naming, kept = spans.field("tags"), telling.naming, telling.kept
    failed = _failing(spans, kept.failed_by, entries, first)
    return {
        "segment_id": batch["traceSegmentId"],
        "trace_id": batch["traceId"],
        "service": cut(batch["service"], naming.service_chars_max),
        "instance": cut(batch["serviceInstance"], naming.instance_chars_max),
        "endpoint": cut(pc.coalesce(operation, NOTHING), naming.endpoint_chars_max),
        "start_time": start,
        "last_time": pc.max_element_wise(end, reduced(np.maximum, starts, bounds)),
        "latency": _within(pc.subtract(end, start)),
        "is_error": reduced(np.logical_or, failed, bounds),
        "tags": found_by(tags.values, bounds_of(tags)[bounds], kept.searchable_tags),
        "slow": slow_spans(spans, bounds, kept.slow),
        "gen_ai": reduced(np.logical_or, layers == SpanLayer.GenAI, bounds),
    }


def _within(latency: pa.Array) -> pa.Array:
    """What 32 bits hold, as GraphQL's numbers have no more. Null stays null."""
    least = pc.max_element_wise(latency, LATENCY_MS_MIN, skip_nulls=False)
    return pc.min_element_wise(least, LATENCY_MS_MAX, skip_nulls=False)


def _failing(spans: pa.StructArray, strategy: Strategy, entries: Mask, first: Mask) -> Mask:
    """The spans that make their segment fail."""
    failed: Mask = spans.field("isError").to_numpy(zero_copy_only=False)
    if strategy == "FROM_ENTRY_SPAN":
        return failed & entries
    return failed & first if strategy == "FROM_FIRST_SPAN" else failed
