"""Lists (top_n, top_n_of) and what is reckoned with them, the plain way, as `plain` has the rest:
an entry at a time, and no sorting but by looking for the next."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from golden.mqe.plain import Numbers, before, changed, reckon
from skyfarer.oap.query.expressions import syntax

Who: TypeAlias = tuple[str, str]
"""A service, and an endpoint of it or nothing."""
Entries: TypeAlias = list[tuple[Who, float]]


@dataclass(frozen=True)
class Town:
    """Metric → whose values, one a point; service → its layers; ids by which equals are told."""

    values: Mapping[str, Mapping[Who, Numbers]]
    layers: Mapping[str, tuple[str, ...]]
    ids: Mapping[Who, str]


def entries(node: syntax.Expression, town: Town, of: str | None) -> Entries:
    """Of all services, or of one."""
    if isinstance(node, syntax.TopN):
        return first(node, town, of)
    if isinstance(node, syntax.TopNOf):
        together = [entry for one in node.lists for entry in first(one, town, of)]
        return taken(together, node.limit, node.ascending)
    if isinstance(node, syntax.Mathematical):
        found = entries(node.of, town, of)
        return [(who, changed(node, number) or 0.0) for who, number in found]
    assert isinstance(node, syntax.Binary)
    if isinstance(node.right, syntax.Number):
        right = node.right.value
        found = entries(node.left, town, of)
        return [(who, reckon(node.operator, number, right)) for who, number in found]
    assert isinstance(node.left, syntax.Number)
    left = node.left.value
    found = entries(node.right, town, of)
    return [(who, reckon(node.operator, left, number)) for who, number in found]


def first(node: syntax.TopN, town: Town, of: str | None) -> Entries:
    found: Entries = []
    for who in sorted(town.values[node.metric.name], key=lambda one: town.ids[one]):
        there = [n for n in town.values[node.metric.name][who] if n is not None]
        fits = all((one.value in town.layers[who[0]]) == one.equal for one in node.attributes)
        if there and fits and of in (None, who[0]):
            found.append((who, float(math.trunc(sum(there) / len(there)))))
    return taken(found, node.limit, node.ascending)


def taken(among: Entries, limit: int, ascending: bool) -> Entries:
    """The next is the first of those that no other comes before."""
    left, found = list(among), list[tuple[Who, float]]()
    while left and len(found) < limit:
        best = 0
        for at, (_, number) in enumerate(left):
            least = left[best][1]
            if before(number, least) if ascending else before(least, number):
                best = at
        found.append(left.pop(best))
    return found
