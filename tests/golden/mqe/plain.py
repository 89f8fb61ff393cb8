"""Metric expressions evaluated the plain way: lists of optional floats, label by label, point by
point. It shares nothing with the evaluator but the tree it walks: slow, obvious, and what the
evaluator is compared with.

A result is lines, labels and values, and whether it has one value or one a point; a metric's values
are given. Lists are beside it (`plain_lists`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import TypeAlias

from skyfarer.oap.query.expressions import syntax

Numbers: TypeAlias = list[float | None]
Labels: TypeAlias = tuple[tuple[str, str], ...]
Lines: TypeAlias = list[tuple[Labels, Numbers]]
World: TypeAlias = Mapping[str, tuple[bool, Lines]]
"""Metric → whether it has labels, and its values: as many points as are asked for, and EARLIER
before them."""
EARLIER = 3


@dataclass
class Plain:
    single: bool
    labelled: bool
    lines: Lines


def evaluate(node: syntax.Expression, world: World) -> Plain:
    if isinstance(node, syntax.Number):
        return Plain(True, False, [((), [node.value])])
    if isinstance(node, syntax.Metric):
        return metric(node, world, 0)
    if isinstance(node, syntax.Binary):
        return binary(node.operator, evaluate(node.left, world), evaluate(node.right, world))
    if isinstance(node, syntax.Trend):
        return trend(node, world)
    if isinstance(node, syntax.FirstPresent | syntax.IsPresent):
        return choices(node, world)
    assert not isinstance(node, syntax.TopN | syntax.TopNOf | syntax.Baseline)
    of = evaluate(node.of, world)
    if isinstance(node, syntax.Aggregate):
        lines = [(labels, [aggregate(node.function, line)]) for labels, line in of.lines]
        return Plain(True, of.labelled, lines)
    if isinstance(node, syntax.Mathematical):
        return mathematical(node, of)
    if isinstance(node, syntax.AggregateLabels):
        return aggregate_labels(node, of)
    if isinstance(node, syntax.Relabels):
        return relabels(node, of)
    return in_order(node, of)


def metric(node: syntax.Metric, world: World, earlier: int) -> Plain:
    labelled, lines = world[node.name]
    kept = []
    for labels, line in lines:
        fits = True
        for key in {label.key for label in node.labels if label.values}:
            allowed = [v for label in node.labels if label.key == key for v in label.values]
            fits = fits and dict(labels).get(key) in allowed
        asked = line[EARLIER - earlier :]
        if not labelled or (fits and any(number is not None for number in asked)):
            kept.append((labels, asked))
    return Plain(False, labelled, kept)


def binary(operator: str, left: Plain, right: Plain) -> Plain:
    single = left.single and right.single
    lines: Lines = []
    if left.labelled and right.labelled and left.single and not right.single:
        for labels, line in right.lines:
            partner = partner_of(labels, left)
            empty: Numbers = [None] * len(line)
            lines.append((labels, together(operator, partner, line) if partner else empty))
    elif left.labelled and right.labelled:
        for labels, line in left.lines:
            lines.append((labels, together(operator, line, partner_of(labels, right))))
    elif right.labelled:
        for labels, line in right.lines:
            lines.append((labels, together(operator, left.lines[0][1], line)))
    else:
        for labels, line in left.lines:
            lines.append((labels, together(operator, line, right.lines[0][1])))
    return Plain(single, left.labelled or right.labelled, lines)


def partner_of(labels: Labels, among: Plain) -> Numbers | None:
    matching = [line for other, line in among.lines if set(other) == set(labels)]
    return matching[-1] if matching else None


def together(operator: str, left: Numbers, right: Numbers | None) -> Numbers:
    if right is None:
        return [None] * len(left)
    count = max(len(left), len(right))
    found: Numbers = []
    for point in range(count):
        one = left[0] if len(left) == 1 else left[point]
        other = right[0] if len(right) == 1 else right[point]
        found.append(None if one is None or other is None else reckon(operator, one, other))
    return found


def reckon(operator: str, one: float, other: float) -> float:
    if operator in ("/", "%") and other == 0:
        if operator == "%" or one == 0 or one != one:
            return math.nan
        negative = (one < 0) != (math.copysign(1, other) < 0)
        return -math.inf if negative else math.inf
    if operator == "%":
        return (
            math.nan if math.isinf(one) or one != one or other != other else math.fmod(one, other)
        )
    if operator == "/":
        return one / other
    if operator == "+":
        return one + other
    if operator == "-":
        return one - other
    if operator == "*":
        return one * other
    truths = {
        "==": one == other,
        "!=": one != other,
        "<": one < other,
        "<=": one <= other,
        ">": one > other,
        ">=": one >= other,
        "&&": one == 1 and other == 1,
        "||": one == 1 or other == 1,
    }
    return 1.0 if truths[operator] else 0.0


def aggregate(function: str, line: Numbers) -> float | None:
    there = [number for number in line if number is not None]
    if function == "count":
        return float(len(there))
    if function == "sum":
        return added(there)
    if not there:
        return None
    if function == "avg":
        return added(there) / len(there)
    if function == "latest":
        return there[-1]
    return extreme(function, there)


def added(numbers: list[float]) -> float:
    """As exact as can be: sorting must not depend on the last digit of a sum."""
    if all(math.isfinite(number) for number in numbers):
        return float(sum(map(Fraction, numbers), Fraction()))
    return sum(numbers)


def before(one: float, other: float) -> bool:
    """NaN is the greatest."""
    return one == one and (other != other or one < other)


def extreme(function: str, numbers: list[float]) -> float:
    best = numbers[0]
    for number in numbers[1:]:
        if before(best, number) if function == "max" else before(number, best):
            best = number
    return best


def mathematical(node: syntax.Mathematical, of: Plain) -> Plain:
    lines = [(labels, [changed(node, number) for number in line]) for labels, line in of.lines]
    return Plain(of.single, of.labelled, lines)


def changed(node: syntax.Mathematical, number: float | None) -> float | None:
    if number is None:
        return None
    if node.function == "abs":
        return -number if number < 0 else number
    if not math.isfinite(number):
        return number
    if node.function == "round":
        scaled = Decimal(repr(abs(number))).scaleb(node.places)
        size = float(scaled.to_integral_value(ROUND_HALF_UP).scaleb(-node.places))
        return size if number >= 0 else -size
    whole = int(number)
    if node.function == "ceil":
        return float(whole + 1 if number > whole else whole)
    return float(whole - 1 if number < whole else whole)


def trend(node: syntax.Trend, world: World) -> Plain:
    of = metric(node.metric, world, node.steps)
    lines: Lines = []
    for labels, line in of.lines:
        grown: Numbers = []
        for point in range(node.steps, len(line)):
            now, then = line[point], line[point - node.steps]
            change = None if now is None or then is None else now - then
            if change is not None and node.function == "rate":
                change = change / (60 * node.steps)
            grown.append(change)
        lines.append((labels, grown))
    return Plain(False, of.labelled, lines)


def choices(node: syntax.FirstPresent | syntax.IsPresent, world: World) -> Plain:
    found = []
    for choice in node.choices:
        found.append(evaluate(choice, world))
        if any(number is not None for _, line in found[-1].lines for number in line):
            if isinstance(node, syntax.IsPresent):
                return Plain(True, False, [((), [1.0])])
            return found[-1]
    return Plain(True, False, [((), [0.0])]) if isinstance(node, syntax.IsPresent) else found[0]


def aggregate_labels(node: syntax.AggregateLabels, of: Plain) -> Plain:
    if not of.lines:
        return of
    names = [name for name in node.names if name in dict(of.lines[0][0])]
    groups: dict[Labels, list[Numbers]] = {}
    for labels, line in of.lines:
        key = tuple((name, dict(labels).get(name, "")) for name in names)
        groups[key] = [*groups.get(key, []), line]
    lines: Lines = []
    for key, group in groups.items():
        merged: Numbers = []
        for point in range(len(group[0])):
            there = [line[point] for line in group if line[point] is not None]
            merged.append(aggregate(node.function, there) if there else None)
        lines.append((key, merged))
    return Plain(of.single, bool(names), lines)


def relabels(node: syntax.Relabels, of: Plain) -> Plain:
    lines: Lines = []
    for labels, line in of.lines:
        renamed = []
        for label in labels:
            for old, new in zip(node.target.values, node.replacement.values, strict=True):
                if label == (node.target.key, old):
                    label = node.replacement.key, new
                    break
            renamed.append(label)
        lines.append((tuple(renamed), line))
    return Plain(of.single, of.labelled, lines)


def in_order(node: syntax.SortValues | syntax.SortLabelValues, of: Plain) -> Plain:
    if isinstance(node, syntax.SortLabelValues):
        lines = list(of.lines)
        for name in reversed(node.names):
            lines.sort(key=lambda one: dict(one[0]).get(name, ""), reverse=not node.ascending)
        return Plain(of.single, of.labelled, lines)
    if not of.labelled:
        return of
    ranks = [(aggregate(node.by, line), (labels, line)) for labels, line in of.lines]
    ordered: list[tuple[float, tuple[Labels, Numbers]]] = []
    for number, line in ranks:
        if number is not None:
            at = len(ordered)
            while at and comes_first(number, ordered[at - 1][0], node.ascending):
                at -= 1
            ordered.insert(at, (number, line))
    empty = [line for number, line in ranks if number is None]
    return Plain(of.single, of.labelled, [*(line for _, line in ordered), *empty][: node.limit])


def comes_first(number: float, other: float, ascending: bool) -> bool:
    return before(number, other) if ascending else before(other, number)


def same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    if one != one or other != other:
        return one != one and other != other
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
