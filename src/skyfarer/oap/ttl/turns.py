"""Whose turn it is to delete: the first of the nodes, in an order that is the same everywhere.

The original took the first of a list as it came, and each node had another one: for four years it
could be that none was the first of its own list. To sort it is most of the cure. Two things more:

- A node deletes only if it finds itself in the list. The original deletes when the list is empty,
  which every node's is while the registry is away.
- A list may stay wrong: the first node is dead and still listed, or is alive and not in its own.
  So any other steps in when nothing has gone for two periods: in one alone the first may not have
  had its run yet. Of several that then believe it is their turn the lease of the storage takes one.
  Whoever had the lease last goes on, in every period, until another has taken it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from skyfarer.oap.core.cluster import Node, in_order

STEPS_IN_PERIODS: Final = 2


def not_my_turn(nodes: Iterable[Node], periods_overdue: float, had_lease_last: bool) -> str:
    """Why this node may not delete, in a sentence; empty when it may.

    `periods_overdue`: for how many periods nothing has gone that should have.
    """
    ordered = in_order(nodes)
    if not ordered:
        return "the list of nodes is empty, and this node cannot tell whether it is one of them"
    place = next((place for place, node in enumerate(ordered) if node.is_self), None)
    if place is None:
        return f"this node is not among the {len(ordered)} that are listed"
    if place == 0 or had_lease_last or periods_overdue >= STEPS_IN_PERIODS:
        return ""
    return f"the first node is {ordered[0].name}, and this one is number {place + 1} of the list"
