"""This node as one of several: it joins when it is whole, and says how the list of them looks."""

from __future__ import annotations

import logging

from skyfarer.oap.cluster.standalone import KIND as STANDALONE
from skyfarer.oap.core.cluster import Coordinator, Node, ailment
from skyfarer.telemetry import table
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry

log = logging.getLogger(__name__)


class Joining:
    """`own` is None for a node that others are not to know. A part of the health is `cluster_…`
    with the kind of coordinator, judged by the list as it is when health is asked for; a node that
    is alone has none."""

    def __init__(
        self, coordinator: Coordinator, own: Node | None, health: Health, registry: Registry
    ) -> None:
        self._coordinator = coordinator
        self._own = own
        self._health = health
        registry.observe_with(table.CLUSTER_NODES, lambda: len(coordinator.nodes()))
        registry.observe_with(table.CLUSTER_RENEWALS, lambda: coordinator.standing().renewals)
        registry.observe_with(
            table.CLUSTER_REACHABLE, lambda: int(coordinator.standing().reachable)
        )

    def start(self) -> None:
        """Connects; others are seen from now on."""
        self._coordinator.start()

    def join(self) -> None:
        """Seen by others from now on."""
        if self._own is not None:
            self._coordinator.register(self._own)
            log.info("this node is known to others as %s:%s", self._own.host, self._own.port)
        kind = self._coordinator.standing().kind
        if kind != STANDALONE:
            self._health.ask(f"cluster_{kind}", self._ailment)

    def stop(self, timeout_s: float) -> None:
        self._coordinator.stop(timeout_s)

    def _ailment(self) -> str:
        return ailment(self._coordinator.nodes(), registers=self._own is not None)
