"""A call that is open in both directions, at the sending end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from skyfarer.wire.channel import Channel
from skyfarer.wire.framing import prefixed
from skyfarer.wire.metadata import Header
from skyfarer.wire.outgoing import Listening
from skyfarer.wire.status import Status, StatusError

_Open = tuple[Channel, Listening]


class ClientConversation:
    """A `Conversation`. It connects by itself; `ended` is told its status, once."""

    def __init__(
        self,
        connected: Callable[[], Awaitable[Channel]],
        headers: list[Header],
        ended: Callable[[Status], None],
    ) -> None:
        self._ended = ended
        self._over = False
        self._opening: asyncio.Task[_Open] = asyncio.ensure_future(self._open(connected, headers))

    async def send(self, message: bytes) -> None:
        await self._send(prefixed(message), end=False)

    async def end(self) -> None:
        await self._send(b"", end=True)

    async def receive(self) -> bytes | None:
        try:
            channel, call = await self._opened()
            message = await channel.hear(call)
        except StatusError as error:
            self._finish(error.status)
            raise
        if message is None:
            self._finish(Status.OK)
        return message

    def cancel(self) -> None:
        self._finish(Status.CANCELLED)

    async def _open(
        self, connected: Callable[[], Awaitable[Channel]], headers: list[Header]
    ) -> _Open:
        channel = await connected()
        return channel, channel.listen(headers)

    async def _opened(self) -> _Open:
        if self._over:
            raise StatusError(Status.CANCELLED, "the conversation is over")
        return await asyncio.shield(self._opening)

    async def _send(self, block: bytes, end: bool) -> None:
        channel, call = await self._opened()
        if not call.ended:
            await channel.send(call, block, end)
        if call.ended:
            raise StatusError(Status.UNAVAILABLE, "the call has ended")

    def _finish(self, status: Status) -> None:
        if self._over:
            return
        self._over = True
        opening = self._opening
        if not opening.done():
            opening.cancel()
        elif not opening.cancelled() and opening.exception() is None:
            channel, call = opening.result()
            channel.end(call)
        self._ended(status)
