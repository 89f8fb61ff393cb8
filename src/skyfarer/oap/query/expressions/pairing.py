"""An operator applied to two results.

    neither has labels      one with one
    one of them has         each of its series with the other's only one
    both have               series with equal labels; one without a partner is empty, of the side
                            whose ids are kept

A single value goes with every value of a series or list, and is the same for all of them. A value
that is empty, or goes with one that is, gives an empty one. What the result keeps of ids and owners
are those of the side that has more to say: of the left where both do.

The original differs where it errs: there an empty single value counts as 0, a series without
labels on the left leaves values of the right as they were where its own are empty, and of a single
value with labels the first is taken for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from itertools import repeat
from typing import TypeAlias

from skyfarer.oap.query.expressions.arithmetic import OPERATORS
from skyfarer.oap.query.expressions.problems import Mistake, Place
from skyfarer.oap.query.expressions.results import (
    UNKNOWN,
    Result,
    ResultType,
    Series,
    Value,
    combined,
)

Reckoning: TypeAlias = Callable[[float, float], float]
_Pair: TypeAlias = tuple[Series | None, Series | None]


class _Keep(Enum):
    """Whose ids and owners the result has."""

    LEFT = 1
    RIGHT = 2
    NEITHER = 3


def apply(operator: str, left: Result, right: Result, place: Place) -> Result:
    """Raises a Mistake at `place` where the two go not together."""
    kind = combined(left.type, right.type)
    if kind is ResultType.UNKNOWN:
        return UNKNOWN
    if kind is None or (kind.is_list and (left.labelled or right.labelled)):
        raise Mistake(place, mismatch(operator, left.type, right.type))
    keep, reckon = _kept(left, right), OPERATORS[operator]
    series = tuple(_joined(*pair, keep, reckon) for pair in _pairs(left, right, keep))
    return Result(kind, series, left.labelled or right.labelled)


def mismatch(operator: str, left: ResultType, right: ResultType) -> str:
    return (
        f"'{operator}' cannot take a {left.value} and a {right.value}; "
        "a list goes with a single value without labels, and with nothing else"
    )


def _pairs(left: Result, right: Result, keep: _Keep) -> Iterator[_Pair]:
    if not (left.labelled and right.labelled):
        wider = repeat(left.series[0]) if right.labelled else left.series
        other = right.series if right.labelled else repeat(right.series[0])
        yield from zip(wider, other, strict=False)
    elif keep is _Keep.RIGHT:
        yield from ((one, other) for other, one in _partners(right, left))
    else:
        yield from _partners(left, right)


def _partners(of: Result, among: Result) -> Iterator[tuple[Series, Series | None]]:
    by_labels = {frozenset(one.labels): one for one in among.series}
    return ((one, by_labels.get(frozenset(one.labels))) for one in of.series)


def _kept(left: Result, right: Result) -> _Keep:
    if left.type is not right.type:
        return _Keep.RIGHT if left.type is ResultType.SINGLE_VALUE else _Keep.LEFT
    if not left.labelled and right.labelled:
        return _Keep.RIGHT
    alone = left.type is ResultType.SINGLE_VALUE and not left.labelled
    return _Keep.NEITHER if alone else _Keep.LEFT


def _joined(left: Series | None, right: Series | None, keep: _Keep, reckon: Reckoning) -> Series:
    if left is None or right is None:
        alone = left or right
        assert alone is not None
        return Series(alone.labels, tuple(value._replace(number=None) for value in alone.values))
    kept = {_Keep.LEFT: left.values, _Keep.RIGHT: right.values}.get(keep, (Value(None),))
    sides = _spread(left.values, len(kept)), _spread(right.values, len(kept)), kept
    values = (_value(*three, reckon) for three in zip(*sides, strict=True))
    return Series(left.labels or right.labels, tuple(values))


def _spread(values: tuple[Value, ...], count: int) -> tuple[Value, ...]:
    """One value is as many as the other side has."""
    return values if len(values) == count else values * count


def _value(left: Value, right: Value, kept: Value, reckon: Reckoning) -> Value:
    if left.number is None or right.number is None:
        return kept._replace(number=None)
    return kept._replace(number=reckon(left.number, right.number))
