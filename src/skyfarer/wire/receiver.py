"""What the connections of one server share: settings, the queue's door, bounds and counts."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

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
from skyfarer.wire.intake import Append, Keeper, Unfinished
from skyfarer.wire.status import Status

HANDSHAKE_TIMEOUT_S: Final = 5.0


@dataclass(frozen=True)
class ServerSettings:
    """`port` 0 takes any free one. `message_bytes_max` holds for a message inflated, too.

    `unfinished_bytes_max` bounds, over all connections, what has come of messages that are not
    complete yet; it must be able to hold at least one.
    """

    host: str = "0.0.0.0"
    port: int = 11800
    message_bytes_max: int = 50 * MIB
    unfinished_bytes_max: int = 256 * MIB
    streams_max: int = 1024
    connections_max: int = 4000
    reuse_port: bool = False
    handshake_timeout_s: float = HANDSHAKE_TIMEOUT_S


class Refusal(Enum):
    """Why we closed a connection: values of a metric's label."""

    TOO_MANY = "too_many"
    HANDSHAKE_TIMEOUT = "handshake_timeout"
    PROTOCOL_ERROR = "protocol_error"
    CONTROL_FLOOD = "control_flood"
    OUTPUT_STALLED = "output_stalled"
    STOPPING = "stopping"


class Peer(Protocol):
    def drain(self) -> None: ...

    def abort(self) -> None: ...


class Receiver:
    def __init__(
        self, settings: ServerSettings, append: Append, registry: Registry, health: Health
    ) -> None:
        self.settings = settings
        self.keeper = Keeper(append)
        self.unfinished = Unfinished(settings.unfinished_bytes_max)
        self.registry = registry
        self._health = health
        self._peers: set[Peer] = set()
        self._stopping = False
        self._empty = asyncio.Event()
        self._empty.set()

    def admit(self, peer: Peer) -> bool:
        """False when there are too many: the caller closes it."""
        if self._stopping or len(self._peers) >= self.settings.connections_max:
            self.count_refused(Refusal.STOPPING if self._stopping else Refusal.TOO_MANY)
            return False
        self._peers.add(peer)
        self._empty.clear()
        self.registry.set(RECEIVER_CONNECTIONS, len(self._peers))
        return True

    def release(self, peer: Peer) -> None:
        self._peers.discard(peer)
        self.registry.set(RECEIVER_CONNECTIONS, len(self._peers))
        if not self._peers:
            self._empty.set()

    async def drain(self, timeout_s: float) -> None:
        """Returns when every connection is closed; those still busy after `timeout_s` are cut."""
        self._stopping = True
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
