"""Traces as storage has them: segments, found by their trace or by what is known of them.

A segment's bytes are kept as they came; `kind` (wire.rpc.Kind) says how they are to be read.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

TAG_SEPARATOR: Final = "="
"""Between key and value of a tag to find segments by; no such key has it."""
TAG_CHARS_MAX: Final = 256
"""Of `key=value`; a longer one is left out."""


class TraceOrder(Enum):
    """What a list of segments is sorted by, largest first. The value is the column's name."""

    START_TIME = "start_time"
    DURATION = "latency"


@dataclass(frozen=True)
class TraceCondition:
    """What is None is not asked for. `between` is a range of second buckets, both ends included.
    A segment has all of the `tags`, each `key=value`."""

    between: tuple[int, int] | None = None
    service_id: str | None = None
    instance_id: str | None = None
    endpoint_id: str | None = None
    trace_id: str | None = None
    latency_min_ms: int | None = None
    latency_max_ms: int | None = None
    is_error: bool | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class SegmentBrief:
    """A segment without its bytes. `start_time` is in epoch milliseconds, `latency` in ms."""

    segment_id: str
    trace_id: str
    service_id: str
    instance_id: str
    endpoint_id: str
    start_time: int
    latency: int
    is_error: bool


@dataclass(frozen=True)
class StoredSegment:
    """`data` is None where the bytes asked for in all were used up before it."""

    brief: SegmentBrief
    kind: int
    data: bytes | None


class TraceReader(Protocol):
    """Any thread; blocks on storage, for a bounded time: RetryableError when it is over."""

    def trace(self, trace_id: str, segments_max: int, bytes_max: int) -> list[StoredSegment]:
        """Segments of one trace by start time. Of a trace with more than `segments_max`, some."""

    def traces(
        self, condition: TraceCondition, order: TraceOrder, offset: int, limit: int
    ) -> list[SegmentBrief]:
        """One page; equal ones are told apart by their ids, so that pages do not overlap."""

    def tag_keys(self, between: tuple[int, int], limit: int) -> list[str]:
        """Of the tags that segments of these days are found by, sorted; `between` is as in a
        condition, and whole days are looked at."""

    def tag_values(self, key: str, between: tuple[int, int], limit: int) -> list[str]:
        """The values that such tags have, sorted."""
