"""What agents ask the OAP: a service of the receivers, used by whoever has the answers."""

from __future__ import annotations

from skyfarer.oap.boot.providers.core import Node
from skyfarer.oap.core.inventory import InventoryReader
from skyfarer.oap.core.tasks import TaskReader
from skyfarer.oap.receivers.answering import Answering
from skyfarer.oap.receivers.answers.desk import Desk
from skyfarer.oap.receivers.answers.naming import NameLengths


class Questions:
    """Opened when the receiver's ports are taken. Before `answer` nobody answers: UNAVAILABLE."""

    def __init__(self) -> None:
        self._answering: Answering | None = None

    def open(self, node: Node, hold_back_s: float) -> Answering:
        """For the receiver's supervisor, which starts and stops it."""
        self._answering = Answering(node.registry, hold_back_s, node.clock)
        return self._answering

    def answer(self, node: Node, inventories: InventoryReader, tasks: TaskReader) -> None:
        """From now on, out of these."""
        assert self._answering is not None
        lengths = NameLengths(
            node.config.serviceNameMaxLength,
            node.config.instanceNameMaxLength,
            node.config.endpointNameMaxLength,
        )
        self._answering.open(Desk(inventories, tasks, lengths, node.clock))

    def applied(self) -> None:
        """Storage has changed: who waits for an id may have it now. Any thread; does not block."""
        assert self._answering is not None
        self._answering.applied()
