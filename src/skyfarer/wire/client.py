"""The gRPC client that sends batches upstream.

One connection, made when the first call needs it and made again by the next call after it was lost.
Trying again is the caller's: it alone knows how long the messages may wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skyfarer import __version__
from skyfarer.base.errors import PermanentError
from skyfarer.telemetry.metrics import Registry
from skyfarer.telemetry.table import SENDER_BYTES, SENDER_CALLS
from skyfarer.wire.channel import Channel
from skyfarer.wire.framing import ENCODINGS, blocks
from skyfarer.wire.outgoing import Header
from skyfarer.wire.rpc import Rpc, Streaming
from skyfarer.wire.status import Status, StatusError, to_error

if TYPE_CHECKING:
    import ssl


@dataclass(frozen=True)
class ClientSettings:
    host: str
    port: int
    connect_timeout_s: float = 5.0
    call_timeout_s: float = 20.0


class GrpcClient:
    """Sends between `start` and `stop`, on one event loop; calls may run side by side.

    `start` does not connect: an upstream that is down must not keep a sender from starting.
    """

    def __init__(
        self,
        settings: ClientSettings,
        registry: Registry | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._settings = settings
        self._registry = registry
        self._tls = tls
        self._channel: Channel | None = None
        self._connecting = asyncio.Lock()
        self._running = False

    async def start(self) -> None:
        self._running = True

    async def stop(self, timeout_s: float) -> None:
        """Open calls have `timeout_s` to end, then fail. Safe twice and unstarted."""
        self._running = False
        channel, self._channel = self._channel, None
        if channel is None:
            return
        try:
            async with asyncio.timeout(timeout_s):
                await channel.close()
        except TimeoutError:
            channel.abort()
            await channel.close()

    async def send(
        self,
        rpc: Rpc,
        messages: Sequence[bytes | memoryview],
        metadata: Sequence[tuple[str, str]] = (),
    ) -> bytes:
        """One call with all the messages; returns the response message.

        The messages must stay as they are until it returns. RetryableError: nothing is known to be
        kept, send them again. PermanentError: the server will never take them.
        """
        if rpc.streaming is Streaming.UNARY and len(messages) != 1:
            raise ValueError(f"{rpc.path} takes one message, not {len(messages)}")
        headers = self._headers(rpc, metadata)
        try:
            response = await self._call(headers, messages)
        except StatusError as error:
            self._count(rpc, error.status)
            what = f"{rpc.path} to {self._settings.host}:{self._settings.port}"
            raise to_error(error.status, error.message, what) from error
        self._count(rpc, Status.OK)
        if self._registry is not None:
            self._registry.inc(SENDER_BYTES, sum(map(len, messages)))
        return response

    async def _call(self, headers: list[Header], messages: Sequence[bytes | memoryview]) -> bytes:
        channel = await self._connected()
        heard_bytes = channel.received_bytes
        try:
            async with asyncio.timeout(self._settings.call_timeout_s):
                return await channel.call(headers, blocks(messages))
        except TimeoutError as error:
            if channel.received_bytes == heard_bytes:
                # Not a word in all that time: the next call had better try a new connection.
                channel.abort()
            message = f"no answer within {self._settings.call_timeout_s} s"
            raise StatusError(Status.DEADLINE_EXCEEDED, message) from error

    async def _connected(self) -> Channel:
        async with self._connecting:
            if not self._running:
                raise StatusError(Status.UNAVAILABLE, "the client is not running")
            if self._channel is None or not self._channel.usable:
                self._channel = await self._connect()
            if not self._running:
                self._channel.abort()
            return self._channel

    async def _connect(self) -> Channel:
        loop = asyncio.get_running_loop()
        channel = Channel()
        try:
            async with asyncio.timeout(self._settings.connect_timeout_s):
                await loop.create_connection(
                    lambda: channel, self._settings.host, self._settings.port, ssl=self._tls
                )
                await channel.established()
        except TimeoutError as error:
            channel.abort()
            message = f"no connection within {self._settings.connect_timeout_s} s"
            raise StatusError(Status.UNAVAILABLE, message) from error
        except OSError as error:
            raise StatusError(Status.UNAVAILABLE, str(error)) from error
        except BaseException:
            channel.abort()
            raise
        return channel

    def _headers(self, rpc: Rpc, metadata: Sequence[tuple[str, str]]) -> list[Header]:
        authority = f"{self._settings.host}:{self._settings.port}"
        timeout_ms = max(1, int(self._settings.call_timeout_s * 1000))
        return [
            (b":method", b"POST"),
            (b":scheme", b"https" if self._tls is not None else b"http"),
            (b":path", rpc.path.encode("ascii")),
            (b":authority", authority.encode("ascii")),
            (b"te", b"trailers"),
            (b"content-type", b"application/grpc"),
            (b"user-agent", f"skyfarer/{__version__}".encode("ascii")),
            (b"grpc-accept-encoding", ENCODINGS),
            (b"grpc-timeout", f"{timeout_ms}m".encode("ascii")),
            *(_metadata(name, value) for name, value in metadata),
        ]

    def _count(self, rpc: Rpc, status: Status) -> None:
        if self._registry is not None:
            self._registry.inc(SENDER_CALLS, rpc=rpc.path, status=status.name)


def _metadata(name: str, value: str) -> Header:
    """Checked here because h2 is told to trust our headers, and these come from elsewhere."""
    if not (name and name.isascii() and name.replace("-", "").replace("_", "").isalnum()):
        raise PermanentError(f"metadata name {name!r} cannot be sent")
    if not (value.isascii() and value.isprintable() and value == value.strip()):
        raise PermanentError(f"metadata {name}: its value is not printable ASCII")
    return name.lower().encode("ascii"), value.encode("ascii")
