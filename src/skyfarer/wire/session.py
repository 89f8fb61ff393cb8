"""The HTTP/2 side of one agent's connection: bytes → h2 → messages → queue → answers.

One pass per read. Everything a read brought is split and appended first; only then are its calls
answered, the flow-control windows given back, and all of it written at once. So an answer is never
ahead of the queue, and the costs are per read and per frame, not per message. Calls that are passed
on have their own pace (`passage`): what they have to say is written when they are ready.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    RemoteSettingsChanged,
    RequestReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from h2.exceptions import ProtocolError

from skyfarer.base.units import KIB, MIB
from skyfarer.wire.calls import Call, HttpError, RefusedError, Sent
from skyfarer.wire.guard import ControlGuard
from skyfarer.wire.http2 import Http2
from skyfarer.wire.intake import Intake
from skyfarer.wire.metadata import Metadata
from skyfarer.wire.passage import Asked, Piped
from skyfarer.wire.receiver import Receiver, Refusal
from skyfarer.wire.status import Status, StatusError

# A frame or header block that h2 has not seen the end of: 64 CONTINUATION frames fit.
UNPARSED_BYTES_MAX: Final = 1 * MIB + 64 * KIB
HTTP_REQUEST_TIMEOUT_S: Final = 10.0  # of one that is refused, and not over yet


class Session:
    """Knows no socket: `write` takes bytes for the peer, `close` ends the connection after them.

    Event loop only.
    """

    def __init__(
        self,
        receiver: Receiver,
        loop: asyncio.AbstractEventLoop,
        write: Callable[[bytes], None],
        close: Callable[[], None],
    ) -> None:
        self._receiver = receiver
        self._loop = loop
        self._write = write
        self._close = close
        self._http2 = Http2(client_side=False, streams_max=receiver.settings.streams_max)
        self._intake = Intake(
            receiver.unfinished, receiver.registry, receiver.settings.refuse_malformed
        )
        self._guard = ControlGuard(loop.time)
        self._calls: dict[int, Call] = {}
        self._opened: list[Call] = []
        self._ready: list[Call] = []
        self._blocked: dict[int, Call] = {}
        self._unacked: dict[int, int] = {}
        self._unparsed_bytes = 0
        self._heard_at = receiver.sweeps
        self._draining = False
        self._paused = False
        self._reading = False
        self._finished = False
        self.established = False
        self._handlers: dict[type[Event], Callable[[Any], None]] = {
            RequestReceived: self._on_request,
            StreamEnded: self._on_end,
            StreamReset: self._on_reset,
            RemoteSettingsChanged: self._on_settings,
            WindowUpdated: self._on_window,
            ConnectionTerminated: self._on_goaway,
        }

    def open(self) -> None:
        self._write(self._http2.open())

    def receive(self, data: bytes) -> None:
        """One read of the socket."""
        try:
            events = self._http2.receive_data(data)
        except ProtocolError:
            self._finish(Refusal.PROTOCOL_ERROR)
            return
        if events:
            self._unparsed_bytes = 0
            self._heard_at = self._receiver.sweeps
        else:
            self._unparsed_bytes += len(data)
        self._reading = True
        for event in events:
            if type(event) is DataReceived:
                self._on_data(event)
            else:
                self._handlers.get(type(event), self._on_other)(event)
        self._reading = False
        self._settle()

    def drain(self) -> None:
        """GOAWAY: calls that are open may end, then `close` is called. Safe twice."""
        if not self._draining:
            self._draining = True
            self._http2.close_connection(ErrorCodes.NO_ERROR)
            self._settle()

    def pause(self) -> None:
        """The peer reads no answers: those of the upstream wait there."""
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._unblock()
        self._settle()

    def sweep(self) -> None:
        """Ends what has been silent for too long."""
        receiver, settings = self._receiver, self._receiver.settings
        calls = list(self._calls.values())
        for call in calls:
            unfinished = call.held_bytes and not call.decided
            if unfinished and receiver.passed(call.moved_at, settings.message_timeout_s):
                self._fail(call, StatusError(Status.DEADLINE_EXCEEDED, "a message took too long"))
            elif isinstance(call.error, HttpError) and receiver.passed(
                call.moved_at, HTTP_REQUEST_TIMEOUT_S
            ):
                self._ready.append(call)
            elif self._waits_for_a_peer(call) and receiver.passed(
                call.moved_at, settings.relayed_idle_timeout_s
            ):
                self._fail(call, StatusError(Status.DEADLINE_EXCEEDED, "nothing moved any more"))
        if self._ready or (self._draining and not calls):
            self._settle()
        elif not calls and receiver.passed(self._heard_at, settings.idle_timeout_s):
            self._part()

    def _part(self) -> None:
        """A call may be on its way just now: it is refused, and not cut off, until the next sweep;
        a client closes the connection itself before that."""
        self._receiver.count_refused(Refusal.IDLE)
        self._draining = True
        self._http2.close_connection(ErrorCodes.NO_ERROR)
        self._write_output()

    def _waits_for_a_peer(self, call: Call) -> bool:
        """It holds a place among the calls that are passed on, and no clock of ours runs."""
        if call.passage is None:
            return False
        return type(call.passage) is Piped or call.stream_id in self._blocked

    def ready(self, call: Call) -> None:
        """Of a `Port`."""
        call.moved_at = self._receiver.sweeps
        if self._calls.get(call.stream_id) is call and not self._finished:
            self._ready.append(call)
            self._settle()

    def give_back(self, call: Call, size: int) -> None:
        """Of a `Port`."""
        call.moved_at = self._receiver.sweeps
        if size and not self._finished:
            self._http2.acknowledge_stream(size, call.stream_id)
            if not self._reading:
                self._write_output()

    def lost(self) -> None:
        """The peer is gone, and with it the calls that are open."""
        for call in list(self._calls.values()):
            self._forget(call, Status.CANCELLED)

    def _on_data(self, event: DataReceived) -> None:
        stream_id, data = event.stream_id, event.data
        size = event.flow_controlled_length
        self._guard.data(len(data), event.stream_ended is not None)
        call = self._calls.get(stream_id)
        if call is not None and call.passage is not None and not call.decided:
            self._pass_on(call, data, size)
            return
        self._unacked[stream_id] = self._unacked.get(stream_id, 0) + size
        if call is None or call.decided or not data:
            return
        held, messages = call.held_bytes, call.messages
        try:
            self._intake.take(call, data)
        except StatusError as error:
            self._fail(call, error)
        if not held or call.messages != messages:
            call.moved_at = self._receiver.sweeps
        if self._intake.full:
            self._flush()

    def _pass_on(self, call: Call, data: bytes, size: int) -> None:
        assert call.passage is not None
        self._http2.acknowledge_connection(size)
        self._receiver.count_bytes(size)
        held, messages, moved_at = call.held_bytes, call.messages, call.moved_at
        try:
            call.passage.take(data, size)
            self._receiver.unfinished.count(call)
        except StatusError as error:
            self._fail(call, error)
        completed = not held or call.messages != messages
        call.moved_at = self._receiver.sweeps if completed else moved_at

    def _on_request(self, event: RequestReceived) -> None:
        call = self._calls[event.stream_id] = Call(event.stream_id)
        call.moved_at = self._receiver.sweeps
        self._opened.append(call)
        try:
            if self._draining:
                raise RefusedError(Status.UNAVAILABLE, "the server is stopping")
            settings, routes = self._receiver.settings, self._receiver.routes
            tokens = self._receiver.tokens
            call.read_headers(event.headers, routes, settings.message_bytes_max, tokens)
            if call.route is not None and call.route.relay is not None:
                make = Asked if call.unary else Piped
                metadata = Metadata.of_headers(event.headers, call.timeout_s)
                call.passage = make(call, metadata, self._receiver.relayed, self)
        except HttpError as error:
            call.error = error
        except StatusError as error:
            self._fail(call, error)

    def _on_end(self, event: StreamEnded) -> None:
        call = self._calls.get(event.stream_id)
        if call is None:
            return
        call.half_closed = True
        if isinstance(call.error, HttpError):
            self._ready.append(call)
        if call.decided:
            return
        try:
            call.check_ended()
            if call.passage is not None:
                call.passage.end()
                return
        except StatusError as error:
            self._fail(call, error)
            return
        call.answer(b"" if call.route is not None else self._receiver.health_answer())
        self._ready.append(call)

    def _on_reset(self, event: StreamReset) -> None:
        self._guard.control()
        call = self._calls.get(event.stream_id)
        if call is not None:
            self._forget(call, Status.CANCELLED)

    def _on_settings(self, event: RemoteSettingsChanged) -> None:
        self.established = True
        self._on_window(event)

    def _on_window(self, event: Event) -> None:
        self._guard.control()
        self._unblock()

    def _unblock(self) -> None:
        self._ready.extend(self._blocked.values())
        self._blocked.clear()

    def _on_goaway(self, event: ConnectionTerminated) -> None:
        self._draining = True

    def _on_other(self, event: Event) -> None:
        self._guard.control()

    def _fail(self, call: Call, error: StatusError) -> None:
        """Answered with the rest of the read: a later event of it may have reset the stream."""
        call.error = error
        self._ready.append(call)

    def _flush(self) -> None:
        for call, error in self._intake.flush().items():
            self._fail(call, error)

    def _settle(self) -> None:
        """The end of a read."""
        self._flush()
        self._answer_ready()
        self._acknowledge()
        for call in self._opened:
            if call.timeout_s is not None and call.stream_id in self._calls:
                call.timer = self._loop.call_later(call.timeout_s, self._expire, call)
        self._opened.clear()
        self._write_output()
        if self._guard.flooded() or self._unparsed_bytes > UNPARSED_BYTES_MAX:
            self._http2.close_connection(ErrorCodes.ENHANCE_YOUR_CALM)
            self._finish(Refusal.CONTROL_FLOOD)
        elif self._draining and not self._calls:
            self._finish(None)

    def _finish(self, refusal: Refusal | None) -> None:
        self._finished = True
        if refusal is not None:
            self._receiver.count_refused(refusal)
        self._write_output()
        self._close()

    def _answer_ready(self) -> None:
        for call in self._ready:
            if self._calls.get(call.stream_id) is not call:
                continue
            if self._write_answer(call) is Sent.BLOCKED:
                self._blocked[call.stream_id] = call
            elif call.decided:
                self._guard.answered()
                self._forget(call, call.error.status if call.error is not None else Status.OK)
            elif call.passage is not None:
                call.passage.written()
        self._ready.clear()

    def _write_answer(self, call: Call) -> Sent:
        if call.passage is None:
            return call.write(self._http2)
        if self._paused:
            return Sent.BLOCKED
        size = len(call.body)
        sent = call.write(self._http2)
        self._guard.sent(size - len(call.body))
        return sent

    def _acknowledge(self) -> None:
        received = 0
        for stream_id, size in self._unacked.items():
            received += size
            self._http2.acknowledge_received_data(size, stream_id)
        self._unacked.clear()
        self._receiver.count_bytes(received)

    def _expire(self, call: Call) -> None:
        if self._calls.get(call.stream_id) is call and not self._finished:
            self._fail(call, StatusError(Status.DEADLINE_EXCEEDED, "deadline exceeded"))
            self._settle()

    def _forget(self, call: Call, status: Status) -> None:
        del self._calls[call.stream_id]
        self._blocked.pop(call.stream_id, None)
        if call.timer is not None:
            call.timer.cancel()
        if call.passage is not None:
            call.passage.cancel()
        self._receiver.call_ended(call, status)

    def _write_output(self) -> None:
        output = self._http2.data_to_send()
        if output:
            self._unparsed_bytes = 0
            self._write(output)
