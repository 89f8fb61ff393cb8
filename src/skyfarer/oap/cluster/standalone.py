"""A node that is alone: its own registry."""

from __future__ import annotations

from collections.abc import Callable

from skyfarer.oap.core.cluster import Node


class Standalone:
    """Watchers are called where `register` or `stop` is: there is no other thread."""

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._watchers: list[Callable[[list[Node]], None]] = []

    def start(self) -> None:
        return

    def stop(self, timeout_s: float) -> None:
        self._become([])

    def register(self, node: Node) -> None:
        self._become([Node(node.host, node.port, is_self=True)])

    def nodes(self) -> list[Node]:
        return list(self._nodes)

    def watch(self, told: Callable[[list[Node]], None]) -> None:
        self._watchers.append(told)

    def _become(self, nodes: list[Node]) -> None:
        self._nodes = nodes
        for told in self._watchers:
            told(list(nodes))
