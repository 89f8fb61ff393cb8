"""cluster.zookeeper: nodes that know each other by ZooKeeper."""

from __future__ import annotations

from skyfarer.oap.boot.providers.cluster import CLUSTER, Announced, client_tls
from skyfarer.oap.boot.settings import ZooKeeperConfig
from skyfarer.oap.cluster.membership import Membership, RetrySettings
from skyfarer.oap.cluster.zookeeper import ZooKeeper, ZooKeeperSettings
from skyfarer.oap.core.cluster import Coordinator
from skyfarer.oap.core.modules import Offer, Provider


class ZooKeeperProvider(Provider):
    name = "zookeeper"
    module = CLUSTER
    config = ZooKeeperConfig

    def __init__(self, config: ZooKeeperConfig) -> None:
        self._config = config
        base_s = config.baseSleepTimeMs / 1000
        settings = ZooKeeperSettings(
            hosts=config.hostPort,
            namespace=config.namespace,
            expression=config.expression if config.enableACL else "",
            retry_base_s=base_s,
            tls=client_tls(config, protocol=""),
        )
        self._coordinator = Membership(
            ZooKeeper(settings), RetrySettings(base_s, attempts_max=config.maxRetries + 1)
        )

    def prepare(self, offer: Offer) -> None:
        offer(Coordinator, self._coordinator)
        offer(Announced, Announced(self._config.internalComHost, self._config.internalComPort))
