"""Calls that wait for the upstream's answer, each by the client of the pipe it belongs to."""

from __future__ import annotations

from collections.abc import Mapping

from skyfarer.satellite.pipe import Pipe
from skyfarer.wire.relay import Conversation, Metadata, Relay
from skyfarer.wire.rpc import Rpc
from skyfarer.wire.status import Status, StatusError


class Relays:
    """A `Relay` for a server that several pipes share; `pipes` is by path.

    A pipe is asked for its client at each call: it may have another by then.
    """

    def __init__(self, pipes: Mapping[str, Pipe]) -> None:
        self._pipes = pipes

    async def ask(self, rpc: Rpc, message: bytes, metadata: Metadata) -> bytes:
        relay = self._relay(rpc)
        if relay is None:
            raise _not_here(rpc)
        return await relay.ask(rpc, message, metadata)

    def converse(self, rpc: Rpc, metadata: Metadata) -> Conversation:
        relay = self._relay(rpc)
        return _Refused(_not_here(rpc)) if relay is None else relay.converse(rpc, metadata)

    def _relay(self, rpc: Rpc) -> Relay | None:
        pipe = self._pipes.get(rpc.path)
        return None if pipe is None else getattr(pipe.forwarder, "relay", None)


class _Refused:
    """A conversation that was over before it began."""

    def __init__(self, error: StatusError) -> None:
        self._error = error

    async def send(self, message: bytes) -> None:
        raise self._error

    async def end(self) -> None:
        raise self._error

    async def receive(self) -> bytes | None:
        raise self._error

    def cancel(self) -> None: ...


def _not_here(rpc: Rpc) -> StatusError:
    return StatusError(Status.UNIMPLEMENTED, f"no pipe of this satellite serves {rpc.path}")
