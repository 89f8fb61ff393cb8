"""The keeper of expired data, on every node: no file names this module, since its keys are core's.

A node whose keeper is turned off looks and shows what it sees; it can be asked what has expired,
and told to delete it.
"""

from __future__ import annotations

from uuid import uuid4

from skyfarer.oap.admin.ttl import TtlDesk
from skyfarer.oap.boot.providers.core import Node
from skyfarer.oap.boot.settings import CoreConfig
from skyfarer.oap.core.cluster import Coordinator
from skyfarer.oap.core.expiry import DayTables, Retention, RetentionOverride
from skyfarer.oap.core.modules import Module, ModuleHolder, Offer, Provider
from skyfarer.oap.ttl.keeper import Keeper, KeeperSettings
from skyfarer.oap.ttl.sight import Sight

TTL = Module("ttl", (TtlDesk,))
MINUTE_S = 60.0


class TtlProvider(Provider):
    name = "default"
    module = TTL
    config = CoreConfig
    requires = ("cluster", "core", "storage")

    def __init__(self, config: CoreConfig, minute_s: float = MINUTE_S) -> None:
        """`minute_s`: what the minutes of the configuration last."""
        self._config = config
        self._minute_s = minute_s
        self._desk = TtlDesk()
        self._keeper: Keeper | None = None

    def prepare(self, offer: Offer) -> None:
        offer(TtlDesk, self._desk)

    def start(self, modules: ModuleHolder) -> None:
        node, storage = modules.find("core").service(Node), modules.find("storage")
        retention = retention_of(node, storage.service(RetentionOverride))
        period_s = self._config.dataKeeperExecutePeriod * self._minute_s
        holder = f"{self._config.gRPCHost}_{self._config.gRPCPort}#{uuid4().hex[:12]}"
        self._keeper = Keeper(
            KeeperSettings(retention, period_s, holder, self._config.enableDataKeeperExecutor),
            storage.service(DayTables),
            modules.find("cluster").service(Coordinator),
            Sight(retention, period_s, node.registry, node.health, node.clock),
            node.registry,
            node.clock,
        )
        self._desk.open(self._keeper)

    def after_start(self) -> None:
        if self._keeper is not None:
            self._keeper.start()

    def stop(self, timeout_s: float) -> None:
        if self._keeper is not None:
            self._keeper.stop(timeout_s)


def retention_of(node: Node, override: RetentionOverride) -> Retention:
    """Core's, unless the storage has its own."""
    core = Retention(node.config.recordDataTTL, node.config.metricsDataTTL, node.zone)
    return override.over(core)
