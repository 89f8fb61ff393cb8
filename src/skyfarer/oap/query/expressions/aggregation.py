"""Many values into one: of a series over time, and of series with labels at each point."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from skyfarer.oap.oal.series import Labels
from skyfarer.oap.query.expressions.arithmetic import mean, rank, total
from skyfarer.oap.query.expressions.results import Result, ResultType, Series, Value

_REDUCED: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "avg": mean,
    "sum": total,
    "max": lambda numbers: max(numbers, key=rank),
    "min": lambda numbers: min(numbers, key=rank),
}
"""Of at least one number."""


def aggregated(function: str, of: Result) -> Result:
    """Each series becomes one value; of no value at all count and sum are 0, the others empty."""
    if of.type is ResultType.UNKNOWN:
        return of
    shorter = of.each(lambda one: Series(one.labels, (_one(function, one.values),)))
    return replace(shorter, type=ResultType.SINGLE_VALUE)


def _one(function: str, values: Sequence[Value]) -> Value:
    """Those that choose a value keep its id, owner and trace."""
    present = [value for value in values if value.number is not None]
    if function == "count":
        return Value(float(len(present)))
    if not present:
        return Value(0.0 if function == "sum" else None)
    if function == "latest":
        return present[-1]
    if function in ("max", "min"):
        return (max if function == "max" else min)(present, key=_rank)
    return Value(_REDUCED[function]([value.number or 0.0 for value in present]))


def _rank(value: Value) -> tuple[bool, float]:
    return rank(value.number or 0.0)


def labels_aggregated(of: Result, function: str, names: Sequence[str]) -> Result:
    """Series that agree in the labels of these names are one. A name that the first series does
    not have is passed over; without any there is one series, and it has no labels."""
    if not of.series:
        return of
    known = dict(of.series[0].labels)
    kept = [name for name in names if name in known]
    groups: dict[Labels, list[Series]] = {}
    for one in of.series:
        found = dict(one.labels)
        groups.setdefault(tuple((name, found.get(name, "")) for name in kept), []).append(one)
    merged = (_merged(labels, group, _REDUCED[function]) for labels, group in groups.items())
    return replace(of, series=tuple(merged), labelled=bool(kept))


def _merged(
    labels: Labels, group: Sequence[Series], reduce: Callable[[Sequence[float]], float]
) -> Series:
    values = []
    for at_one_point in zip(*(one.values for one in group), strict=True):
        numbers = [value.number for value in at_one_point if value.number is not None]
        known = (value.id for value in at_one_point if value.id is not None)
        values.append(Value(reduce(numbers) if numbers else None, next(known, None)))
    return Series(labels, tuple(values))


def sorted_by_value(of: Result, function: str, ascending: bool, limit: int | None) -> Result:
    """Series by what the function makes of each; those without a value come last."""
    if not of.labelled:
        return of
    numbers = [(_one(function, one.values).number, one) for one in of.series]
    ranked = sorted(
        ((rank(number), one) for number, one in numbers if number is not None),
        key=lambda pair: pair[0],
        reverse=not ascending,
    )
    empty = [one for number, one in numbers if number is None]
    return replace(of, series=tuple([*(one for _, one in ranked), *empty][:limit]))


def sorted_by_labels(of: Result, names: Sequence[str], ascending: bool) -> Result:
    """By the text of these labels, the first name first; a label that is not there is empty."""

    def key(one: Series) -> tuple[str, ...]:
        found = dict(one.labels)
        return tuple(found.get(name, "") for name in names)

    return replace(of, series=tuple(sorted(of.series, key=key, reverse=not ascending)))


def relabelled(of: Result, before: Labels, after: Labels) -> Result:
    """Each of these labels becomes the one at the same place in the other list."""
    instead = dict(zip(before, after, strict=True))

    def change(one: Series) -> Series:
        return Series(tuple(instead.get(label, label) for label in one.labels), one.values)

    return of.each(change)
