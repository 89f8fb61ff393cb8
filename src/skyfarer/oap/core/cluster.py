"""The coordinator contract: which OAP nodes there are.

Coordinators return nodes in whatever order their registry has; who decides something by the list
puts it `in_order` first, since a list that is ordered differently on two nodes makes both, or
neither, the first (the bug that kept data for four years).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from skyfarer.base.lifecycle import Component

LOCAL_HOSTS: Final = frozenset({"127.0.0.1", "localhost"})


@dataclass(frozen=True)
class Node:
    """Where other nodes reach one. Two nodes are the same when host and port are."""

    host: str
    port: int
    is_self: bool = field(default=False, compare=False)

    @property
    def name(self) -> str:
        """As SkyWalking writes and sorts it."""
        return f"{self.host}_{self.port}"


@dataclass(frozen=True)
class Standing:
    """How a coordinator is doing. `trouble` is the sentence of the last failure, empty after a
    success; `renewals` counts registrations made anew because the registry no longer had one."""

    kind: str
    reachable: bool = True
    renewals: int = 0
    trouble: str = ""


class Coordinator(Component, Protocol):
    """Any thread. `start` connects, or raises in one sentence; `stop` deregisters, and is safe
    twice and unstarted."""

    def register(self, node: Node) -> None:
        """Known to others until `stop` or death; kept so by itself through lost sessions and a
        registry that was restarted or emptied. Blocks until it is so for the first time, or raises
        in one sentence. A second call is of the same node or an error."""

    def nodes(self) -> list[Node]:
        """As last heard, in any order, and possibly stale, repeated or empty: never blocks. The own
        node is among them as `is_self`, once, only while its registration is known to hold: not
        before, and not after a pause or a partition that others may have taken for its death. A
        node equal to it that is not `is_self` is another one under its address."""

    def watch(self, told: Callable[[list[Node]], None]) -> None:
        """Calls `told` with the whole list after each change, on a thread of the coordinator."""

    def standing(self) -> Standing:
        """Never blocks."""


def in_order(nodes: Iterable[Node]) -> list[Node]:
    """Each node once, the same order on every node: by plain comparison of `name`.

    One without a host is none: a pod that has no address yet would come first everywhere.
    """
    distinct: dict[str, Node] = {}
    for node in nodes:
        if node.host and (node.name not in distinct or node.is_self):
            distinct[node.name] = node
    return [distinct[name] for name in sorted(distinct)]


def ailment(nodes: Sequence[Node], registers: bool) -> str:
    """What is wrong with a list of a cluster, in a sentence; empty when nothing is. `registers` is
    whether this node must be in it."""
    if not nodes:
        return "no node is registered"
    if registers and not any(node.is_self for node in nodes):
        return "this node is not, or no longer, registered"
    own = [node for node in nodes if node.is_self]
    if own and nodes.count(own[0]) > 1:
        return f"{own[0].name} is registered by another node, too: set internalComHost"
    local = sorted({node.name for node in nodes if node.host in LOCAL_HOSTS})
    if len(nodes) > 1 and local:
        return f"{local[0]} is registered, which other machines cannot reach: set internalComHost"
    return ""
