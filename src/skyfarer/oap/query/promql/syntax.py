"""What was written in PromQL, as a tree: nothing here is known to make sense."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from skyfarer.oap.query.expressions.problems import Place


@dataclass(frozen=True)
class Matcher:
    """`operator` is =, !=, =~ or !~."""

    key: str
    operator: str
    value: str
    place: Place


@dataclass(frozen=True)
class Selector:
    """`range_s` where it ends in `[5m]`."""

    name: str
    matchers: tuple[Matcher, ...]
    range_s: int | None
    place: Place


@dataclass(frozen=True)
class Scalar:
    value: float
    place: Place


@dataclass(frozen=True)
class Binary:
    """A comparison keeps the values for which it is true; with `as_bool` it is 1 or 0."""

    operator: str
    left: Node
    right: Node
    as_bool: bool
    place: Place


@dataclass(frozen=True)
class Aggregate:
    """`by` these labels, or by all but these."""

    function: str
    of: Node
    names: tuple[str, ...]
    by: bool
    place: Place


Node: TypeAlias = Selector | Scalar | Binary | Aggregate
