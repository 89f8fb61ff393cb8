"""One connection to an upstream server, and the calls open on it.

A batch is packed into full DATA frames, so sending costs per frame, not per message. What may be
written is bounded twice: by the server's flow-control windows and by the socket's own buffer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    RemoteSettingsChanged,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
    WindowUpdated,
)
from h2.exceptions import NoAvailableStreamIDError, ProtocolError, TooManyStreamsError

from skyfarer.base.units import KIB
from skyfarer.wire.http2 import Http2, keep_alive
from skyfarer.wire.metadata import Header
from skyfarer.wire.outgoing import Listening, Outgoing
from skyfarer.wire.status import Status, StatusError, of_reset

# Packed before a write, and again the most that the socket may leave unsent.
OUTPUT_BYTES_MAX: Final = 256 * KIB
_PUSHED_STREAMS_MAX: Final = 1  # pushing is switched off; h2 wants a number all the same

_Call = TypeVar("_Call", bound=Outgoing)


class Channel(asyncio.Protocol):
    """Made by the event loop's `create_connection`, then `await established()`. Event loop only.

    `usable` turns False for good once the connection is lost or the server wants no more calls.
    """

    def __init__(self) -> None:
        self._http2 = Http2(client_side=True, streams_max=_PUSHED_STREAMS_MAX)
        self._transport: asyncio.Transport | None = None
        self._calls: dict[int, Outgoing] = {}
        self._established = asyncio.Event()
        self._writable = asyncio.Event()
        self._window_opened = asyncio.Event()
        self._closed = asyncio.Event()
        self._unwritten_bytes = 0
        self._draining = False
        self.received_bytes = 0
        self._handlers: dict[type[Event], Callable[[Any], None]] = {
            ResponseReceived: self._on_headers,
            TrailersReceived: self._on_headers,
            DataReceived: self._on_data,
            StreamEnded: self._on_end,
            StreamReset: self._on_reset,
            RemoteSettingsChanged: self._on_settings,
            WindowUpdated: self._on_window,
            ConnectionTerminated: self._on_goaway,
        }

    @property
    def usable(self) -> bool:
        return not self._draining and not self._closed.is_set()

    async def established(self) -> None:
        """Returns when the server has sent its settings; StatusError when it never will."""
        await self._established.wait()
        if self._closed.is_set():
            raise StatusError(Status.UNAVAILABLE, "the server closed the connection")

    async def call(self, headers: Iterable[Header], body: Iterable[bytes]) -> bytes:
        """The response message; StatusError when the call ends with anything but OK."""
        call = self._open(headers, Outgoing)
        try:
            await self._send(call, body)
            return await call.response
        finally:
            self.end(call)

    def listen(self, headers: Iterable[Header]) -> Listening:
        """Opens a call that is sent to, and heard, message by message; it must be ended."""
        call = self._open(headers, Listening)
        self._write_output()
        return call

    async def send(self, call: Outgoing, block: bytes, end: bool = False) -> None:
        """Returns when it may be written, or when the call has ended."""
        await self._send_block(call, block, end)
        self._write_output()

    async def hear(self, call: Listening) -> bytes | None:
        """As `Listening.take`; the server may send more for what was taken."""
        message, size = await call.take()
        if size:
            self._http2.acknowledge_stream(size, call.stream_id)
            self._write_output()
        return message

    def end(self, call: Outgoing) -> None:
        """The stream must not outlive the call, whichever way that ended. Once."""
        del self._calls[call.stream_id]
        call.discard()
        if not call.closed and self._transport is not None and not self._transport.is_closing():
            self._http2.reset_stream(call.stream_id, ErrorCodes.CANCEL)
            self._write_output()
        self._close_if_idle()

    def abort(self) -> None:
        self._draining = True
        if self._transport is not None:
            self._transport.abort()

    async def close(self) -> None:
        """Returns when the calls that are open have ended; the caller bounds that in time."""
        self._draining = True
        self._close_if_idle()
        await self._closed.wait()

    def _open(self, headers: Iterable[Header], make: Callable[[int], _Call]) -> _Call:
        if not self.usable:
            raise StatusError(Status.UNAVAILABLE, "the connection is closed")
        try:
            stream_id = self._http2.get_next_available_stream_id()
            self._http2.send_headers(stream_id, headers)
        except TooManyStreamsError as error:
            raise StatusError(Status.UNAVAILABLE, "too many calls are open") from error
        except NoAvailableStreamIDError as error:
            self._draining = True
            raise StatusError(Status.UNAVAILABLE, "the connection is used up") from error
        call = make(stream_id)
        self._calls[stream_id] = call
        return call

    async def _send(self, call: Outgoing, body: Iterable[bytes]) -> None:
        blocks = iter(body)
        block: bytes | None = next(blocks, b"")
        while block is not None and not call.ended:
            following = next(blocks, None)
            await self._send_block(call, block, end=following is None)
            block = following
        self._write_output()

    async def _send_block(self, call: Outgoing, block: bytes, end: bool) -> None:
        """Stops where the call has ended: a server need not hear all to refuse it."""
        view = memoryview(block)
        while not call.sent:
            room = await self._room(call) if view else 0
            if call.ended:
                return
            piece, view = view[:room], view[room:]
            call.sent = end and not view
            self._http2.send_data(call.stream_id, piece, end_stream=call.sent)
            self._unwritten_bytes += len(piece)
            if not view:
                return

    async def _room(self, call: Outgoing) -> int:
        """How much may go into the next frame; returns at once when the call has ended."""
        while not call.ended:
            window = self._http2.local_flow_control_window(call.stream_id)
            if self._unwritten_bytes >= OUTPUT_BYTES_MAX:
                self._write_output()
                await self._writable.wait()
            elif window > 0:
                return min(window, self._http2.max_outbound_frame_size)
            else:
                self._write_output()
                self._window_opened.clear()
                await self._window_opened.wait()
        return 0

    def _close_if_idle(self) -> None:
        if self._draining and not self._calls and self._transport is not None:
            self._transport.close()

    def _write_output(self) -> None:
        self._unwritten_bytes = 0
        output = self._http2.data_to_send()
        if output and self._transport is not None:
            self._transport.write(output)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        keep_alive(transport)
        transport.set_write_buffer_limits(high=OUTPUT_BYTES_MAX)
        self._writable.set()
        transport.write(self._http2.open())

    def data_received(self, data: bytes) -> None:
        self.received_bytes += len(data)
        try:
            events = self._http2.receive_data(data)
        except ProtocolError as error:
            self._write_output()
            self._fail_calls(StatusError(Status.INTERNAL, f"the server broke HTTP/2: {error}"))
            self.abort()
            return
        for event in events:
            handler = self._handlers.get(type(event))
            if handler is not None:
                handler(event)
        self._write_output()

    def _on_headers(self, event: ResponseReceived | TrailersReceived) -> None:
        call = self._calls.get(event.stream_id)
        if call is not None:
            call.headers(event.headers)

    def _on_data(self, event: DataReceived) -> None:
        size = event.flow_controlled_length
        self._http2.acknowledge_connection(size)
        call = self._calls.get(event.stream_id)
        if call is not None:
            self._http2.acknowledge_stream(call.data(event.data, size), event.stream_id)

    def _on_end(self, event: StreamEnded) -> None:
        call = self._calls.get(event.stream_id)
        if call is not None:
            call.finish()
            self._window_opened.set()

    def _on_reset(self, event: StreamReset) -> None:
        call = self._calls.get(event.stream_id)
        if call is not None:
            call.closed = True
            call.fail(StatusError(of_reset(event.error_code), "the server reset the call"))
            self._window_opened.set()

    def _on_settings(self, event: RemoteSettingsChanged) -> None:
        self._established.set()
        self._window_opened.set()

    def _on_window(self, event: WindowUpdated) -> None:
        self._window_opened.set()

    def _on_goaway(self, event: ConnectionTerminated) -> None:
        """Calls that the server has not begun are lost to it; those it has may end."""
        self._draining = True
        last = event.last_stream_id or 0
        for call in self._calls.values():
            if call.stream_id > last:
                call.fail(StatusError(Status.UNAVAILABLE, "the server is going away"))
        self._window_opened.set()
        self._close_if_idle()

    def _fail_calls(self, error: StatusError) -> None:
        for call in self._calls.values():
            call.fail(error)
        self._window_opened.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed.set()
        self._transport = None
        self._fail_calls(StatusError(Status.UNAVAILABLE, "the connection was lost"))
        self._writable.set()
        self._established.set()
