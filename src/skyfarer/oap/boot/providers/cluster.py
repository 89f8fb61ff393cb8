"""cluster.standalone: a node that is alone; and what every provider of the module offers."""

from __future__ import annotations

import ipaddress
from typing import Final

from skyfarer.base.errors import ConfigError
from skyfarer.oap.boot.settings import CoreConfig, EtcdConfig, NoKeys, ZooKeeperConfig
from skyfarer.oap.cluster.standalone import Standalone
from skyfarer.oap.core.cluster import Coordinator
from skyfarer.oap.core.cluster import Node as Member
from skyfarer.oap.core.modules import Module, Offer, Provider
from skyfarer.wire.tls import ClientTlsSettings

WILDCARDS: Final = ("", "*")


class Announced:
    """Under which address other nodes know this one: `host` and `port` if they are given, else
    where core listens for agents. Where there are others it must be an address they can tell apart:
    nodes that all called themselves 0.0.0.0 would be one node."""

    def __init__(self, host: str = "", port: int = -1, alone: bool = False) -> None:
        self._host, self._port = host, port
        self._alone = alone

    def of(self, core: CoreConfig) -> Member:
        given = bool(self._host) and self._port > 0
        own = Member(self._host, self._port) if given else Member(core.gRPCHost, core.gRPCPort)
        if not self._alone and (_everywhere(own.host) or not own.port):
            raise ConfigError(
                f"this node cannot be known to others as {own.host}:{own.port}: set internalComHost"
                " and internalComPort (SW_CLUSTER_INTERNAL_COM_HOST, …_PORT) to where they reach it"
            )
        return own


CLUSTER = Module("cluster", (Coordinator, Announced))


def client_tls(config: ZooKeeperConfig | EtcdConfig, protocol: str) -> ClientTlsSettings | None:
    """How a coordinator is spoken to; None: as it is."""
    if not config.sslEnabled:
        return None
    return ClientTlsSettings(
        ca_file=config.sslTrustedCAsPath,
        certificate_file=config.sslCertChainPath,
        key_file=config.sslKeyPath,
        protocol=protocol,
    )


class StandaloneProvider(Provider):
    name = "standalone"
    module = CLUSTER
    config = NoKeys

    def __init__(self, config: NoKeys) -> None:
        self._coordinator = Standalone()

    def prepare(self, offer: Offer) -> None:
        offer(Coordinator, self._coordinator)
        offer(Announced, Announced(alone=True))


def _everywhere(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return host in WILDCARDS
