"""The gRPC server: a port that pipes share, each by paths of the wire table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from skyfarer.base.units import MIB
from skyfarer.satellite.contracts import Append
from skyfarer.satellite.notation import address, seconds
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.wire.relay import Relay
from skyfarer.wire.server import GrpcServer, ServerSettings
from skyfarer.wire.tls import ServerTls, ServerTlsSettings

EVERY_INTERFACE = "0.0.0.0"
UNFINISHED_BYTES_MAX = 16 * MIB  # of messages still arriving, over all connections: it is memory


@dataclass(frozen=True)
class AcceptLimitConfig:
    connection_count: int = 4000  # a further one is closed at once
    connections_per_source: int = 1000  # from one address; all agents behind a proxy are one


@dataclass(frozen=True)
class GrpcServerConfig:
    address: str = "127.0.0.1:11801"  # port 0 takes any free one
    max_recv_msg_size: int = 2 * MIB  # bytes of one message, also after inflating
    max_concurrent_streams: int = 1024  # calls open at once on one connection
    accept_limit: AcceptLimitConfig = AcceptLimitConfig()  # connections open at once
    idle_timeout: str = "10m"  # of a connection without a call; agents connect again unnoticed
    message_timeout: str = "1m"  # from the first byte of a message to its last
    max_relayed_calls: int = 256  # that wait for the upstream's answer
    # INVALID_ARGUMENT for what is no protobuf at its top level, else kept as it came
    refuse_malformed: bool = False
    tls_cert_file: Path | None = None  # with its key: agents must speak TLS
    tls_key_file: Path | None = None
    tls_client_ca_file: Path | None = None  # agents must show a certificate of this authority

    def __post_init__(self) -> None:
        address(self.address, EVERY_INTERFACE)
        limits = (
            self.max_recv_msg_size,
            self.max_concurrent_streams,
            self.max_relayed_calls,
            self.accept_limit.connection_count,
            self.accept_limit.connections_per_source,
        )
        if min(limits) < 1:
            raise ValueError("its limits must be above 0")
        if min(seconds(self.idle_timeout), seconds(self.message_timeout)) <= 0:
            raise ValueError("its timeouts must be above 0")
        if (self.tls_cert_file is None) != (self.tls_key_file is None):
            raise ValueError("tls_cert_file and tls_key_file go together")
        if self.tls_client_ca_file is not None and self.tls_cert_file is None:
            raise ValueError("tls_client_ca_file needs tls_cert_file")


class GrpcGatherer:
    """A `Server`. Calls are answered after their `Append` returned, so an answer means durable.

    Serves nothing before `serve`. `start` raises ConfigError when the files of TLS are no good.
    """

    config_type: ClassVar = GrpcServerConfig

    def __init__(self, config: GrpcServerConfig, registry: Registry, health: Health) -> None:
        self._config = config
        self._host, self._port = address(config.address, EVERY_INTERFACE)
        self._registry = registry
        self._health = health
        self._doors: Mapping[str, Append] = {}
        self._relay: Relay | None = None
        self._server: GrpcServer | None = None

    @property
    def address(self) -> tuple[str, int]:
        return self._host, self._server.port if self._server is not None else self._port

    def serve(self, doors: Mapping[str, Append], relay: Relay | None) -> None:
        self._doors, self._relay = doors, relay
        if self._server is not None:
            self._server.serve(doors, relay)

    async def start(self) -> None:
        tls = self._tls()
        server = GrpcServer(
            _settings(self._config),
            self._doors,
            self._relay,
            self._registry,
            self._health,
            tls.context() if tls is not None else None,
        )
        await server.start()
        self._server = server

    async def stop(self, timeout_s: float) -> None:
        if self._server is not None:
            await self._server.stop(timeout_s)

    def _tls(self) -> ServerTls | None:
        config = self._config
        if config.tls_cert_file is None or config.tls_key_file is None:
            return None
        return ServerTls(
            ServerTlsSettings(config.tls_cert_file, config.tls_key_file, config.tls_client_ca_file)
        )


def _settings(config: GrpcServerConfig) -> ServerSettings:
    host, port = address(config.address, EVERY_INTERFACE)
    return ServerSettings(
        host=host,
        port=port,
        message_bytes_max=config.max_recv_msg_size,
        unfinished_bytes_max=max(UNFINISHED_BYTES_MAX, config.max_recv_msg_size),
        streams_max=config.max_concurrent_streams,
        connections_max=config.accept_limit.connection_count,
        connections_per_source_max=config.accept_limit.connections_per_source,
        idle_timeout_s=seconds(config.idle_timeout),
        message_timeout_s=seconds(config.message_timeout),
        relayed_calls_max=config.max_relayed_calls,
        refuse_malformed=config.refuse_malformed,
    )
