"""Traces as values: a list of segments found, and the spans of one trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from skyfarer.ui.listing import Question

STATES: Final = {"ALL": "All", "ERROR": "Failed", "SUCCESS": "Succeeded"}
ORDERS: Final = {"BY_START_TIME": "Newest first", "BY_DURATION": "Slowest first"}


@dataclass(frozen=True)
class Search(Question):
    state: str = "ALL"
    order: str = "BY_START_TIME"
    min_ms: int | None = None
    max_ms: int | None = None

    def __post_init__(self) -> None:
        """A choice that there is not, as an address may have it, is the usual one."""
        object.__setattr__(self, "state", self.state if self.state in STATES else "ALL")
        object.__setattr__(self, "order", self.order if self.order in ORDERS else "BY_START_TIME")


@dataclass(frozen=True)
class TraceRow:
    """A segment that was found; its trace is what one looks at."""

    segment_id: str
    trace_id: str
    endpoint: str
    duration_ms: int
    start_ms: int
    is_error: bool


@dataclass(frozen=True)
class SpanLog:
    time_ms: int
    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Span:
    """`key` and `parents` name a span by its segment and its number in it. Its parent is the first
    of them that is there: one of another segment may not be."""

    key: tuple[str, int]
    parents: tuple[tuple[str, int], ...]
    service: str
    instance: str
    name: str
    kind: str
    peer: str
    component: str
    layer: str
    start_ms: int
    end_ms: int
    is_error: bool
    tags: tuple[tuple[str, str], ...]
    logs: tuple[SpanLog, ...]

    @property
    def duration_ms(self) -> int:
        return max(self.end_ms - self.start_ms, 0)
