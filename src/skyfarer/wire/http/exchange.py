"""One HTTP/1.1 connection: requests one after another, each answered when it is kept.

    waits for a request   `idle_timeout_s`      then it is closed
    header arrives        `header_timeout_s`    then it is closed, however slowly it drips
    body arrives          `body_timeout_s`      then 408, and it is closed
    answer is read        OUTPUT_STALL_S        then it is cut off

A request that is refused before its body was read ends the connection, since what follows is the
body; the answer is given time to be read.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol

import h11

from skyfarer.base.units import KIB, MIB
from skyfarer.telemetry.metrics import Registry
from skyfarer.telemetry.table import RECEIVER_BYTES, RECEIVER_CALLS
from skyfarer.wire.http.answers import Answer, Refused, refused
from skyfarer.wire.http.body import Body, Held
from skyfarer.wire.http.desk import Desk, Door, media_type
from skyfarer.wire.receiver import Refusal

if TYPE_CHECKING:
    from skyfarer.wire.tokens import Tokens

log = logging.getLogger(__name__)

READ_BYTES: Final = 64 * KIB
HEADER_BYTES_MAX: Final = 16 * KIB
OUTPUT_STALL_S: Final = 30.0
LINGER_S: Final = 2.0
CLOSE_S: Final = 5.0
UNKNOWN: Final = "unknown"
FIREHOSE_TOKEN: Final = b"x-amz-firehose-access-key"  # it can send no other header
NEEDS_TOKEN: Final = "a valid token is needed in the header 'authentication'"
_CHALLENGE: Final = (("www-authenticate", 'token header="authentication"'),)
_GO_ON: Final = h11.InformationalResponse(status_code=100, headers=[])


@dataclass(frozen=True)
class HttpSettings:
    """`port` 0 takes any free one. `body_bytes_max` holds for a body inflated, too.
    `held_bytes_max` bounds all bodies that are not kept yet, and must be able to hold one.
    `otlp_json`: OpenTelemetry's exporters may speak JSON, too."""

    host: str = "127.0.0.1"
    port: int = 0
    header_bytes_max: int = HEADER_BYTES_MAX
    body_bytes_max: int = 2 * MIB
    held_bytes_max: int = 16 * MIB
    connections_max: int = 1000
    connections_per_source_max: int = 1000
    idle_timeout_s: float = 300.0
    header_timeout_s: float = 10.0
    body_timeout_s: float = 60.0
    otlp_json: bool = False


class House(Protocol):
    """What the connections of one server share."""

    settings: HttpSettings
    desk: Desk
    held: Held
    registry: Registry
    tokens: Tokens | None
    stopping: bool

    def count_refused(self, reason: Refusal) -> None: ...


class Exchange:
    """`busy` from a request's header to its answer: a stop waits for such a connection."""

    def __init__(
        self, house: House, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._house = house
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(
            h11.SERVER, max_incomplete_event_size=house.settings.header_bytes_max
        )
        self.busy = False

    async def run(self) -> None:
        """Until either side has had enough; the socket is closed on return."""
        try:
            while await self._one():
                self._http.start_next_cycle()
            await self._linger()
        except h11.RemoteProtocolError as error:
            await self._protocol_error(error)
        except OSError:
            log.debug("a connection was lost or too slow", exc_info=True)
        except Exception:
            log.exception("a request could not be answered")
        finally:
            await self._close()

    def abort(self) -> None:
        self._writer.transport.abort()

    async def _one(self) -> bool:
        """Answers one request; whether another one may follow."""
        request = await self._request()
        if request is None:
            return False
        self.busy = True
        try:
            await self._send(await self._answer(request), request.method != b"HEAD")
        finally:
            self.busy = False
        return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE

    async def _request(self) -> h11.Request | None:
        settings, http = self._house.settings, self._http
        began = bool(http.trailing_data[0])
        timeout_s = settings.header_timeout_s if began else settings.idle_timeout_s
        try:
            async with asyncio.timeout(timeout_s) as limit:
                while (event := http.next_event()) is h11.NEED_DATA:
                    http.receive_data(await self._reader.read(READ_BYTES))
                    if not began:
                        began = True
                        now_s = asyncio.get_running_loop().time()
                        limit.reschedule(now_s + settings.header_timeout_s)
        except TimeoutError:
            self._house.count_refused(Refusal.HANDSHAKE_TIMEOUT if began else Refusal.IDLE)
            raise
        return event if isinstance(event, h11.Request) else None

    async def _answer(self, request: h11.Request) -> Answer:
        header = {name: value.decode("latin-1") for name, value in request.headers}
        asked_in = media_type(header.get(b"content-type", ""))
        door: Door | None = None
        try:
            path = request.target.partition(b"?")[0].decode("latin-1")
            door = self._house.desk.door(path)
            self._check_token(header)
            door = self._house.desk.find(path)
            self._house.desk.check(door, request.method, asked_in)
            answer = await self._take(door, header, asked_in)
        except Refused as refusal:
            answer = refused(door.endpoint.dialect if door else None, refusal, asked_in)
        name = door.endpoint.path if door else UNKNOWN
        self._house.registry.inc(RECEIVER_CALLS, rpc=name, status=str(answer.status))
        return answer

    def _check_token(self, header: dict[bytes, str]) -> None:
        """Before anything is told about what is served."""
        tokens = self._house.tokens
        if tokens is None:
            return
        shown = header.get(b"authentication", header.get(FIREHOSE_TOKEN))
        if not tokens.admits(None if shown is None else shown.encode("latin-1")):
            raise Refused(401, NEEDS_TOKEN, _CHALLENGE)

    async def _take(self, door: Door, header: dict[bytes, str], asked_in: str) -> Answer:
        settings = self._house.settings
        encoding = header.get(b"content-encoding", "").strip().lower()
        body = Body(encoding, settings.body_bytes_max, self._house.held)
        try:
            body.expect(int(header.get(b"content-length", "0")))
            async with asyncio.timeout(settings.body_timeout_s):
                await self._read(body)
            return await self._house.desk.take(door, body.end(), asked_in)
        except TimeoutError as error:
            sentence = f"the body took longer than {settings.body_timeout_s:g} seconds"
            raise Refused(408, sentence) from error
        finally:
            body.close()

    async def _read(self, body: Body) -> None:
        http, received = self._http, 0
        while True:
            event = http.next_event()
            if isinstance(event, h11.Data):
                received += len(event.data)
                body.feed(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                self._house.registry.inc(RECEIVER_BYTES, received)
                return
            elif event is h11.NEED_DATA:
                if http.they_are_waiting_for_100_continue:
                    self._writer.write(http.send(_GO_ON) or b"")
                http.receive_data(await self._reader.read(READ_BYTES))
            else:
                raise ConnectionResetError("the client went away")

    async def _send(self, answer: Answer, with_body: bool = True) -> None:
        http = self._http
        headers = [("content-type", answer.content_type), ("content-length", str(len(answer.body)))]
        headers += answer.headers
        if http.their_state is not h11.DONE or self._house.stopping:
            headers.append(("connection", "close"))
        reason = HTTPStatus(answer.status).phrase  # what clients show when it is no success
        response = h11.Response(status_code=answer.status, headers=headers, reason=reason)
        self._writer.write(
            (http.send(response) or b"")
            + (http.send(h11.Data(data=answer.body if with_body else b"")) or b"")
            + (http.send(h11.EndOfMessage()) or b"")
        )
        try:
            async with asyncio.timeout(OUTPUT_STALL_S):
                await self._writer.drain()
        except TimeoutError:
            self._house.count_refused(Refusal.OUTPUT_STALLED)
            self.abort()
            raise

    async def _protocol_error(self, error: h11.RemoteProtocolError) -> None:
        self._house.count_refused(Refusal.PROTOCOL_ERROR)
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        with suppress(OSError):
            await self._send(refused(None, Refused(error.error_status_hint, f"{error}")))
            await self._linger()

    async def _linger(self) -> None:
        """Reads on for a little: bytes that nobody read would make the kernel throw the answer
        away."""
        if self._http.their_state not in (h11.SEND_BODY, h11.ERROR) or self._reader.at_eof():
            return
        with suppress(OSError):
            async with asyncio.timeout(LINGER_S):
                if self._writer.can_write_eof():
                    self._writer.write_eof()
                while await self._reader.read(READ_BYTES):
                    pass

    async def _close(self) -> None:
        self._writer.close()
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._writer.wait_closed()
        except OSError:
            self.abort()
