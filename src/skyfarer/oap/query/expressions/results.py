"""What an expression, or a part of it, comes to.

A value without a number is empty: nothing was recorded, or there was nothing to reckon with. Its
`id` is the first millisecond of its bucket, or the name of what it is a value of; what an
aggregation makes has none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from skyfarer.oap.oal.series import Labels


class ResultType(Enum):
    UNKNOWN = "UNKNOWN"
    SINGLE_VALUE = "SINGLE_VALUE"
    TIME_SERIES_VALUES = "TIME_SERIES_VALUES"
    SORTED_LIST = "SORTED_LIST"
    RECORD_LIST = "RECORD_LIST"

    @property
    def is_list(self) -> bool:
        return self in (ResultType.SORTED_LIST, ResultType.RECORD_LIST)


@dataclass(frozen=True)
class Owner:
    """The entity that an entry of a sorted list speaks of. `scope` is the protocol's."""

    scope: str
    service_id: str | None = None
    service: str | None = None
    normal: bool | None = None
    instance_id: str | None = None
    instance: str | None = None
    endpoint_id: str | None = None
    endpoint: str | None = None


class Value(NamedTuple):
    """There are many of them: a tuple is made three times as fast as a dataclass."""

    number: float | None
    id: str | None = None
    owner: Owner | None = None
    trace_id: str | None = None


@dataclass(frozen=True)
class Series:
    labels: Labels
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Result:
    """`labelled` is known even where there is no series. UNKNOWN without an error is the answer to
    an entity that lacks a name."""

    type: ResultType
    series: tuple[Series, ...] = ()
    labelled: bool = False
    error: str | None = None

    def each(self, change: Callable[[Series], Series]) -> Result:
        return replace(self, series=tuple(map(change, self.series)))

    @property
    def present(self) -> bool:
        """Whether any value is there."""
        return any(value.number is not None for one in self.series for value in one.values)


UNKNOWN = Result(ResultType.UNKNOWN)


def single(number: float | None) -> Result:
    return Result(ResultType.SINGLE_VALUE, (Series((), (Value(number),)),))


def combined(left: ResultType, right: ResultType) -> ResultType | None:
    """What an operator makes of two types; None for two that go not together."""
    if ResultType.UNKNOWN in (left, right):
        return ResultType.UNKNOWN
    if left is ResultType.SINGLE_VALUE:
        return right
    if right is ResultType.SINGLE_VALUE or left is right is ResultType.TIME_SERIES_VALUES:
        return left
    return None
