"""One call at the sending end: what has come of its answer, and how it ended."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Final

from skyfarer.base.units import MIB
from skyfarer.wire.framing import Splitter
from skyfarer.wire.metadata import Header
from skyfarer.wire.status import Status, StatusError, decode_message, of_http, of_trailer
from skyfarer.wire.window import Withheld

RESPONSE_BYTES_MAX: Final = 4 * MIB


class Outgoing:
    """`response` is done when the call has ended: the message, or a StatusError.

    `sent`: all of the request is written. `closed`: the stream needs no reset from us.
    """

    __slots__ = ("_fields", "_messages", "_splitter", "closed", "response", "sent", "stream_id")

    def __init__(self, stream_id: int) -> None:
        self.stream_id = stream_id
        self.response: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.sent = False
        self.closed = False
        self._fields: dict[bytes, bytes] = {}
        self._splitter: Splitter | None = None
        self._messages: list[bytes] = []

    @property
    def ended(self) -> bool:
        return self.response.done()

    def headers(self, headers: Iterable[Header]) -> None:
        """Of the answer: its head or its trailers."""
        self._fields.update(headers)

    def data(self, data: bytes, size: int) -> int:
        """`size` counts padding, too; returns how much of the stream's window is free again."""
        self._split(data, self._messages)
        return size

    def _split(self, data: bytes, into: list[bytes]) -> None:
        if self.ended:
            return
        try:
            if self._splitter is None:
                encoding = self._fields.get(b"grpc-encoding", b"identity")
                self._splitter = Splitter(RESPONSE_BYTES_MAX, encoding)
            self._splitter.feed(data, into)
        except StatusError as error:
            self.fail(error)

    def finish(self) -> None:
        """The server has ended the call."""
        self.closed = self.sent
        status, message = self._status()
        if status is not Status.OK:
            self.fail(StatusError(status, message))
        elif not self.sent:
            # What it has not read it cannot have kept.
            self.fail(StatusError(Status.UNAVAILABLE, "answered before all messages were sent"))
        elif not self.ended:
            self.response.set_result(self._messages[0] if self._messages else b"")

    def fail(self, error: StatusError) -> None:
        if not self.ended:
            self.response.set_exception(error)

    def discard(self) -> None:
        """Nobody waits any more; an error nobody will see is not worth a warning."""
        if not self.response.cancel() and not self.response.cancelled():
            self.response.exception()

    def _status(self) -> tuple[Status, str]:
        number = self._fields.get(b"grpc-status")
        code = self._fields.get(b":status", b"")
        if number is None and code != b"200":
            return of_http(code), f"HTTP status {code.decode('latin-1')}"
        return of_trailer(number), decode_message(self._fields.get(b"grpc-message", b""))


class Listening(Outgoing):
    """A call whose answers are taken one by one while it is open. `response` has no message."""

    __slots__ = ("_changed", "_waiting", "_withheld")

    def __init__(self, stream_id: int) -> None:
        super().__init__(stream_id)
        self._waiting: deque[bytes] = deque()
        self._withheld = Withheld()
        self._changed = asyncio.Event()

    def data(self, data: bytes, size: int) -> int:
        messages: list[bytes] = []
        self._split(data, messages)
        self._waiting.extend(messages)
        self._changed.set()
        return self._withheld.came(size, messages)

    def finish(self) -> None:
        """The server may end the call before it has heard all."""
        self.closed = self.sent
        status, message = self._status()
        if status is not Status.OK:
            self.fail(StatusError(status, message))
        elif not self.ended:
            self.response.set_result(b"")
            self._changed.set()

    def fail(self, error: StatusError) -> None:
        super().fail(error)
        self._changed.set()

    async def take(self) -> tuple[bytes | None, int]:
        """The next message, and how much of the window is free again by its taking.

        None after the last one; StatusError when the call failed.
        """
        while not self._waiting and not self.ended:
            self._changed.clear()
            await self._changed.wait()
        if self._waiting:
            message = self._waiting.popleft()
            return message, self._withheld.taken(message)
        self.response.result()
        return None, 0
