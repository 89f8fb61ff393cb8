"""How much an expression reads, from its tree alone."""

from __future__ import annotations

from dataclasses import dataclass

from skyfarer.oap.query.expressions import syntax


@dataclass(frozen=True)
class Reads:
    """`series` are of one entity each; `lists` compare all entities that a metric has."""

    series: int = 0
    lists: int = 0

    def __add__(self, other: Reads) -> Reads:
        return Reads(self.series + other.series, self.lists + other.lists)


def reads_of(node: syntax.Expression) -> Reads:
    match node:
        case syntax.Number():
            return Reads()
        case syntax.Metric() | syntax.Trend() | syntax.Baseline():
            return Reads(series=1)
        case syntax.TopN():
            return Reads(lists=1)
        case syntax.TopNOf():
            return Reads(lists=len(node.lists))
        case syntax.Binary():
            return reads_of(node.left) + reads_of(node.right)
        case syntax.FirstPresent() | syntax.IsPresent():
            return sum(map(reads_of, node.choices), Reads())
        case _:
            return reads_of(node.of)
