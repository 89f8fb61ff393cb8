"""The HTTP server: a port that pipes share, each by paths of the table of endpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from skyfarer.base.units import MIB
from skyfarer.satellite.contracts import Append
from skyfarer.satellite.notation import address, seconds
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.wire.http.server import HttpServer, HttpSettings
from skyfarer.wire.relay import Relay
from skyfarer.wire.tls import HTTP_1, ServerTls, ServerTlsSettings

EVERY_INTERFACE: Final = "0.0.0.0"
HELD_BYTES_MAX: Final = 16 * MIB  # of bodies not kept yet, over all connections: it is memory


@dataclass(frozen=True)
class HttpAcceptLimitConfig:
    connection_count: int = 1000
    connections_per_source: int = 500  # from one address; all clients behind a proxy are one


@dataclass(frozen=True)
class HttpServerConfig:
    address: str = "127.0.0.1:12801"  # port 0 takes any free one
    max_body_size: int = 2 * MIB  # of a request, also after inflating
    accept_limit: HttpAcceptLimitConfig = HttpAcceptLimitConfig()
    idle_timeout: str = "5m"  # of a connection without a request; exporters pause for a minute
    header_timeout: str = "10s"  # from the first byte of a request to the end of its header
    body_timeout: str = "1m"  # from there to its last byte
    tls_cert_file: Path | None = None  # with its key: clients must speak TLS
    tls_key_file: Path | None = None
    tls_client_ca_file: Path | None = None  # clients must show a certificate of this authority

    def __post_init__(self) -> None:
        address(self.address, EVERY_INTERFACE)
        limit = self.accept_limit
        if min(self.max_body_size, limit.connection_count, limit.connections_per_source) < 1:
            raise ValueError("its limits must be above 0")
        timeouts = (self.idle_timeout, self.header_timeout, self.body_timeout)
        if min(map(seconds, timeouts)) <= 0:
            raise ValueError("its timeouts must be above 0")
        if (self.tls_cert_file is None) != (self.tls_key_file is None):
            raise ValueError("tls_cert_file and tls_key_file go together")
        if self.tls_client_ca_file is not None and self.tls_cert_file is None:
            raise ValueError("tls_client_ca_file needs tls_cert_file")


class HttpGatherer:
    """A `Server`. A request is answered 200 after its `Append` returned, so 200 means durable.

    Serves nothing before `serve`. It asks no upstream: the relay is not used. `start` raises
    ConfigError when the files of TLS are no good.
    """

    config_type: ClassVar = HttpServerConfig

    def __init__(self, config: HttpServerConfig, registry: Registry, health: Health) -> None:
        tls = _tls(config)
        self._server = HttpServer(
            _settings(config), registry, tls.context if tls is not None else None
        )

    @property
    def address(self) -> tuple[str, int]:
        return self._server.settings.host, self._server.port

    def serve(self, doors: Mapping[str, Append], relay: Relay | None) -> None:
        self._server.serve(doors)

    async def start(self) -> None:
        await self._server.start()

    async def stop(self, timeout_s: float) -> None:
        await self._server.stop(timeout_s)


def _settings(config: HttpServerConfig) -> HttpSettings:
    host, port = address(config.address, EVERY_INTERFACE)
    return HttpSettings(
        host=host,
        port=port,
        body_bytes_max=config.max_body_size,
        held_bytes_max=max(HELD_BYTES_MAX, config.max_body_size),
        connections_max=config.accept_limit.connection_count,
        connections_per_source_max=config.accept_limit.connections_per_source,
        idle_timeout_s=seconds(config.idle_timeout),
        header_timeout_s=seconds(config.header_timeout),
        body_timeout_s=seconds(config.body_timeout),
    )


def _tls(config: HttpServerConfig) -> ServerTls | None:
    certificate, key = config.tls_cert_file, config.tls_key_file
    if certificate is None or key is None:
        return None
    return ServerTls(ServerTlsSettings(certificate, key, config.tls_client_ca_file, HTTP_1))
