"""storage.duckdb: the embedded storage."""

from __future__ import annotations

from skyfarer.oap.boot.providers.core import Node
from skyfarer.oap.boot.settings import DuckDBConfig
from skyfarer.oap.core.expiry import DayTables, RetentionOverride
from skyfarer.oap.core.inventory import InventoryReader
from skyfarer.oap.core.modules import Module, ModuleHolder, Offer, Provider
from skyfarer.oap.core.parked import ParkedRecords
from skyfarer.oap.core.storage import Reader, Writer
from skyfarer.oap.core.tasks import TaskTables
from skyfarer.oap.core.templates import TemplateTables
from skyfarer.oap.storage.embedded import EmbeddedStorage

STORAGE = Module(
    "storage",
    (
        *(Writer, Reader, InventoryReader, ParkedRecords, TaskTables, TemplateTables),
        *(DayTables, RetentionOverride),
    ),
)


class DuckDBProvider(Provider):
    name = "duckdb"
    module = STORAGE
    config = DuckDBConfig
    requires = ("core",)

    def __init__(self, config: DuckDBConfig) -> None:
        self._config = config
        self._storage = EmbeddedStorage(config.memoryLimit)

    def prepare(self, offer: Offer) -> None:
        offer(Writer, self._storage)
        offer(Reader, self._storage)
        offer(InventoryReader, self._storage)
        offer(ParkedRecords, self._storage)
        offer(TaskTables, self._storage)
        offer(TemplateTables, self._storage)
        offer(DayTables, self._storage)
        days = self._config.recordDataTTL, self._config.metricsDataTTL
        offer(RetentionOverride, RetentionOverride(*days))

    def start(self, modules: ModuleHolder) -> None:
        node = modules.find("core").service(Node)
        path = self._config.path or node.data_directory / "storage" / "skyfarer.duckdb"
        self._storage.start(path, node.zone)

    def stop(self, timeout_s: float) -> None:
        self._storage.stop(timeout_s)
