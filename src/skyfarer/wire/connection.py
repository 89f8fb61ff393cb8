"""The socket side of one agent's connection: its timeouts, and its bound on unread answers."""

from __future__ import annotations

import asyncio
from typing import Final

from skyfarer.base.units import KIB, MIB
from skyfarer.wire.http2 import keep_alive
from skyfarer.wire.receiver import Receiver, Refusal
from skyfarer.wire.session import Session

# Of answers that the peer does not read; beyond it we read no more of the peer.
OUTPUT_BYTES_MAX: Final = 256 * KIB
OUTPUT_STALL_TIMEOUT_S: Final = 30.0
LINGER_S: Final = 0.5
LINGER_BYTES_MAX: Final = 1 * MIB
CLOSE_TIMEOUT_S: Final = 5.0


class Connection(asyncio.Protocol):
    """`drain` lets open calls end and takes no new ones; `abort` cuts off. Event loop only."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._loop = asyncio.get_running_loop()
        self._session: Session | None = None
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closing = False
        self._unheard_bytes = 0
        self.source = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.source = str((transport.get_extra_info("peername") or ("",))[0])
        if not self._receiver.admit(self):
            self.abort()
            return
        keep_alive(transport)
        transport.set_write_buffer_limits(high=OUTPUT_BYTES_MAX)
        timeout_s = self._receiver.settings.handshake_timeout_s
        self._set_timer(timeout_s, Refusal.HANDSHAKE_TIMEOUT)

    def data_received(self, data: bytes) -> None:
        if self._closing or self._transport is None:
            self._leave_unheard(len(data))
            return
        if self._session is None:
            # Not before: h2 takes ten times as much memory as a connection that says nothing.
            self._session = Session(self._receiver, self._loop, self._transport.write, self._close)
            self._session.open()
        established = self._session.established
        self._session.receive(data)
        if self._session.established and not established and not self._closing:
            self._cancel_timer()

    def pause_writing(self) -> None:
        if self._transport is not None and self._session is not None and not self._closing:
            self._transport.pause_reading()
            self._session.pause()
            self._set_timer(OUTPUT_STALL_TIMEOUT_S, Refusal.OUTPUT_STALLED)

    def resume_writing(self) -> None:
        if self._transport is not None and self._session is not None and not self._closing:
            self._cancel_timer()
            self._transport.resume_reading()
            self._session.resume()

    def sweep(self) -> None:
        if self._session is not None and not self._closing:
            self._session.sweep()

    def drain(self) -> None:
        if self._session is None:
            self._close()
        elif not self._closing:
            self._session.drain()

    def abort(self) -> None:
        self._closing = True
        if self._transport is not None:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        self._cancel_timer()
        if self._session is not None:
            self._session.lost()
        self._transport = None
        self._receiver.release(self)

    def _refuse(self, refusal: Refusal) -> None:
        self._receiver.count_refused(refusal)
        self._close()

    def _close(self) -> None:
        """Sends what is written and no more, then leaves the peer a moment to close.

        What it still sends meanwhile is read, and thrown away: with bytes unread a socket is not
        closed but reset, and our last words, which say why, may be lost with it.
        """
        if self._closing or self._transport is None:
            return
        self._closing = True
        self._cancel_timer()
        self._timer = self._loop.call_later(LINGER_S, self._end)
        self._transport.resume_reading()
        try:
            if self._transport.can_write_eof():
                self._transport.write_eof()
        except OSError:  # it has reset the connection: nobody is left to tell
            self._transport.abort()

    def _leave_unheard(self, size_bytes: int) -> None:
        self._unheard_bytes += size_bytes
        if self._unheard_bytes > LINGER_BYTES_MAX and self._transport is not None:
            self._transport.abort()

    def _end(self) -> None:
        """A peer that reads none of what is written is cut off after a while."""
        if self._transport is not None:
            self._transport.close()
            self._timer = self._loop.call_later(CLOSE_TIMEOUT_S, self._transport.abort)

    def _set_timer(self, timeout_s: float, refusal: Refusal) -> None:
        self._cancel_timer()
        self._timer = self._loop.call_later(timeout_s, self._refuse, refusal)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
