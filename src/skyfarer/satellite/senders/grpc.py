"""The gRPC client: batches to one OAP or to several, by the RPC that the wire table names.

Batches go round the upstreams that answer; meters stay with one of them. What one upstream does
not take is tried at the next, and fails only when none takes it. `calls` says how a batch is cut,
`numbering` how a resend is recognised, `upstreams` who is left out and for how long.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import ClassVar, Final

from skyfarer.base.clock import Clock, SystemClock
from skyfarer.base.errors import PermanentError, RetryableError, SkyfarerError
from skyfarer.satellite.contracts import Batch
from skyfarer.satellite.notation import seconds
from skyfarer.satellite.senders.answers import meaning
from skyfarer.satellite.senders.calls import Piece, joined, pieces, rpc_of
from skyfarer.satellite.senders.finding import Endpoint, listed, resolved
from skyfarer.satellite.senders.grpc_config import GrpcClientConfig, tls_of
from skyfarer.satellite.senders.numbering import numbered
from skyfarer.satellite.senders.relaying import UpstreamRelay
from skyfarer.satellite.senders.taken import Taken
from skyfarer.satellite.senders.token import Token
from skyfarer.satellite.senders.upstreams import Upstream, Upstreams
from skyfarer.telemetry.metrics import Registry
from skyfarer.wire.client import ClientSettings, GrpcClient
from skyfarer.wire.rpc import Streaming

log = logging.getLogger(__name__)

TOKEN_KEY: Final = "authentication"
UNARY_CALLS_MAX: Final = 16  # records in a batch when each needs a call of its own
CALLS_MAX: Final = 16  # open at once


class GrpcForwarder:
    """A `Forwarder`. Not connected by `start`: the first `send` connects, and any later one."""

    config_type: ClassVar = GrpcClientConfig

    def __init__(
        self,
        config: GrpcClientConfig,
        producer: Callable[[], str],
        records_max: int,
        registry: Registry,
        clock: Clock | None = None,
        random: Random | None = None,
    ) -> None:
        self._config = config
        self._written = listed(config.server_addr)
        self._by_name = config.finder_type == "dns"
        self._producer = producer
        self._records_max = records_max
        self._registry = registry
        self._token = Token(config.authentication, config.authentication_file)
        self._tls = tls_of(config)
        self._unary_timeout_s = seconds(config.timeout.unary)
        self._stream_timeout_s = seconds(config.timeout.stream)
        self._upstreams = Upstreams(
            self._connect, clock or SystemClock(), random or Random(), registry
        )
        self._taken = Taken()
        self._open_calls = asyncio.Semaphore(CALLS_MAX)
        self._looking: asyncio.Task[None] | None = None
        self._running = False
        self.relay = UpstreamRelay(
            self._upstreams, self._find, self._credentials, self._unary_timeout_s
        )

    @property
    def address(self) -> tuple[str, int]:
        return self.addresses[0]

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """As they are written."""
        return tuple((one.host, one.port) for one in self._written)

    async def start(self) -> None:
        """ConfigError when a file of TLS is not there or no good."""
        if self._tls is not None:
            self._tls.context()
        self._running = True
        if self._by_name:
            self._looking = asyncio.create_task(self._look(), name="upstreams by name")
        else:
            await self._upstreams.become(self._written)

    async def stop(self, timeout_s: float) -> None:
        self._running = False
        looking, self._looking = self._looking, None
        if looking is not None:
            looking.cancel()
            await asyncio.wait({looking})
        await self._upstreams.stop(timeout_s)

    def batch_max(self, kind: int) -> int:
        with suppress(PermanentError):
            if rpc_of(kind).streaming is Streaming.UNARY:
                return min(UNARY_CALLS_MAX, self._records_max)
        return self._records_max

    async def send(self, batch: Batch) -> None:
        await self._find()
        sticky = len(self._upstreams) > 1
        left = self._taken.left(batch)
        tried: set[Upstream] = set()
        self._upstreams.next_turn()
        while left:
            calls = self._assigned(pieces(batch, left, sticky), tried)
            outcomes = await self._made(batch, calls)
            done: set[int] = set()
            failures: list[SkyfarerError] = []
            for (upstream, piece), failure in zip(calls, outcomes, strict=True):
                if failure is None:
                    done.update(_indexes(piece, batch))
                else:
                    tried.add(upstream)
                    failures.append(failure)
            left = [index for index in left if index not in done]
            self._taken.add(batch, done if left else ())
            self._judge(failures, tried)
        self._taken.forget(batch)

    def _judge(self, failures: Sequence[SkyfarerError], tried: set[Upstream]) -> None:
        """Raises when nothing is left to try: a refusal before a failure that may pass."""
        for failure in failures:
            if isinstance(failure, PermanentError):
                raise failure
        if failures and self._upstreams.choose(tried) is None:
            raise failures[-1]

    def _assigned(
        self, waiting: Sequence[Piece], tried: set[Upstream]
    ) -> list[tuple[Upstream, Piece]]:
        """Each call with its upstream."""
        shared: dict[Upstream, list[Piece]] = {}
        calls: list[tuple[Upstream, Piece]] = []
        for piece in waiting:
            upstream = self._upstreams.choose(tried, piece.key or b"")
            if upstream is None:
                raise RetryableError("no upstream is left to try")
            if piece.key is not None and piece.rpc.streaming is not Streaming.UNARY:
                shared.setdefault(upstream, []).append(piece)
            else:
                calls.append((upstream, piece))
        for upstream, together in shared.items():
            calls += [(upstream, call) for call in joined(together)]
        return calls

    async def _made(
        self, batch: Batch, calls: Sequence[tuple[Upstream, Piece]]
    ) -> list[SkyfarerError | None]:
        """The failure of each call, or None; side by side, a bounded number at a time."""
        if len(calls) == 1:
            return [await self._call(batch, *calls[0])]
        return await asyncio.gather(*(self._call(batch, *call) for call in calls))

    async def _call(self, batch: Batch, upstream: Upstream, piece: Piece) -> SkyfarerError | None:
        unary = piece.rpc.streaming is Streaming.UNARY
        timeout_s = self._unary_timeout_s if unary else self._stream_timeout_s
        try:
            metadata = (*numbered(self._producer(), batch, piece.indexes), *self._credentials())
            async with self._open_calls:
                await upstream.client.send(piece.rpc, piece.messages, metadata, timeout_s)
        except SkyfarerError as failure:
            meant = meaning(failure)
            if isinstance(meant, PermanentError):
                self._upstreams.answered(upstream)
            else:
                self._upstreams.failed(upstream, meant)
            return meant
        self._upstreams.answered(upstream)
        return None

    def _credentials(self) -> tuple[tuple[str, str], ...]:
        token = self._token.value()
        return ((TOKEN_KEY, token),) if token else ()

    def _connect(self, endpoint: Endpoint) -> GrpcClient:
        settings = ClientSettings(
            host=endpoint.host,
            port=endpoint.port,
            server_name=self._config.server_name or endpoint.name,
            call_timeout_s=self._stream_timeout_s,
        )
        tls = self._tls
        return GrpcClient(settings, self._registry, tls.context if tls is not None else None)

    async def _find(self) -> None:
        if not self._running:
            raise RetryableError("the gRPC client is not running")
        if self._by_name and not len(self._upstreams):
            await self._upstreams.become(await resolved(self._written))

    async def _look(self) -> None:
        """Follows what the names stand for; while they cannot be asked all stays as it was."""
        while True:
            try:
                await self._upstreams.become(await resolved(self._written))
            except RetryableError as failure:
                log.debug("upstreams stay as they are: %s", failure)
            await asyncio.sleep(self._config.check_period)


def _indexes(piece: Piece, batch: Batch) -> Sequence[int]:
    if piece.indexes is None:
        return range(len(batch.payloads))
    return [index for indexes in piece.indexes for index in indexes]
