"""What the connections of one server share: settings, where calls go, bounds, counts, a clock."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol

from skyfarer.base.units import MIB
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.telemetry.table import (
    RECEIVER_BYTES,
    RECEIVER_CALLS,
    RECEIVER_CONNECTIONS,
    RECEIVER_CONNECTIONS_REFUSED,
)
from skyfarer.wire.calls import NOT_SERVING, SERVING, Call
from skyfarer.wire.intake import Unfinished
from skyfarer.wire.relay import Relay
from skyfarer.wire.relayed import Relayed
from skyfarer.wire.routes import Append, Routes
from skyfarer.wire.status import Status

if TYPE_CHECKING:
    from skyfarer.wire.tokens import Tokens

HANDSHAKE_TIMEOUT_S: Final = 5.0
SWEEP_INTERVAL_S: Final = 5.0


@dataclass(frozen=True)
class ServerSettings:
    """`port` 0 takes any free one. `message_bytes_max` holds for a message inflated, too.

    `unfinished_bytes_max` bounds, over all connections, what has come of messages that are not
    complete yet, and the identities of streams; it must be able to hold at least one message.
    `connections_per_source_max` counts those from one address. A connection without a call is
    closed after `idle_timeout_s`, a call whose message is not complete after `message_timeout_s`,
    one that is passed on and is silent after `relayed_idle_timeout_s`. None is no bound.
    `refuse_malformed`: a message that is no protobuf at its top level is refused, not kept.
    """

    host: str = "0.0.0.0"
    port: int = 11800
    message_bytes_max: int = 50 * MIB
    unfinished_bytes_max: int = 256 * MIB
    streams_max: int = 1024
    connections_max: int = 4000
    connections_per_source_max: int | None = None
    reuse_port: bool = False
    handshake_timeout_s: float = HANDSHAKE_TIMEOUT_S
    idle_timeout_s: float | None = None
    message_timeout_s: float | None = None
    relayed_calls_max: int = 256
    relayed_bytes_max: int = 16 * MIB
    relayed_idle_timeout_s: float = 60.0
    refuse_malformed: bool = False


class Refusal(Enum):
    """Why we closed a connection: values of a metric's label."""

    TOO_MANY = "too_many"
    TOO_MANY_FROM_SOURCE = "too_many_from_source"
    IDLE = "idle"
    HANDSHAKE_TIMEOUT = "handshake_timeout"
    PROTOCOL_ERROR = "protocol_error"
    CONTROL_FLOOD = "control_flood"
    OUTPUT_STALLED = "output_stalled"
    STOPPING = "stopping"


class Peer(Protocol):
    source: str

    def sweep(self) -> None: ...

    def drain(self) -> None: ...

    def abort(self) -> None: ...


class Receiver:
    """`sweeps` is its clock: coarse, but it costs a read of a socket nothing to look at."""

    def __init__(
        self,
        settings: ServerSettings,
        doors: Mapping[str, Append],
        relay: Relay | None,
        registry: Registry,
        health: Health,
        tokens: Tokens | None = None,
    ) -> None:
        self.settings = settings
        self.tokens = tokens
        self.routes = Routes(doors, relay)
        self.unfinished = Unfinished(settings.unfinished_bytes_max)
        self.relayed = Relayed(settings.relayed_calls_max, settings.relayed_bytes_max, registry)
        self.registry = registry
        self.connections_max = settings.connections_max
        self.sweeps = 0
        self._health = health
        self._sweep_interval_s = _sweep_interval_s(settings)
        self._sweeping: asyncio.TimerHandle | None = None
        self._peers: set[Peer] = set()
        self._sources: Counter[str] = Counter()
        self._stopping = False
        self._empty = asyncio.Event()
        self._empty.set()

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._sweeping = loop.call_later(self._sweep_interval_s, self._sweep, loop)

    def passed(self, sweep: int, timeout_s: float | None) -> bool:
        """Whether that much time has passed since then; never too early."""
        return (
            timeout_s is not None
            and (self.sweeps - sweep - 1) * self._sweep_interval_s >= timeout_s
        )

    def admit(self, peer: Peer) -> bool:
        """False when there are too many: the caller closes it."""
        refusal = self._refusal(peer.source)
        if refusal is not None:
            self.count_refused(refusal)
            return False
        self._peers.add(peer)
        self._sources[peer.source] += 1
        self._empty.clear()
        self.registry.inc(RECEIVER_CONNECTIONS)
        return True

    def release(self, peer: Peer) -> None:
        if peer not in self._peers:
            return
        self._peers.remove(peer)
        self._sources[peer.source] -= 1
        if not self._sources[peer.source]:
            del self._sources[peer.source]
        self.registry.inc(RECEIVER_CONNECTIONS, -1)
        if not self._peers:
            self._empty.set()

    async def drain(self, timeout_s: float) -> None:
        """Returns when every connection is closed; those still busy after `timeout_s` are cut."""
        self._stopping = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        for peer in list(self._peers):
            peer.drain()
        try:
            async with asyncio.timeout(timeout_s):
                await self._empty.wait()
        except TimeoutError:
            for peer in list(self._peers):
                peer.abort()
            await self._empty.wait()

    def count_refused(self, reason: Refusal) -> None:
        self.registry.inc(RECEIVER_CONNECTIONS_REFUSED, reason=reason.value)

    def count_bytes(self, received: int) -> None:
        if received:
            self.registry.inc(RECEIVER_BYTES, received)

    def call_ended(self, call: Call, status: Status) -> None:
        self.unfinished.forget(call)
        self.registry.inc(RECEIVER_CALLS, rpc=call.name, status=status.name)

    def health_answer(self) -> bytes:
        return SERVING if self._health.score() == 0 else NOT_SERVING

    def _refusal(self, source: str) -> Refusal | None:
        if self._stopping:
            return Refusal.STOPPING
        if len(self._peers) >= self.connections_max:
            return Refusal.TOO_MANY
        share = self.settings.connections_per_source_max
        if share is not None and self._sources[source] >= share:
            return Refusal.TOO_MANY_FROM_SOURCE
        return None

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        self.sweeps += 1
        for peer in list(self._peers):
            peer.sweep()
        self.start(loop)


def _sweep_interval_s(settings: ServerSettings) -> float:
    timeouts_s = (
        settings.idle_timeout_s,
        settings.message_timeout_s,
        settings.relayed_idle_timeout_s,
    )
    return min(SWEEP_INTERVAL_S, *(timeout_s / 2 for timeout_s in timeouts_s if timeout_s))
