"""The main process's part of an HTTP request to the receiver: it passes it on, and the answer back.

A connection is made for each request and not used again. That costs less than what the request
costs anyway, and one that was kept might be closed just when it is needed: nobody could tell then
whether the receiver had kept what was posted.

Nothing is held but one piece of the body, and the receiver's answer, which is short. The body's
bound is the receiver's own, as is everything else it may refuse a request for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Final

import h11

from skyfarer.base.units import KIB
from skyfarer.oap.receivers import inner
from skyfarer.oap.receivers.collecting import COLLECTED, PASSED_ON_MAX
from skyfarer.wire.http.answers import Refused, refused
from skyfarer.wire.http.body import RETRY_AFTER
from skyfarer.wire.http.exchange import FIREHOSE_TOKEN

log = logging.getLogger(__name__)

ANSWER_BYTES_MAX: Final = 64 * KIB
# Beyond all that the receiver itself waits for, so that its word is heard.
TIMEOUT_S: Final = 90.0

Headers = Iterable[tuple[bytes, bytes]]
Passed = tuple[int, Mapping[str, str], bytes]
"""Status, headers and body of an answer."""

_TOLD: Final = (
    *(b"authentication", b"content-encoding", b"content-length", b"content-type"),
    FIREHOSE_TOKEN,
)
_OF_THE_HOP: Final = (b"connection", b"content-length", b"transfer-encoding")


class Front:
    """On one event loop. `paths` are what it passes on."""

    paths: tuple[str, ...] = tuple(COLLECTED)

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._open = 0

    async def pass_on(self, path: str, headers: Headers, body: AsyncIterator[bytes]) -> Passed:
        """The receiver's answer to a POST of these; 503 when there is none to be had.

        What `body` raises is raised, and the receiver keeps nothing then.
        """
        told = {name: value for name, value in headers if name in _TOLD}
        if self._open >= PASSED_ON_MAX:
            return _not_now(path, told, "too many requests are arriving at once, try again")
        self._open += 1
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return await self._ask(path, told, body)
        except (OSError, h11.RemoteProtocolError) as failure:
            log.debug("a request could not be passed on: %s", failure)
            return _not_now(path, told, "the receiver is not there just now, try again")
        finally:
            self._open -= 1

    async def _ask(
        self, path: str, told: Mapping[bytes, bytes], body: AsyncIterator[bytes]
    ) -> Passed:
        reader, writer = await inner.connect(self._socket)
        http = h11.Connection(h11.CLIENT)
        sending = asyncio.create_task(_send(http, writer, _request(path, told), body))
        hearing = asyncio.create_task(_hear(reader))
        try:
            # The answer may come before the body has: it is refused, then.
            await asyncio.wait({sending, hearing}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done() and not isinstance(sending.exception(), OSError):
                sending.result()
            http.receive_data(await hearing)
            http.receive_data(b"")
            return _answer(http)
        finally:
            for task in (sending, hearing):
                task.cancel()
            await asyncio.gather(sending, hearing, return_exceptions=True)
            writer.transport.abort()


def _request(path: str, told: Mapping[bytes, bytes]) -> h11.Request:
    headers = [(b"host", b"receiver"), (b"connection", b"close"), *told.items()]
    if b"content-length" not in told:
        headers.append((b"transfer-encoding", b"chunked"))
    return h11.Request(method=b"POST", target=path.encode("ascii"), headers=headers)


async def _send(
    http: h11.Connection,
    writer: asyncio.StreamWriter,
    request: h11.Request,
    body: AsyncIterator[bytes],
) -> None:
    writer.write(http.send(request) or b"")
    async for piece in body:
        writer.write(http.send(h11.Data(data=piece)) or b"")
        await writer.drain()
    writer.write(http.send(h11.EndOfMessage()) or b"")
    await writer.drain()


async def _hear(reader: asyncio.StreamReader) -> bytes:
    """All of the answer: the receiver closes behind it."""
    heard = bytearray()
    while piece := await reader.read(ANSWER_BYTES_MAX):
        heard += piece
        if len(heard) > ANSWER_BYTES_MAX:
            raise h11.RemoteProtocolError("the receiver's answer is too long")
    return bytes(heard)


def _answer(http: h11.Connection) -> Passed:
    response, body = http.next_event(), b""
    if not isinstance(response, h11.Response):
        raise h11.RemoteProtocolError("the receiver did not answer")
    while isinstance(event := http.next_event(), h11.Data):
        body += event.data
    if not isinstance(event, h11.EndOfMessage):
        raise h11.RemoteProtocolError("the receiver's answer was cut short")
    headers = {
        name.decode("ascii"): value.decode("latin-1")
        for name, value in response.headers
        if name not in _OF_THE_HOP
    }
    return response.status_code, headers, body


def _not_now(path: str, told: Mapping[bytes, bytes], sentence: str) -> Passed:
    asked_in = told.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")
    answer = refused(COLLECTED[path].dialect, Refused(503, sentence, RETRY_AFTER), asked_in)
    headers = {"content-type": answer.content_type, **dict(answer.headers)}
    return answer.status, headers, answer.body
