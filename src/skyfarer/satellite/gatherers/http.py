"""The HTTP server: a port that pipes share, each by paths of the table of endpoints.

Bounded: the header (HEADER_BYTES_MAX), a body as it arrives and as it inflates, all bodies that are
not kept yet, connections in all and from one address, and every wait (`exchange`).
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from skyfarer.base.units import KIB, MIB
from skyfarer.satellite.contracts import Append
from skyfarer.satellite.gatherers.body import Held
from skyfarer.satellite.gatherers.desk import Desk
from skyfarer.satellite.gatherers.exchange import Exchange, HttpSettings
from skyfarer.satellite.notation import address, seconds
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.telemetry.table import RECEIVER_CONNECTIONS, RECEIVER_CONNECTIONS_REFUSED
from skyfarer.wire.http2 import keep_alive
from skyfarer.wire.receiver import Refusal
from skyfarer.wire.relay import Relay
from skyfarer.wire.tls import HTTP_1, ServerTls, ServerTlsSettings

EVERY_INTERFACE: Final = "0.0.0.0"
HELD_BYTES_MAX: Final = 16 * MIB  # of bodies not kept yet, over all connections: it is memory
ACCEPTED_AT_ONCE: Final = 128
BUFFER_BYTES: Final = 64 * KIB
OUTPUT_BYTES: Final = 32 * KIB  # of answers a client does not read, in the kernel: they are short
HANDSHAKE_TIMEOUT_S: Final = 5.0


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
        self.settings = _settings(config)
        self._tls = _tls(config)
        self.registry = registry
        self.desk = Desk(registry)
        self.held = Held(self.settings.held_bytes_max)
        self.stopping = False
        self._port = self.settings.port
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.Task[None], Exchange] = {}
        self._sources: Counter[str] = Counter()

    @property
    def address(self) -> tuple[str, int]:
        return self.settings.host, self._port

    def serve(self, doors: Mapping[str, Append], relay: Relay | None) -> None:
        self.desk.replace(doors)

    async def start(self) -> None:
        self._server = await asyncio.start_server(
            self._accept,
            self.settings.host,
            self.settings.port,
            limit=BUFFER_BYTES,
            backlog=ACCEPTED_AT_ONCE,
            ssl=self._tls.context() if self._tls is not None else None,
            ssl_handshake_timeout=HANDSHAKE_TIMEOUT_S if self._tls is not None else None,
        )
        for listening in self._server.sockets:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, OUTPUT_BYTES)
        self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self, timeout_s: float) -> None:
        server, self._server = self._server, None
        if server is None:
            return
        self.stopping = True
        server.close()
        for exchange in self._open.values():
            if not exchange.busy:
                exchange.abort()
        if self._open:
            await asyncio.wait(self._open, timeout=timeout_s)
        late = list(self._open)
        for task in late:
            self._open[task].abort()
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    def count_refused(self, reason: Refusal) -> None:
        self.registry.inc(RECEIVER_CONNECTIONS_REFUSED, reason=reason.value)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        source = str((writer.get_extra_info("peername") or ("",))[0])
        refusal = self._refusal(source)
        if refusal is not None:
            self.count_refused(refusal)
            writer.transport.abort()
            return
        keep_alive(writer.transport)
        self._sources[source] += 1
        self.registry.inc(RECEIVER_CONNECTIONS)
        exchange = Exchange(self, reader, writer)
        task = asyncio.ensure_future(exchange.run())
        self._open[task] = exchange
        task.add_done_callback(lambda task: self._release(task, source))

    def _refusal(self, source: str) -> Refusal | None:
        if self.stopping:
            return Refusal.STOPPING
        if len(self._open) >= self.settings.connections_max:
            return Refusal.TOO_MANY
        if self._sources[source] >= self.settings.connections_per_source_max:
            return Refusal.TOO_MANY_FROM_SOURCE
        return None

    def _release(self, task: asyncio.Task[None], source: str) -> None:
        del self._open[task]
        self._sources[source] -= 1
        if not self._sources[source]:
            del self._sources[source]
        self.registry.inc(RECEIVER_CONNECTIONS, -1)


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
