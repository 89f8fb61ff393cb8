"""storage.duckdb: the embedded storage."""

from __future__ import annotations

from pathlib import Path

from skyfarer.oap.boot.providers.core import Node
from skyfarer.oap.boot.providers.storing import STORAGE, offer_all, start_by_mode
from skyfarer.oap.boot.settings import DuckDBConfig
from skyfarer.oap.core.expiry import RetentionOverride
from skyfarer.oap.core.modules import ModuleHolder, Offer, Provider
from skyfarer.oap.storage.embedded import EmbeddedStorage


class DuckDBProvider(Provider):
    name = "duckdb"
    module = STORAGE
    config = DuckDBConfig
    requires = ("core",)
    lacks = EmbeddedStorage.lacks

    def __init__(self, config: DuckDBConfig) -> None:
        self._config = config
        self._storage = EmbeddedStorage(config.memoryLimit)

    def prepare(self, offer: Offer) -> None:
        days = self._config.recordDataTTL, self._config.metricsDataTTL
        offer_all(offer, self._storage, RetentionOverride(*days))

    def install(self, modules: ModuleHolder) -> None:
        node = modules.find("core").service(Node)
        self._storage.start(self._path(node), node.zone)

    def start(self, modules: ModuleHolder) -> None:
        node = modules.find("core").service(Node)
        start_by_mode(
            node, lambda install: self._storage.start(self._path(node), node.zone, install)
        )

    def stop(self, timeout_s: float) -> None:
        self._storage.stop(timeout_s)

    def _path(self, node: Node) -> Path:
        return self._config.path or node.data_directory / "storage" / "skyfarer.duckdb"
