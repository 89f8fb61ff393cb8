"""Calls that the main process answers, as the receiver sees them: a question out, an answer in.

    out   {"ask": 7, "path": "/Register/doServiceRegister", "payload": <base64>,
           "again": false, "within_s": 5.0}
    in    {"answer": 7, "payload": <base64>}
          {"answer": 7, "status": "UNAVAILABLE", "message": "..."}
          {"answer": 7, "keep": [[kind, <base64>], ...]}

`keep` has records for the queue that only this process writes. They are appended, durably, and the
same is asked again. Every question is answered once, so one whose caller has gone away still counts
until then: the main process never has more of them than the bounds here.

Nothing is decoded. The uploads of profilers need no answer of anyone: their messages are kept as
they come, each made whole by what the first one said of its origin.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, Final, NoReturn

from skyfarer.base.units import MIB
from skyfarer.telemetry.metrics import Registry
from skyfarer.telemetry.table import RECEIVER_MESSAGES
from skyfarer.wire.identity import Identity
from skyfarer.wire.metadata import Metadata
from skyfarer.wire.relay import Conversation
from skyfarer.wire.routes import Append, Keeper
from skyfarer.wire.rpc import Rpc
from skyfarer.wire.status import Status, StatusError

QUESTIONS_MAX: Final = 1024
QUESTION_BYTES_MAX: Final = 1 * MIB
ASKED_BYTES_MAX: Final = 16 * MIB
# A caller that sets no deadline, or a later one, has this one. An old agent whose question fails
# may never ask again, so it leaves room for the longest that an answer can be held back.
WITHIN_S_MAX: Final = 80.0
# An address is three records in a row; more rounds than these are a defect of whoever answers.
ROUNDS_MAX: Final = 8

Say = Callable[[Mapping[str, Any]], None]


class Asking:
    """A `Relay`. Event loop only.

    `say` must not block. `append` is the queue's: called on the loop, it may block as disks do.
    """

    def __init__(self, say: Say, append: Append, registry: Registry) -> None:
        self._say = say
        self._registry = registry
        self._keeper = Keeper(append)
        self._numbers = count(1)
        self._asked: dict[int, tuple[asyncio.Future[dict[str, Any]], int]] = {}
        self._bytes = 0
        self._closed = False

    async def ask(self, rpc: Rpc, message: bytes, metadata: Metadata) -> bytes:
        if len(message) > QUESTION_BYTES_MAX:
            raise StatusError(
                Status.RESOURCE_EXHAUSTED,
                f"a question of {len(message)} bytes exceeds the limit of {QUESTION_BYTES_MAX}",
            )
        allowed_s = metadata.timeout_s
        within_s = WITHIN_S_MAX if allowed_s is None else min(allowed_s, WITHIN_S_MAX)
        try:
            async with asyncio.timeout(within_s):
                return await self._rounds(rpc.path, message, within_s)
        except TimeoutError:
            raise StatusError(
                Status.DEADLINE_EXCEEDED, f"no answer within {within_s:.1f} s, try again"
            ) from None

    def converse(self, rpc: Rpc, _metadata: Metadata) -> Conversation:
        return Upload(rpc, self._keeper, self._registry)

    def hear(self, line: bytes) -> None:
        """A line of the main process."""
        answer = json.loads(line)
        asked = self._asked.pop(answer.get("answer"), None)
        if asked is None:
            return
        future, size = asked
        self._bytes -= size
        if not future.done():
            future.set_result(answer)

    def close(self) -> None:
        """Who still waits is told to come back, and so is whoever asks from now on. Safe twice."""
        self._closed = True
        for future, _ in self._asked.values():
            if not future.done():
                future.set_exception(_away())
        self._asked.clear()
        self._bytes = 0

    async def _rounds(self, path: str, message: bytes, within_s: float) -> bytes:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within_s
        for again in range(ROUNDS_MAX):
            answer = await self._answered(path, message, bool(again), deadline - loop.time())
            if "payload" in answer:
                return b64decode(answer["payload"])
            if "keep" not in answer:
                raise StatusError(Status[answer["status"]], answer["message"])
            self._keep(answer["keep"])
        raise StatusError(Status.INTERNAL, f"{path} was not answered in {ROUNDS_MAX} rounds")

    def _keep(self, records: list[tuple[int, str]]) -> None:
        for kind in {kind for kind, _ in records}:
            payloads = [b64decode(payload) for of, payload in records if of == kind]
            error = self._keeper.append(kind, payloads)
            if error is not None:
                raise error

    async def _answered(
        self, path: str, message: bytes, again: bool, within_s: float
    ) -> dict[str, Any]:
        if self._closed:
            raise _away()
        if len(self._asked) >= QUESTIONS_MAX or self._bytes + len(message) > ASKED_BYTES_MAX:
            raise StatusError(Status.RESOURCE_EXHAUSTED, "too many questions wait, try again")
        number = next(self._numbers)
        future = asyncio.get_running_loop().create_future()
        self._asked[number] = future, len(message)
        self._bytes += len(message)
        self._say(
            {
                "ask": number,
                "path": path,
                "payload": b64encode(message).decode("ascii"),
                "again": again,
                "within_s": within_s,
            }
        )
        answer: dict[str, Any] = await future
        return answer


class Upload:
    """A `Conversation` that keeps what it is sent.

    The first message says what will come, and its sender waits for a word that it may: an empty
    answer, which is success in every protocol of this kind. The others are not answered one by one.
    """

    def __init__(self, rpc: Rpc, keeper: Keeper, registry: Registry) -> None:
        self._rpc = rpc
        self._keeper = keeper
        self._registry = registry
        self._identity = Identity(rpc.identity)
        self._answers: asyncio.Queue[bytes | StatusError | None] = asyncio.Queue()
        self._messages = 0

    async def send(self, message: bytes) -> None:
        try:
            record = self._identity.complete(message)
        except StatusError as error:
            self._fail(error)
        failed = self._keeper.append(int(self._rpc.kind), (record,))
        if failed is not None:
            self._fail(failed)
        self._registry.inc(RECEIVER_MESSAGES, rpc=self._rpc.path)
        self._messages += 1
        if self._messages == 1:
            self._answers.put_nowait(b"")

    async def end(self) -> None:
        self._answers.put_nowait(None)

    async def receive(self) -> bytes | None:
        answer = await self._answers.get()
        if isinstance(answer, StatusError):
            raise answer
        return answer

    def cancel(self) -> None:
        self._answers.put_nowait(None)

    def _fail(self, error: StatusError) -> NoReturn:
        self._answers.put_nowait(error)
        raise error


def _away() -> StatusError:
    return StatusError(Status.UNAVAILABLE, "the OAP is stopping, try again")
