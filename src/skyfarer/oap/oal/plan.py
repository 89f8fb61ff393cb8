"""The plan: what to add up while rows come in, and what each metric is made of when it is read.

One wide row per source, entity and time bucket. A statement is taken apart into accumulators;
statements that need the same one share it, so `service_cpm`, `service_sla` and `service_resp_time`
count their calls once. Each accumulator is a column. Its name follows from what it means, never
from the order of statements, so a metric added to a file leaves the columns of the others alone.

An accumulator that no row has reached is null, not 0: that is how a metric without a single item
is told from one that is zero. All of them merge by their operation: counts and sums add, MAX and
MIN compare, and tables do either key by key. Hours and days are merged minutes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TypeAlias

from skyfarer.oap.oal.sources import Type

Scalar: TypeAlias = str | int | float | bool | None
COLUMN_CHARS_MAX = 60
_DIGEST_CHARS = 8
_PLAIN = re.compile(r"\w+\([\w, ]*\)\Z")


@dataclass(frozen=True)
class Field:
    """A value of a source row. With `cast`, a text that is no such number is null."""

    path: str
    type: Type
    key: str | None = None
    cast: str | None = None

    @property
    def number(self) -> Type:
        return Type(self.cast) if self.cast else self.type

    def __str__(self) -> str:
        key = f'["{self.key}"]' if self.key is not None else ""
        return f"{f'({self.cast})' if self.cast else ''}{self.path}{key}"


@dataclass(frozen=True)
class Condition:
    """`value` is a tuple for "in"; a value of an enumeration is its name.

    Null equals null alone and differs from all else; any other comparison with it is false, and so
    are both "contain" and "not contain" of a list that is null.
    """

    field: Field
    operator: str
    value: Scalar | tuple[Scalar, ...]

    def __str__(self) -> str:
        if isinstance(self.value, tuple):
            return f"{self.field} {self.operator} [{', '.join(map(self._shown, self.value))}]"
        return f"{self.field} {self.operator} {self._shown(self.value)}"

    def _shown(self, value: Scalar) -> str:
        if isinstance(value, str):
            return value if self.field.type is Type.ENUM else f'"{value}"'
        if value is None:
            return "null"
        return str(value).lower() if isinstance(value, bool) else str(value)


class Operation(Enum):
    COUNT = "count"  # rows
    SUM = "sum"
    SUM_DOUBLE = "sum_double"
    MAX = "max"  # starts at 0
    MAX_DOUBLE = "max_double"
    MIN = "min"  # starts at the largest 64-bit number
    MIN_DOUBLE = "min_double"
    BUCKETS = "buckets"  # value / width → rows; with a bound, the last bucket takes the rest
    LABEL_COUNTS = "label_counts"  # label → rows, of the first `bound` labels; null is none
    LABEL_SUMS = "label_sums"  # label → sum, of the first `bound` labels
    LABEL_MAX = "label_max"  # the same with MAX
    LABEL_MIN = "label_min"  # the same with MIN
    SATISFIED = "satisfied"  # rows (value, name, status) that succeeded within T of the name
    TOLERATED = "tolerated"  # rows that succeeded in more than T and at most 4T


@dataclass(frozen=True)
class Accumulator:
    """Of the rows that fulfil all of `where`. `width` and `bound` are 0 where not used."""

    operation: Operation
    inputs: tuple[Field, ...]
    where: tuple[Condition, ...]
    width: int = 0
    bound: int = 0

    def __str__(self) -> str:
        inside = [str(field) for field in self.inputs]
        inside += [str(number) for number in (self.width, self.bound) if number]
        where = " and ".join(map(str, self.where))
        return f"{self.operation.value}({', '.join(inside)})" + (f" where {where}" if where else "")

    @cached_property
    def column(self) -> str:
        text = str(self)
        slug = re.sub(r"\W+", "_", text).strip("_")
        if _PLAIN.match(text) and len(slug) <= COLUMN_CHARS_MAX:
            return slug
        digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARS]
        return f"{slug[: COLUMN_CHARS_MAX - _DIGEST_CHARS - 1].rstrip('_')}_{digest}"


@dataclass(frozen=True)
class Metric:
    """`columns` are pairs of the original's name of a part and the accumulator's column here.
    `labels` are the names of those that its values have, where the statement says so."""

    name: str
    function: str
    numbers: tuple[int, ...]
    columns: tuple[tuple[str, str], ...]
    decorator: str | None = None
    labels: tuple[str, ...] = ()

    @property
    def call(self) -> str:
        return f"{self.function}({', '.join(map(str, (*self.labels, *self.numbers)))})"

    def __str__(self) -> str:
        parts = ", ".join(f"{part}={column}" for part, column in self.columns)
        decorator = f" decorated by {self.decorator}" if self.decorator else ""
        return f"{self.name} = {self.call} of {parts}{decorator}"


@dataclass(frozen=True)
class SourcePlan:
    """`accumulators` are distinct, in the order in which metrics first need them."""

    source: str
    scope: int | None
    accumulators: tuple[Accumulator, ...]
    metrics: tuple[Metric, ...]

    def __str__(self) -> str:
        lines = [self.source]
        lines += [f"  {accumulator.column}: {accumulator}" for accumulator in self.accumulators]
        return "\n".join([*lines, *(f"  {metric}" for metric in self.metrics)])


@dataclass(frozen=True)
class Plan:
    """`disabled` names streams of other kinds too; whoever makes those has to look."""

    sources: tuple[SourcePlan, ...]
    disabled: frozenset[str] = frozenset()

    def of(self, sources: Container[str]) -> Plan:
        """What of it is made from these."""
        return Plan(tuple(one for one in self.sources if one.source in sources), self.disabled)

    def __str__(self) -> str:
        return "\n".join(map(str, self.sources))
