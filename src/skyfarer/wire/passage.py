"""Calls on their way through: from an agent to the upstream, and its answer back.

Nothing here blocks the event loop, and nothing is held without a bound: so many calls, so many
bytes of them over all connections (`relayed`), and of one stream no more than its flow-control
window, since the window is given back only when the upstream has taken what came in it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from skyfarer.base.errors import SkyfarerError
from skyfarer.wire.calls import Call
from skyfarer.wire.framing import prefixed
from skyfarer.wire.relay import Metadata, Relay
from skyfarer.wire.relayed import Relayed, Share
from skyfarer.wire.rpc import Rpc
from skyfarer.wire.status import Status, StatusError
from skyfarer.wire.window import Withheld

log = logging.getLogger(__name__)


class Port(Protocol):
    """The agent's side of a passage."""

    def ready(self, call: Call) -> None:
        """There is something of its answer to write."""

    def give_back(self, call: Call, size: int) -> None:
        """The agent may send so much more in this call."""


class Passage(Protocol):
    """Event loop only. StatusError of any method ends the call."""

    def take(self, data: bytes, size: int) -> None:
        """DATA of the call; `size` counts padding, too."""

    def end(self) -> None:
        """The agent has sent all."""

    def written(self) -> None:
        """What was ready is written."""

    def cancel(self) -> None:
        """The call is over. Once."""


class Asked:
    """One message, one answer."""

    def __init__(self, call: Call, metadata: Metadata, relayed: Relayed, port: Port) -> None:
        self._call = call
        self._rpc, self._relay = _target(call)
        self._metadata = metadata
        self._port = port
        self._share = Share(relayed)
        self._messages: list[bytes] = []
        self._task: asyncio.Task[None] | None = None

    def take(self, data: bytes, size: int) -> None:
        call, before = self._call, len(self._messages)
        assert call.splitter is not None
        self._port.give_back(call, size)
        call.splitter.feed(data, self._messages)
        call.count(len(self._messages) - before)

    def end(self) -> None:
        """Only now does it count: a call that never says what it asks keeps no place."""
        self._share.enter()
        self._share.hold(len(self._messages[0]))
        self._task = _started(self._ask(self._messages[0]), self._fail)

    def written(self) -> None:
        """The answer was all."""

    def cancel(self) -> None:
        self._share.leave()
        if self._task is not None:
            self._task.cancel()

    async def _ask(self, message: bytes) -> None:
        call = self._call
        try:
            answer = await self._relay.ask(self._rpc, message, self._metadata)
            self._share.hold(len(answer))
        except (StatusError, SkyfarerError) as error:
            self._fail(error)
            return
        call.answer(answer)
        self._port.ready(call)

    def _fail(self, error: BaseException) -> None:
        self._call.error = _told(error, self._rpc)
        self._port.ready(self._call)


class Piped:
    """Messages go through as they come, both ways, until the upstream ends the call."""

    def __init__(self, call: Call, metadata: Metadata, relayed: Relayed, port: Port) -> None:
        self._call = call
        self._rpc, relay = _target(call)
        self._port = port
        self._share = Share(relayed)
        self._share.enter()
        self._waiting: deque[bytes] = deque()
        self._withheld = Withheld()
        self._all_came = False
        self._came = asyncio.Event()
        self._written = asyncio.Event()
        try:
            self._conversation = relay.converse(self._rpc, metadata)
        except Exception as error:
            self._share.leave()
            raise _told(error, self._rpc) from error
        self._tasks = (_started(self._send(), self._fail), _started(self._answer(), self._fail))

    def take(self, data: bytes, size: int) -> None:
        call, messages = self._call, list[bytes]()
        assert call.splitter is not None
        try:
            call.splitter.feed(data, messages)
        finally:
            self._waiting.extend(messages)
            self._came.set()
        call.count(len(messages))
        self._share.hold(sum(map(len, messages)))
        self._port.give_back(call, self._withheld.came(size, messages))

    def end(self) -> None:
        self._all_came = True
        self._came.set()

    def written(self) -> None:
        self._written.set()

    def cancel(self) -> None:
        self._share.leave()
        for task in self._tasks:
            task.cancel()
        self._conversation.cancel()

    async def _send(self) -> None:
        try:
            while self._waiting or not self._all_came:
                if not self._waiting:
                    self._came.clear()
                    await self._came.wait()
                    continue
                message = self._waiting.popleft()
                await self._conversation.send(message)
                self._share.release(len(message))
                self._port.give_back(self._call, self._withheld.taken(message))
            await self._conversation.end()
        except (StatusError, SkyfarerError):
            return  # the same, or what led to it, is what `_answer` is told

    async def _answer(self) -> None:
        call = self._call
        try:
            while (message := await self._conversation.receive()) is not None:
                self._share.hold(len(message))
                self._written.clear()
                call.body = prefixed(message)
                self._port.ready(call)
                await self._written.wait()
                self._share.release(len(message))
        except (StatusError, SkyfarerError) as error:
            self._fail(error)
            return
        call.complete = True
        self._port.ready(call)

    def _fail(self, error: BaseException) -> None:
        if not self._call.decided:
            self._call.error = _told(error, self._rpc)
            self._port.ready(self._call)


def _target(call: Call) -> tuple[Rpc, Relay]:
    assert call.route is not None and call.route.relay is not None
    return call.route.rpc, call.route.relay


def _started(
    work: Coroutine[Any, Any, None], fail: Callable[[BaseException], None]
) -> asyncio.Task[None]:
    """A task whose defects end its call, and are not lost."""

    def ended(task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            fail(error)

    task = asyncio.create_task(work)
    task.add_done_callback(ended)
    return task


def _told(error: BaseException, rpc: Rpc) -> StatusError:
    """What the agent is told of it."""
    if isinstance(error, StatusError):
        return error
    if isinstance(error, SkyfarerError):
        return StatusError(Status.UNAVAILABLE, str(error))
    log.error("%s could not be passed on", rpc.path, exc_info=error)
    return StatusError(Status.INTERNAL, "internal error")
