"""The port: it takes connections, as many as its bounds allow, and lets them end.

Bounded: the header, a body as it arrives and as it inflates, all bodies that are not kept yet,
connections in all and from one address, and every wait (`exchange`).
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from skyfarer.base.units import KIB
from skyfarer.telemetry.metrics import Registry
from skyfarer.telemetry.table import RECEIVER_CONNECTIONS, RECEIVER_CONNECTIONS_REFUSED
from skyfarer.wire.http.body import Held
from skyfarer.wire.http.desk import Desk
from skyfarer.wire.http.exchange import Exchange
from skyfarer.wire.http.exchange import HttpSettings as HttpSettings
from skyfarer.wire.http2 import keep_alive
from skyfarer.wire.receiver import Refusal
from skyfarer.wire.relay import Relay
from skyfarer.wire.routes import Append

if TYPE_CHECKING:
    import ssl

    from skyfarer.wire.tokens import Tokens

ACCEPTED_AT_ONCE: Final = 128
BUFFER_BYTES: Final = 64 * KIB
OUTPUT_BYTES: Final = 32 * KIB  # of answers a client does not read, in the kernel: they are short
HANDSHAKE_TIMEOUT_S: Final = 5.0


class HttpServer:
    """Listens between `start` and `stop`, once, on the event loop that `start` runs in.

    A request is answered 200 after its `Append` returned, so 200 means durable. Serves nothing
    before `serve`. With a `listener`, which is its own from then on, of the Internet or of Unix,
    connections are accepted there and not at the settings' address. `tls` is asked once, by
    `start`, and must offer HTTP/1.1. With `tokens` a request that shows none of them is 401.
    `relay` answers what is asked and not kept.
    """

    def __init__(
        self,
        settings: HttpSettings,
        registry: Registry,
        tls: Callable[[], ssl.SSLContext] | None = None,
        tokens: Tokens | None = None,
        listener: socket.socket | None = None,
        relay: Relay | None = None,
    ) -> None:
        self.settings = settings
        self.registry = registry
        self.tokens = tokens
        self.desk = Desk(registry, settings.otlp_json, relay)
        self.held = Held(settings.held_bytes_max)
        self.stopping = False
        self.port = settings.port
        self._tls = tls
        self._listener = listener
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.Task[None], Exchange] = {}
        self._sources: Counter[str] = Counter()

    def serve(self, doors: Mapping[str, Append]) -> None:
        """From now on these; ValueError, and nothing changed, for a path that is no endpoint."""
        self.desk.replace(doors)

    async def start(self) -> None:
        """OSError when the address cannot be had, ConfigError when the files of TLS are no good.
        `port` is the one taken."""
        settings, context = self.settings, self._tls() if self._tls is not None else None
        where = (settings.host, settings.port) if self._listener is None else (None, None)
        self._server = await asyncio.start_server(
            self._accept,
            *where,
            sock=self._listener,
            limit=BUFFER_BYTES,
            backlog=ACCEPTED_AT_ONCE,
            ssl=context,
            ssl_handshake_timeout=HANDSHAKE_TIMEOUT_S if context is not None else None,
        )
        for listening in self._server.sockets:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, OUTPUT_BYTES)
            if listening.family != socket.AF_UNIX:
                self.port = listening.getsockname()[1]

    async def stop(self, timeout_s: float) -> None:
        """Takes no new requests; those begun have `timeout_s` to end, then are cut off.

        Safe twice and unstarted.
        """
        server, self._server = self._server, None
        if server is None:
            return
        self.stopping = True
        server.close()
        for exchange in self._open.values():
            if not exchange.busy:
                exchange.abort()
        if self._open:
            await asyncio.wait(self._open, timeout=timeout_s)
        late = list(self._open)
        for task in late:
            self._open[task].abort()
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    def count_refused(self, reason: Refusal) -> None:
        self.registry.inc(RECEIVER_CONNECTIONS_REFUSED, reason=reason.value)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        source = str((writer.get_extra_info("peername") or ("",))[0])
        refusal = self._refusal(source)
        if refusal is not None:
            self.count_refused(refusal)
            writer.transport.abort()
            return
        if writer.get_extra_info("socket").family != socket.AF_UNIX:
            keep_alive(writer.transport)
        self._sources[source] += 1
        self.registry.inc(RECEIVER_CONNECTIONS)
        exchange = Exchange(self, reader, writer)
        task = asyncio.ensure_future(exchange.run())
        self._open[task] = exchange
        task.add_done_callback(lambda task: self._release(task, source))

    def _refusal(self, source: str) -> Refusal | None:
        if self.stopping:
            return Refusal.STOPPING
        if len(self._open) >= self.settings.connections_max:
            return Refusal.TOO_MANY
        if self._sources[source] >= self.settings.connections_per_source_max:
            return Refusal.TOO_MANY_FROM_SOURCE
        return None

    def _release(self, task: asyncio.Task[None], source: str) -> None:
        del self._open[task]
        self._sources[source] -= 1
        if not self._sources[source]:
            del self._sources[source]
        self.registry.inc(RECEIVER_CONNECTIONS, -1)
