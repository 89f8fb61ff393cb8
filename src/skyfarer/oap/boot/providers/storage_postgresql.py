"""storage.postgresql: a database that several nodes may share."""

from __future__ import annotations

from skyfarer.oap.boot.providers.core import Node
from skyfarer.oap.boot.providers.storing import STORAGE, offer_all, start_by_mode
from skyfarer.oap.boot.settings import PostgreSQLConfig
from skyfarer.oap.core.expiry import RetentionOverride
from skyfarer.oap.core.modules import ModuleHolder, Offer, Provider
from skyfarer.oap.storage.postgresql import PostgresStorage


class PostgreSQLProvider(Provider):
    name = "postgresql"
    module = STORAGE
    config = PostgreSQLConfig
    requires = ("core",)
    lacks = PostgresStorage.lacks

    def __init__(self, config: PostgreSQLConfig) -> None:
        self._config = config
        self._storage = PostgresStorage(
            config.conninfo(),
            pool_size=config.asyncBatchPersistentPoolSize,
            metadata_rows_max=config.metadataQueryMaxSize,
        )

    def prepare(self, offer: Offer) -> None:
        days = self._config.recordDataTTL, self._config.metricsDataTTL
        offer_all(offer, self._storage, RetentionOverride(*days))

    def install(self, modules: ModuleHolder) -> None:
        node = modules.find("core").service(Node)
        self._storage.start(node.zone)

    def start(self, modules: ModuleHolder) -> None:
        node = modules.find("core").service(Node)
        start_by_mode(node, lambda install: self._storage.start(node.zone, install))

    def stop(self, timeout_s: float) -> None:
        self._storage.stop(timeout_s)
