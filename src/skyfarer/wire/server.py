"""The gRPC server that agents report to.

It speaks HTTP/2 by the h2 library on asyncio. What becomes of a call is its path's:

    it has a door       its messages go to that `Append`, as the bytes that came but for the
                        identity they lack (`identity`), and the call is answered OK after `append`
                        has returned for all of them, and only then: an answered message is durable
    `rpc.RPCS` says     it goes to the relay, and the upstream's answer comes back (`passage`);
    to ask              nothing is kept
    neither             UNIMPLEMENTED

With `refuse_malformed` a message for a door that cannot be walked to its end at its top level ends
its call with INVALID_ARGUMENT; the messages before it are kept.

    append raised       the calls whose messages it had are answered
    RetryableError      RESOURCE_EXHAUSTED
    PermanentError      INVALID_ARGUMENT
    anything else       INTERNAL, and logged

Bounded: connections, in all and from one address, and how long they are idle; streams; a message
(inflated, too), all unfinished messages together and how long they may take; headers; calls and
bytes on their way to the upstream; answers not read by the peer; control frames; the time until a
peer has spoken HTTP/2.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import socket
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.wire.connection import Connection
from skyfarer.wire.receiver import Receiver
from skyfarer.wire.receiver import ServerSettings as ServerSettings
from skyfarer.wire.relay import Relay
from skyfarer.wire.routes import Append as Append

if TYPE_CHECKING:
    import ssl

    from skyfarer.wire.tokens import Tokens

log = logging.getLogger(__name__)

BACKLOG: Final = 1024
# A connection is refused some turns of the event loop after it was accepted: a flood must not have
# taken all files by then, nor keep the loop from everything else.
ACCEPTED_AT_ONCE: Final = 32
# Of the files a process may have open: for connections not refused yet, and for all the rest.
FILES_RESERVED: Final = 128 + 4 * ACCEPTED_AT_ONCE


class GrpcServer:
    """Listens between `start` and `stop`, once, on the event loop that `start` runs in.

    `doors` has the `Append` of each path that is kept: `append(kind, payloads)` is called on that
    loop, once per read and kind; it may block for as long as the disk does, and owns the payloads.
    Those of a call that says which records it carries come by themselves, as `Numbered`.
    ValueError for a path that is not in the table. `tls` must offer h2 by ALPN. With a
    `listener`, which is its own from then on, connections are accepted there, and not at the
    settings' address. With `tokens` a call that shows none of them is refused, but for the one
    that asks after our health.
    """

    def __init__(
        self,
        settings: ServerSettings,
        doors: Mapping[str, Append],
        relay: Relay | None,
        registry: Registry,
        health: Health,
        tls: ssl.SSLContext | None = None,
        listener: socket.socket | None = None,
        tokens: Tokens | None = None,
    ) -> None:
        self._listener = listener
        self._settings = settings
        self._receiver = Receiver(settings, doors, relay, registry, health, tokens)
        self._tls = tls
        self._server: asyncio.Server | None = None
        self.port = settings.port

    def serve(self, doors: Mapping[str, Append], relay: Relay | None) -> None:
        """From now on these doors and this relay, for calls that are open, too: their next message
        goes to the new door of their path. What is on its way to the upstream ends as it began.

        At any time, before `start` as well; ValueError, and nothing changed, as the constructor.
        """
        self._receiver.routes.replace(doors, relay)

    async def start(self) -> None:
        """OSError when the address cannot be had. `port` is the one taken."""
        loop, settings, tls = asyncio.get_running_loop(), self._settings, self._tls
        self._receiver.connections_max = _possible(settings.connections_max)
        create_server = partial(
            loop.create_server,
            lambda: Connection(self._receiver),
            backlog=ACCEPTED_AT_ONCE,
            ssl=tls,
            ssl_handshake_timeout=settings.handshake_timeout_s if tls is not None else None,
        )
        if self._listener is not None:
            self._server = await create_server(sock=self._listener)
        else:
            self._server = await create_server(
                settings.host, settings.port, reuse_port=settings.reuse_port
            )
        for listening in self._server.sockets:
            _set_backlog(listening.fileno(), BACKLOG)
        self._receiver.start(loop)
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


def _possible(connections_max: int) -> int:
    """As many as there can be files for: out of files nobody could be refused, nor served."""
    wanted = connections_max + FILES_RESERVED
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    ceiling = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < ceiling:
        resource.setrlimit(resource.RLIMIT_NOFILE, (ceiling, hard))
    if ceiling == wanted:
        return connections_max
    possible = max(1, ceiling - FILES_RESERVED)
    log.warning(
        "%d connections at most, not %d: the process may open %d files only (ulimit -Hn)",
        *(possible, connections_max, hard),
    )
    return possible


def _set_backlog(listening: int, backlog: int) -> None:
    """asyncio takes the number of connections that may wait for the number it accepts at once."""
    with socket.socket(fileno=os.dup(listening)) as twin:
        twin.listen(backlog)
