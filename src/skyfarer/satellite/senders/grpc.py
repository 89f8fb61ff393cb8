"""The gRPC client: a batch becomes one call of the RPC that the wire table names for its kind.

The metadata numbers the records (`skyfarer-producer`, `skyfarer-first-sequence`): our OAP drops
what it already has, any other one ignores them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.satellite.contracts import Batch
from skyfarer.satellite.notation import address, seconds
from skyfarer.telemetry.metrics import Registry
from skyfarer.wire.client import ClientSettings, GrpcClient
from skyfarer.wire.rpc import FORWARD, Kind, Rpc, Streaming

PRODUCER_KEY = "skyfarer-producer"
FIRST_SEQUENCE_KEY = "skyfarer-first-sequence"
LOOPBACK = "127.0.0.1"

# RESOURCE_EXHAUSTED has two meanings. Overload passes; a message over the upstream's limit does
# not, and would stand in front of all others for ever. Ours, grpc-java's and grpc-go's words.
OVERSIZE = ("exceeds the limit of", "exceeds maximum size", "larger than max")


@dataclass(frozen=True)
class GrpcClientConfig:
    server_addr: str = "127.0.0.1:11800"
    authentication: str = ""  # sent as the metadata `authentication`
    timeout: str = "20s"  # of one call

    def __post_init__(self) -> None:
        address(self.server_addr, LOOPBACK)
        if seconds(self.timeout) <= 0:
            raise ValueError("timeout must be above 0")
        token = self.authentication
        if not (token.isascii() and token.strip() == token) or (token and not token.isprintable()):
            raise ValueError("authentication must be printable ASCII")


class GrpcForwarder:
    """A `Forwarder`. Not connected by `start`: the first `send` connects, and any later one."""

    config_type: ClassVar = GrpcClientConfig

    def __init__(
        self,
        config: GrpcClientConfig,
        producer: Callable[[], str],
        records_max: int,
        registry: Registry,
    ) -> None:
        self.address = address(config.server_addr, LOOPBACK)
        host, port = self.address
        self._client = GrpcClient(
            ClientSettings(host=host, port=port, call_timeout_s=seconds(config.timeout)), registry
        )
        self._producer = producer
        self._records_max = records_max
        token = config.authentication
        self._metadata = (("authentication", token),) if token else ()

    async def start(self) -> None:
        await self._client.start()

    async def stop(self, timeout_s: float) -> None:
        await self._client.stop(timeout_s)

    def batch_max(self, kind: int) -> int:
        rpc = _rpc_of(kind)
        unary = rpc is None or rpc.streaming is Streaming.UNARY
        return 1 if unary else self._records_max

    async def send(self, batch: Batch) -> None:
        rpc = _rpc_of(batch.kind)
        if rpc is None:
            raise PermanentError(f"no RPC carries records of kind {batch.kind}")
        metadata = (
            (PRODUCER_KEY, self._producer()),
            (FIRST_SEQUENCE_KEY, str(batch.first)),
            *self._metadata,
        )
        try:
            await self._client.send(rpc, batch.payloads, metadata)
        except RetryableError as failure:
            if any(words in str(failure) for words in OVERSIZE):
                raise PermanentError(str(failure)) from failure
            raise


def _rpc_of(kind: int) -> Rpc | None:
    try:
        return FORWARD.get(Kind(kind))
    except ValueError:
        return None
