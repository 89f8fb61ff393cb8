"""A connection of the HTTP door that does not wait for ever.

uvicorn waits as long as a client likes for the first byte, for the end of a header, and for the end
of a body it has refused already. Connections are bounded in number, so a few hundred clients that
do nothing would keep everybody else out.

It writes an answer in two parts, and the kernel would keep the second until the first is
acknowledged: 40 ms, for a client that waits for more before it does.
"""

from __future__ import annotations

import asyncio
import socket

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from skyfarer.oap.query import limits


class ImpatientProtocol(H11Protocol):
    """Closes a connection whose header is not whole, or whose refused body has not ended,
    `limits.HEADER_TIMEOUT_S` after that began, however busy it looks meanwhile."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # asyncio does so too, but not for the connections of a socket that somebody else has made.
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _watch(self) -> None:
        ours, theirs = self.conn.our_state, self.conn.their_state
        refused = ours is h11.DONE and theirs is h11.SEND_BODY
        if theirs is not h11.IDLE and not refused:
            self._stop_waiting()
        elif self._waiting is None:
            self._waiting = self.loop.call_later(limits.HEADER_TIMEOUT_S, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
