"""The gRPC client that sends batches upstream and asks it what agents ask.

One connection, made when the first call needs it and made again by the next call after it was lost.
Trying again is the caller's: it alone knows how long the messages may wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from skyfarer import __version__
from skyfarer.base.errors import SkyfarerError
from skyfarer.telemetry.metrics import Registry
from skyfarer.telemetry.table import SENDER_BYTES, SENDER_CALLS
from skyfarer.wire.channel import Channel
from skyfarer.wire.conversation import ClientConversation
from skyfarer.wire.framing import ENCODINGS, blocks
from skyfarer.wire.metadata import Header, Metadata, Pairs, header
from skyfarer.wire.rpc import Rpc, Streaming
from skyfarer.wire.status import Status, StatusError, to_error

if TYPE_CHECKING:
    import ssl

DAY_S: Final = 86_400.0
FAREWELL_S: Final = 0.2  # for a server to end TLS in form; grpcio's does not
SILENCE_S: Final = 5.0  # without a word from the server, the connection is taken for dead


@dataclass(frozen=True)
class ClientSettings:
    """`server_name`: what the server calls itself, when it is not `host`: a name behind which
    `host` is one of several addresses. Its certificate is held against it."""

    host: str
    port: int
    server_name: str = ""
    connect_timeout_s: float = 5.0
    call_timeout_s: float = 20.0


class GrpcClient:
    """Sends between `start` and `stop`, on one event loop; calls may run side by side.

    `start` does not connect: an upstream that is down must not keep a sender from starting. `tls`
    is asked at each connection, so that renewed certificates need no new client.
    """

    def __init__(
        self,
        settings: ClientSettings,
        registry: Registry | None = None,
        tls: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        self._settings = settings
        self._name = settings.server_name or settings.host
        self._registry = registry
        self._tls = tls
        self._channel: Channel | None = None
        self._connecting: asyncio.Future[Channel] | None = None
        self._attempt: asyncio.Task[None] | None = None
        self._running = False

    async def start(self) -> None:
        self._running = True

    async def stop(self, timeout_s: float) -> None:
        """Open calls have `timeout_s` to end, then fail. Safe twice and unstarted."""
        self._running = False
        if self._attempt is not None and self._connecting is not None:
            self._attempt.cancel()
            self._fail_connecting(StatusError(Status.UNAVAILABLE, "the client was stopped"))
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
        metadata: Pairs = (),
        timeout_s: float | None = None,
    ) -> bytes:
        """One call with all the messages; returns the response message.

        The messages must stay as they are until it returns. RetryableError: nothing is known to be
        kept, send them again. PermanentError: the server will never take them.
        """
        if rpc.streaming is Streaming.UNARY and len(messages) != 1:
            raise ValueError(f"{rpc.path} takes one message, not {len(messages)}")
        try:
            timeout_s = timeout_s or self._settings.call_timeout_s
            return await self._call(rpc, messages, metadata, timeout_s)
        except StatusError as error:
            what = f"{rpc.path} to {self._settings.host}:{self._settings.port}"
            raise to_error(error.status, error.message, what) from error

    async def ask(self, rpc: Rpc, message: bytes, metadata: Metadata) -> bytes:
        """The answer to one message; StatusError with the server's status and message otherwise."""
        timeout_s = self._settings.call_timeout_s
        if metadata.timeout_s is not None:
            timeout_s = min(timeout_s, metadata.timeout_s)
        return await self._call(rpc, [message], metadata.pairs, timeout_s)

    def converse(self, rpc: Rpc, metadata: Metadata) -> ClientConversation:
        """A call that stays open, for ever unless the metadata says how long; connects by itself.

        To be called on the event loop.
        """
        headers = self._headers(rpc, metadata.pairs, metadata.timeout_s)
        return ClientConversation(self._connected, headers, partial(self._count, rpc))

    async def _call(
        self,
        rpc: Rpc,
        messages: Sequence[bytes | memoryview],
        metadata: Pairs,
        timeout_s: float,
    ) -> bytes:
        headers = self._headers(rpc, metadata, timeout_s)
        try:
            response = await self._answer(headers, messages, timeout_s)
        except StatusError as error:
            self._count(rpc, error.status)
            raise
        self._count(rpc, Status.OK)
        if self._registry is not None:
            self._registry.inc(SENDER_BYTES, sum(map(len, messages)))
        return response

    async def _answer(
        self, headers: list[Header], messages: Sequence[bytes | memoryview], timeout_s: float
    ) -> bytes:
        channel: Channel | None = None
        heard_bytes = 0
        try:
            async with asyncio.timeout(timeout_s):
                channel = await self._connected()
                heard_bytes = channel.received_bytes
                return await channel.call(headers, blocks(messages))
        except TimeoutError as error:
            patient = timeout_s >= min(SILENCE_S, self._settings.call_timeout_s)
            if channel is not None and patient and channel.received_bytes == heard_bytes:
                # Not a word in all that time: the next call had better try a new connection.
                channel.abort()
            message = f"no answer within {timeout_s:g} s"
            raise StatusError(Status.DEADLINE_EXCEEDED, message) from error

    async def _connected(self) -> Channel:
        """Calls that need a connection at the same time share one attempt, and its failure."""
        if not self._running:
            raise StatusError(Status.UNAVAILABLE, "the client is not running")
        if self._channel is not None and self._channel.usable:
            return self._channel
        if self._connecting is None:
            self._connecting = asyncio.get_running_loop().create_future()
            self._attempt = asyncio.create_task(self._try_to_connect())
        return await asyncio.shield(self._connecting)

    async def _try_to_connect(self) -> None:
        try:
            channel = await self._connect()
        except StatusError as error:
            self._fail_connecting(error)
            return
        except SkyfarerError as error:
            self._fail_connecting(StatusError(Status.UNAVAILABLE, str(error)))
            return
        connecting, self._connecting = self._connecting, None
        self._channel = channel
        if connecting is not None:
            connecting.set_result(channel)

    def _fail_connecting(self, error: StatusError) -> None:
        connecting, self._connecting = self._connecting, None
        if connecting is not None:
            connecting.set_exception(error)
            connecting.exception()  # those who waited may all be gone

    async def _connect(self) -> Channel:
        loop = asyncio.get_running_loop()
        channel = Channel()
        try:
            async with asyncio.timeout(self._settings.connect_timeout_s):
                await loop.create_connection(
                    lambda: channel,
                    self._settings.host,
                    self._settings.port,
                    ssl=self._tls() if self._tls is not None else None,
                    server_hostname=self._name if self._tls is not None else None,
                    ssl_shutdown_timeout=FAREWELL_S if self._tls is not None else None,
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

    def _headers(self, rpc: Rpc, metadata: Pairs, timeout_s: float | None) -> list[Header]:
        authority = f"{self._name}:{self._settings.port}"
        return [
            (b":method", b"POST"),
            (b":scheme", b"https" if self._tls is not None else b"http"),
            (b":path", rpc.path.encode("ascii")),
            (b":authority", authority.encode("ascii")),
            (b"te", b"trailers"),
            (b"content-type", b"application/grpc"),
            (b"user-agent", f"skyfarer/{__version__}".encode("ascii")),
            (b"grpc-accept-encoding", ENCODINGS),
            *_timeout(timeout_s),
            *(header(name, value) for name, value in metadata),
        ]

    def _count(self, rpc: Rpc, status: Status) -> None:
        if self._registry is not None:
            self._registry.inc(SENDER_CALLS, rpc=rpc.path, status=status.name)


def _timeout(timeout_s: float | None) -> tuple[Header, ...]:
    """At most eight digits, as gRPC demands: more than a day is no deadline."""
    if timeout_s is None or timeout_s >= DAY_S:
        return ()
    return ((b"grpc-timeout", b"%dm" % max(1, int(timeout_s * 1000))),)
