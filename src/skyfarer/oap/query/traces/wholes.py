"""Lists of whole traces: those that have a segment which fits, each with all its spans.

Storage lists segments, so traces are told apart here: segments are read in their order until there
are enough traces for the page. One page has no more spans than one trace may have.
"""

from __future__ import annotations

from collections.abc import Sequence

from skyfarer.oap.core.inventory import InventoryReader
from skyfarer.oap.core.traces import TraceCondition, TraceOrder, TraceReader
from skyfarer.oap.query import limits
from skyfarer.oap.query.errors import QueryError
from skyfarer.oap.query.traces.segments import Segments
from skyfarer.oap.query.traces.span import Allowance, Span, View
from skyfarer.oap.query.traces.tree import in_tree_order


class WholeTraces:
    """Any thread; blocks on storage."""

    def __init__(self, reader: TraceReader, inventories: InventoryReader | None) -> None:
        self._reader = reader
        self._inventories = inventories

    def page(self, asked: TraceCondition, order: TraceOrder, offset: int, limit: int) -> View:
        traces = self._traces(self._ids(asked, order, offset + limit)[offset:]) if limit else []
        spans = [span for trace in traces for span in trace]
        return {
            "traces": [{"spans": [span.view() for span in trace]} for trace in traces],
            "retrievedTimeRange": {
                "startTime": min((span.start_ms for span in spans), default=0),
                "endTime": max((span.end_ms for span in spans), default=0),
            },
        }

    def _ids(self, asked: TraceCondition, order: TraceOrder, wanted: int) -> list[str]:
        """The first so many, in the order of the first of their segments that fits."""
        found, offset = dict[str, None](), 0
        while len(found) < wanted and offset < limits.REACH_MAX:
            page = self._reader.traces(asked, order, offset, limits.PAGE_MAX)
            found.update(dict.fromkeys(brief.trace_id for brief in page))
            offset += limits.PAGE_MAX
            if len(page) < limits.PAGE_MAX:
                break
        return list(found)[:wanted]

    def _traces(self, ids: Sequence[str]) -> list[list[Span]]:
        allowance = Allowance(limits.TRACE_SPANS_MAX, limits.TRACE_ENTRIES_MAX)
        segments, bytes_left = Segments(self._inventories, allowance), limits.TRACE_BYTES_MAX
        traces, spans_count = list[list[Span]](), 0
        for trace_id in ids:
            stored = self._reader.trace(trace_id, limits.TRACE_SEGMENTS_MAX, max(bytes_left, 0))
            bytes_left -= sum(len(one.data or b"") for one in stored)
            spans = [span for segment in stored for span in segments.spans(segment)]
            spans_count += len(spans)
            if spans_count >= limits.TRACE_SPANS_MAX and len(ids) > 1:
                raise QueryError(
                    f"these {len(ids)} traces have more than {limits.TRACE_SPANS_MAX} spans:"
                    " ask for fewer at a time"
                )
            traces += [in_tree_order(spans)] if spans else []
        return traces
