"""The requests that a task sampled: segments of which there are stacks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import tzinfo

from skyfarer.oap.core import ids
from skyfarer.oap.core.inventory import InventoryReader
from skyfarer.oap.core.storage import Reader
from skyfarer.oap.core.tasks import ProfileTask
from skyfarer.oap.core.time_bucket import minute_bucket
from skyfarer.oap.core.traces import SegmentBrief, TraceCondition, TraceOrder
from skyfarer.oap.query import limits
from skyfarer.oap.query.naming import part_name
from skyfarer.oap.query.profiles.snapshots import EARLY_MS, Snapshots
from skyfarer.oap.query.traces.segments import Segments
from skyfarer.oap.query.traces.span import Allowance, Span, View, whole

DumpTimes = Mapping[str, Sequence[int]]
"""Segment id → epoch ms of its dumps."""


class Sampled:
    """Any thread; blocks on storage."""

    def __init__(self, reader: Reader, zone: tzinfo, inventories: InventoryReader | None) -> None:
        self._reader = reader
        self._zone = zone
        self._inventories = inventories
        self._snapshots = Snapshots(reader, zone)

    def of(self, task: ProfileTask) -> list[View]:
        """Newest first. Segments have been stored by when they began, stacks by when they came."""
        dumps = defaultdict[str, list[int]](list)
        for one in self._snapshots.between(task.start_ms, task.end_ms):
            if one.taskId == task.id:
                dumps[one.traceSegmentId].append(one.time)
        briefs = self._briefs(task, dumps) if dumps else []
        allowance = Allowance(limits.TRACE_SPANS_MAX, limits.TRACE_ENTRIES_MAX)
        segments = Segments(self._inventories, allowance)
        return [self._view(brief, segments, dumps) for brief in briefs]

    def _briefs(self, task: ProfileTask, dumps: DumpTimes) -> list[SegmentBrief]:
        service_id = ids.service_id(task.service)
        first = minute_bucket(task.start_ms - EARLY_MS, self._zone)
        last = minute_bucket(task.end_ms + EARLY_MS, self._zone)
        asked = TraceCondition(
            between=(first * 100, last * 100 + 59),
            service_id=service_id,
            endpoint_id=ids.endpoint_id(service_id, task.endpoint),
        )
        found, offset = list[SegmentBrief](), 0
        while len(found) < len(dumps) and offset < limits.REACH_MAX:
            page = self._reader.traces(asked, TraceOrder.START_TIME, offset, limits.PAGE_MAX)
            found += [one for one in page if one.segment_id in dumps]
            offset += limits.PAGE_MAX
            if len(page) < limits.PAGE_MAX:
                break
        return found[: limits.PROFILED_SEGMENTS_MAX]

    def _view(self, brief: SegmentBrief, segments: Segments, dumps: DumpTimes) -> View:
        stored = self._reader.trace(
            brief.trace_id, limits.TRACE_SEGMENTS_MAX, limits.TRACE_BYTES_MAX
        )
        own = (one for one in stored if one.brief.segment_id == brief.segment_id)
        spans = [span for one in own for span in segments.spans(one)]
        times = dumps[brief.segment_id]
        return {
            "traceId": brief.trace_id,
            "instanceId": brief.instance_id,
            "instanceName": part_name(brief.instance_id),
            "endpointNames": [part_name(brief.endpoint_id)],
            "duration": whole(brief.latency),
            "start": str(brief.start_time),
            "spans": [{**span.view(), "profiled": _profiled(span, times)} for span in spans],
        }


def _profiled(span: Span, times: Sequence[int]) -> bool:
    return any(span.start_ms <= time_ms <= span.end_ms for time_ms in times)
