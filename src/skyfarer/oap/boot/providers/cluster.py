"""cluster.standalone: a node that is alone."""

from __future__ import annotations

from skyfarer.oap.boot.settings import NoKeys
from skyfarer.oap.cluster.standalone import Standalone
from skyfarer.oap.core.cluster import Coordinator
from skyfarer.oap.core.modules import Module, ModuleHolder, Offer, Provider

CLUSTER = Module("cluster", (Coordinator,))


class StandaloneProvider(Provider):
    name = "standalone"
    module = CLUSTER
    config = NoKeys

    def __init__(self, config: NoKeys) -> None:
        self._coordinator = Standalone()

    def prepare(self, offer: Offer) -> None:
        offer(Coordinator, self._coordinator)

    def start(self, modules: ModuleHolder) -> None:
        self._coordinator.start()

    def stop(self, timeout_s: float) -> None:
        self._coordinator.stop(timeout_s)
