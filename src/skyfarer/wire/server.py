"""The gRPC server that agents report to.

It speaks HTTP/2 by the h2 library on asyncio, takes the calls that `rpc.RPCS` says to keep, and
hands their messages, as the bytes that came, to `append`. A call is answered OK after `append` has
returned for all its messages, and only then: an answered message is durable.

    append raised       the calls whose messages it had are answered
    RetryableError      RESOURCE_EXHAUSTED
    PermanentError      INVALID_ARGUMENT
    anything else       INTERNAL, and logged

Bounded: connections, streams, a message (inflated, too), all unfinished messages together, headers,
answers not read by the peer, control frames, the time until a peer has spoken HTTP/2.
"""

from __future__ import annotations

import asyncio
import socket
from functools import partial
from typing import TYPE_CHECKING, Final

from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.wire.connection import Connection
from skyfarer.wire.intake import Append
from skyfarer.wire.receiver import Receiver
from skyfarer.wire.receiver import ServerSettings as ServerSettings

if TYPE_CHECKING:
    import ssl

BACKLOG: Final = 1024


class GrpcServer:
    """Listens between `start` and `stop`, once, on the event loop that `start` runs in.

    `append(kind, payloads)` is called on that loop, once per read and kind; it may block for as
    long as the disk does, and owns the payloads. `tls` must offer h2 by ALPN. With a `listener`,
    which is its own from then on, connections are accepted there, and not at the settings' address.
    """

    def __init__(
        self,
        settings: ServerSettings,
        append: Append,
        registry: Registry,
        health: Health,
        tls: ssl.SSLContext | None = None,
        listener: socket.socket | None = None,
    ) -> None:
        self._listener = listener
        self._settings = settings
        self._receiver = Receiver(settings, append, registry, health)
        self._tls = tls
        self._server: asyncio.Server | None = None
        self.port = settings.port

    async def start(self) -> None:
        """OSError when the address cannot be had. `port` is the one taken."""
        settings, tls = self._settings, self._tls
        create_server = partial(
            asyncio.get_running_loop().create_server,
            lambda: Connection(self._receiver),
            backlog=BACKLOG,
            ssl=tls,
            ssl_handshake_timeout=settings.handshake_timeout_s if tls is not None else None,
        )
        if self._listener is not None:
            self._server = await create_server(sock=self._listener)
        else:
            self._server = await create_server(
                settings.host, settings.port, reuse_port=settings.reuse_port
            )
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self, timeout_s: float) -> None:
        """Takes no new calls; open ones have `timeout_s` to end, then are cut off.

        Safe twice and unstarted.
        """
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        await self._receiver.drain(timeout_s)
        await server.wait_closed()
