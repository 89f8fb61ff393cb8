"""A span as the query protocol shows it, whatever protocol brought it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeVar

from skyfarer.oap.query import limits

T = TypeVar("T")

View = dict[str, object]

ENTRY, EXIT, LOCAL = "Entry", "Exit", "Local"
_INT_MAX = 2**31 - 1
UNRECOGNIZED = "UNRECOGNIZED"  # an enum's number that the protocol does not know


class RefType(Enum):
    CROSS_PROCESS = "CROSS_PROCESS"
    CROSS_THREAD = "CROSS_THREAD"


@dataclass(frozen=True, slots=True)
class Ref:
    trace_id: str
    segment_id: str
    span_id: int
    type: RefType


@dataclass(frozen=True, slots=True)
class Log:
    time_ms: int
    data: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Span:
    trace_id: str
    segment_id: str
    span_id: int
    parent_span_id: int
    service: str
    instance: str
    start_ms: int
    end_ms: int
    operation: str
    type: str
    peer: str
    component: str
    is_error: bool
    layer: str
    refs: tuple[Ref, ...] = ()
    tags: tuple[tuple[str, str], ...] = ()
    logs: tuple[Log, ...] = ()

    @property
    def key(self) -> tuple[str, int]:
        return self.segment_id, self.span_id

    @property
    def parent_key(self) -> tuple[str, int]:
        """The last reference's span, else the parent in its own segment."""
        if self.refs:
            return self.refs[-1].segment_id, self.refs[-1].span_id
        return self.segment_id, self.parent_span_id

    def view(self) -> View:
        return {
            "traceId": self.trace_id,
            "segmentId": self.segment_id,
            "spanId": self.span_id,
            "parentSpanId": self.parent_span_id,
            "refs": [_ref(ref) for ref in self.refs],
            "serviceCode": self.service,
            "serviceInstanceName": self.instance,
            "startTime": self.start_ms,
            "endTime": self.end_ms,
            "endpointName": self.operation,
            "type": self.type,
            "peer": self.peer,
            "component": self.component,
            "isError": self.is_error,
            "layer": self.layer,
            "tags": _pairs(self.tags),
            "logs": [{"time": log.time_ms, "data": _pairs(log.data)} for log in self.logs],
            "attachedEvents": [],
        }


class Pair(Protocol):
    """A key and a value of any native protocol."""

    @property
    def key(self) -> str: ...
    @property
    def value(self) -> str: ...


class Allowance:
    """How much of one trace may still be shown; used by one thread."""

    def __init__(self, spans: int, entries: int) -> None:
        self._spans = spans
        self._entries = entries

    def spans(self, some: Iterable[T]) -> Iterator[T]:
        for one in some:
            if self._spans == 0:
                return
            self._spans -= 1
            yield one

    def entries(self, some: Iterable[T]) -> Iterator[T]:
        """References, tags and logs, as far as they go."""
        for one in some:
            if self._entries == 0:
                return
            self._entries -= 1
            yield one

    def pairs(self, some: Iterable[Pair]) -> tuple[tuple[str, str], ...]:
        return tuple((name(pair.key), text(pair.value)) for pair in self.entries(some))


def name(value: str) -> str:
    return cut(value, limits.NAME_CHARS_MAX)


def text(value: str) -> str:
    return cut(value, limits.TEXT_CHARS_MAX)


def label(names: Mapping[int, str], number: int) -> str:
    """The name of an enum's number, which an agent may make up."""
    return names.get(number, UNRECOGNIZED)


def whole(value: int) -> int:
    """As near to it as GraphQL's Int goes."""
    return max(-_INT_MAX, min(value, _INT_MAX))


def cut(value: str, chars_max: int) -> str:
    if len(value) <= chars_max:
        return value
    return f"{value[:chars_max]}… ({len(value)} characters)"


def _pairs(pairs: Iterable[tuple[str, str]]) -> list[View]:
    return [{"key": key, "value": value} for key, value in pairs]


def _ref(ref: Ref) -> View:
    return {
        "traceId": ref.trace_id,
        "parentSegmentId": ref.segment_id,
        "parentSpanId": ref.span_id,
        "type": ref.type.value,
    }
