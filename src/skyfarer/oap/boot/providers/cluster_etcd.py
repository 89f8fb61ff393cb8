"""cluster.etcd: nodes that know each other by etcd."""

from __future__ import annotations

from skyfarer.oap.boot.providers.cluster import CLUSTER, Announced, client_tls
from skyfarer.oap.boot.settings import EtcdConfig
from skyfarer.oap.cluster.etcd import EtcdRegistrar, EtcdSettings
from skyfarer.oap.cluster.membership import Membership
from skyfarer.oap.core.cluster import Coordinator
from skyfarer.oap.core.modules import Offer, Provider
from skyfarer.wire.tls import HTTP_2


class EtcdProvider(Provider):
    name = "etcd"
    module = CLUSTER
    config = EtcdConfig

    def __init__(self, config: EtcdConfig) -> None:
        self._config = config
        settings = EtcdSettings(
            endpoints=config.endpoints,
            namespace=config.namespace,
            service_name=config.serviceName,
            user=config.user if config.authentication else "",
            password=config.password if config.authentication else "",
            tls=client_tls(config, HTTP_2),
        )
        self._coordinator = Membership(EtcdRegistrar(settings))

    def prepare(self, offer: Offer) -> None:
        offer(Coordinator, self._coordinator)
        offer(Announced, Announced(self._config.internalComHost, self._config.internalComPort))
