"""The coordinator contract: which OAP nodes there are.

Coordinators return nodes in whatever order their registry has; who decides something by the list
puts it `in_order` first, since a list that is ordered differently on two nodes makes both, or
neither, the first (the bug that kept data for four years).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol


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


class Coordinator(Protocol):
    """Any thread. `start` connects, or raises in one sentence; `stop` deregisters, and is safe
    twice and unstarted."""

    def start(self) -> None: ...

    def stop(self, timeout_s: float) -> None: ...

    def register(self, node: Node) -> None:
        """Known to others until `stop` or death; kept so by itself through lost sessions and a
        registry that was restarted or emptied. A second call is of the same node or an error."""

    def nodes(self) -> list[Node]:
        """As last heard, in any order, and possibly stale, repeated or empty: never blocks. Exactly
        the own node is `is_self`, when it is among them."""

    def watch(self, told: Callable[[list[Node]], None]) -> None:
        """Calls `told` with the whole list after each change, on a thread of the coordinator."""


def in_order(nodes: Iterable[Node]) -> list[Node]:
    """Each node once, the same order on every node: by plain comparison of `name`.

    One without a host is none: a pod that has no address yet would come first everywhere.
    """
    distinct: dict[str, Node] = {}
    for node in nodes:
        if node.host and (node.name not in distinct or node.is_self):
            distinct[node.name] = node
    return [distinct[name] for name in sorted(distinct)]
