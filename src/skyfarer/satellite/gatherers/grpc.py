"""The gRPC server: every RPC of the wire table, payloads kept as they came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.base.units import MIB
from skyfarer.satellite.contracts import Append
from skyfarer.satellite.notation import address
from skyfarer.telemetry import table
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.wire.server import GrpcServer, ServerSettings

EVERY_INTERFACE = "0.0.0.0"
UNFINISHED_BYTES_MAX = 16 * MIB  # of messages still arriving, over all connections: it is memory


@dataclass(frozen=True)
class AcceptLimitConfig:
    connection_count: int = 4000


@dataclass(frozen=True)
class GrpcServerConfig:
    address: str = "127.0.0.1:11801"  # port 0 takes any free one
    max_recv_msg_size: int = 2 * MIB
    max_concurrent_streams: int = 1024
    accept_limit: AcceptLimitConfig = AcceptLimitConfig()

    def __post_init__(self) -> None:
        address(self.address, EVERY_INTERFACE)
        limits = (
            self.max_recv_msg_size,
            self.max_concurrent_streams,
            self.accept_limit.connection_count,
        )
        if min(limits) < 1:
            raise ValueError("its limits must be above 0")


class GrpcGatherer:
    """A `Gatherer`. Calls are answered after `append` returned, so an answer means durable."""

    config_type: ClassVar = GrpcServerConfig

    def __init__(
        self, config: GrpcServerConfig, append: Append, registry: Registry, health: Health
    ) -> None:
        self._append = append
        self._registry = registry
        self._host, self._port = address(config.address, EVERY_INTERFACE)
        settings = ServerSettings(
            host=self._host,
            port=self._port,
            message_bytes_max=config.max_recv_msg_size,
            unfinished_bytes_max=max(UNFINISHED_BYTES_MAX, config.max_recv_msg_size),
            streams_max=config.max_concurrent_streams,
            connections_max=config.accept_limit.connection_count,
            reuse_port=False,
        )
        self._server = GrpcServer(settings, self._keep, registry, health)
        self._started = False

    @property
    def address(self) -> tuple[str, int]:
        return self._host, self._server.port if self._started else self._port

    async def start(self) -> None:
        await self._server.start()
        self._started = True

    async def stop(self, timeout_s: float) -> None:
        await self._server.stop(timeout_s)

    def _keep(self, kind: int, payloads: Sequence[bytes]) -> object:
        try:
            return self._append(kind, payloads)
        except RetryableError:
            self._registry.inc(table.QUEUE_REJECTED, len(payloads), reason="full")
            raise
        except PermanentError:
            self._registry.inc(table.QUEUE_REJECTED, len(payloads), reason="too_large")
            raise
