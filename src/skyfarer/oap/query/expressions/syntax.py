"""What was written, as a tree: nothing here is known to make sense."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from skyfarer.oap.query.expressions.problems import Place

LOGICAL: Final = ("&&", "||")
COMPARISONS: Final = ("==", "!=", "<=", "<", ">=", ">")
SUMS: Final = ("+", "-")
PRODUCTS: Final = ("*", "/", "%")
PRECEDENCE: Final = (LOGICAL, COMPARISONS, SUMS, PRODUCTS)
"""The loosest first. Those of one row bind alike, from the left, && and || too, as in the
original."""


@dataclass(frozen=True)
class Number:
    value: float
    place: Place


@dataclass(frozen=True)
class Label:
    """`p='50,99'`, the values apart."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Metric:
    name: str
    labels: tuple[Label, ...]
    place: Place


@dataclass(frozen=True)
class Binary:
    """`place` is the operator's."""

    operator: str
    left: Expression
    right: Expression
    place: Place


@dataclass(frozen=True)
class Aggregate:
    """avg, count, latest, sum, max, min: of each series one value."""

    function: str
    of: Expression
    place: Place


@dataclass(frozen=True)
class Mathematical:
    """abs, ceil, floor, and round with `places`."""

    function: str
    of: Expression
    places: int
    place: Place


@dataclass(frozen=True)
class Trend:
    """increase, rate: against the value `steps` before."""

    function: str
    metric: Metric
    steps: int
    place: Place


@dataclass(frozen=True)
class Attribute:
    """`attr0='GENERAL'`, or `attr0!='GENERAL'`."""

    name: str
    equal: bool
    value: str
    place: Place


@dataclass(frozen=True)
class TopN:
    metric: Metric
    limit: int
    ascending: bool
    attributes: tuple[Attribute, ...]
    place: Place


@dataclass(frozen=True)
class TopNOf:
    lists: tuple[TopN, ...]
    limit: int
    ascending: bool
    place: Place


@dataclass(frozen=True)
class Relabels:
    of: Expression
    target: Label
    replacement: Label
    place: Place


@dataclass(frozen=True)
class AggregateLabels:
    """Without `names`, all series are one."""

    of: Expression
    function: str
    names: tuple[str, ...]
    place: Place


@dataclass(frozen=True)
class SortValues:
    """Series by what `by` makes of each; without a `limit`, all of them."""

    of: Expression
    limit: int | None
    ascending: bool
    by: str
    place: Place


@dataclass(frozen=True)
class SortLabelValues:
    of: Expression
    ascending: bool
    names: tuple[str, ...]
    place: Place


@dataclass(frozen=True)
class FirstPresent:
    """view_as_seq: the first that has a value."""

    choices: tuple[Expression, ...]
    place: Place


@dataclass(frozen=True)
class IsPresent:
    choices: tuple[Expression, ...]
    place: Place


@dataclass(frozen=True)
class Baseline:
    """`bound` is value, upper or lower."""

    metric: Metric
    bound: str
    place: Place


Expression: TypeAlias = (
    Number
    | Metric
    | Binary
    | Aggregate
    | Mathematical
    | Trend
    | TopN
    | TopNOf
    | Relabels
    | AggregateLabels
    | SortValues
    | SortLabelValues
    | FirstPresent
    | IsPresent
    | Baseline
)
