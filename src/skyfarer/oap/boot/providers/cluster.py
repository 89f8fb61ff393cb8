"""cluster.standalone: a node that is alone."""

from __future__ import annotations

from skyfarer.oap.boot.settings import NoKeys
from skyfarer.oap.core.modules import Module, Provider

CLUSTER = Module("cluster")


class StandaloneProvider(Provider):
    name = "standalone"
    module = CLUSTER
    config = NoKeys

    def __init__(self, config: NoKeys) -> None:
        self._config = config
