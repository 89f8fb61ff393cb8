"""The port that shows this program to its operator: GET /metrics, /healthcheck, and its own pages.

Until the program has started both answer 503: counts that are kept in files would be shown as 0
before they are read, which Prometheus takes for a counter that began anew.

On asyncio and h11, the two parts a sidecar has in memory anyway. Everything is bounded: the header
(HEADER_BYTES_MAX), the body that is read only to be thrown away (BODY_BYTES_MAX), the connections
(CONNECTIONS_MAX) and the time a client may take for one request (`idle_timeout_s`), however slowly
it drips.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Callable, Mapping
from typing import Final

import h11

from skyfarer.base.errors import PermanentError
from skyfarer.base.units import KIB
from skyfarer.telemetry.exposition import CONTENT_TYPE
from skyfarer.telemetry.health import NOT_STARTED, Health
from skyfarer.telemetry.metrics import Registry

log = logging.getLogger(__name__)

HEADER_BYTES_MAX: Final = 16 * KIB
BODY_BYTES_MAX: Final = 64 * KIB
CONNECTIONS_MAX: Final = 64
IDLE_TIMEOUT_S: Final = 30.0
READ_BYTES: Final = 16 * KIB

Answer = tuple[int, str, str]
Page = Callable[[], Answer]


class TelemetryServer:
    """Runs on the event loop that started it; `port` is the real one once `start` returned.
    `pages` are shown besides the two, or in their place: status, content type, text.

    It listens on `listener` where one is given, which is its own from then on.
    `stop` closes the port and the connections without a request at once, gives the others
    `timeout_s`, then cuts them off. It is safe twice and unstarted.
    """

    def __init__(
        self,
        host: str,
        port: int,
        registry: Registry,
        health: Health,
        idle_timeout_s: float = IDLE_TIMEOUT_S,
        pages: Mapping[str, Page] | None = None,
        listener: socket.socket | None = None,
    ) -> None:
        self.port = port
        self._host = host
        self._listener = listener
        self._idle_timeout_s = idle_timeout_s
        self._pages: dict[str, Page] = {
            "/metrics": lambda: _metrics(registry, health),
            "/healthcheck": lambda: _health(health),
            **(pages or {}),
        }
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._idle: set[asyncio.Task[None] | None] = set()

    async def start(self) -> None:
        try:
            if self._listener is not None:
                self._server = await asyncio.start_server(self._accept, sock=self._listener)
            else:
                self._server = await asyncio.start_server(self._accept, self._host, self.port)
        except OSError as error:
            where = f"{self._host}:{self.port}"
            raise PermanentError(f"telemetry cannot listen on {where}: {error}") from error
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self, timeout_s: float) -> None:
        if self._server is None:
            if self._listener is not None:
                self._listener.close()
            return
        self._server.close()
        self._server = None
        for connection in [task for task in self._connections if task in self._idle]:
            connection.cancel()
        if self._connections:
            _, late = await asyncio.wait(self._connections, timeout=timeout_s)
            for connection in late:
                connection.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= CONNECTIONS_MAX:
            writer.transport.abort()
            return
        connection = asyncio.ensure_future(self._serve(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEADER_BYTES_MAX)
        try:
            while (request := await self._next_request(http, reader)) is not None:
                await self._answer(http, writer, request)
                if {http.our_state, http.their_state} != {h11.DONE} or self._server is None:
                    break
                http.start_next_cycle()
        except h11.RemoteProtocolError as error:
            await self._refuse(http, writer, error)
        except OSError:
            log.debug("a telemetry connection was lost or too slow", exc_info=True)
        except Exception:
            log.exception("a telemetry request could not be answered")
        finally:
            writer.close()

    async def _next_request(
        self, http: h11.Connection, reader: asyncio.StreamReader
    ) -> h11.Request | None:
        task = asyncio.current_task()
        self._idle.add(task)
        try:
            async with asyncio.timeout(self._idle_timeout_s):
                return await _read_request(http, reader)
        finally:
            self._idle.discard(task)

    async def _answer(
        self, http: h11.Connection, writer: asyncio.StreamWriter, request: h11.Request
    ) -> None:
        path = request.target.partition(b"?")[0].decode("ascii")
        page = self._pages.get(path)
        if page is None:
            there_are = " and ".join(self._pages)
            answer: Answer = (404, "text/plain", f"there are {there_are}\n")
        elif request.method not in (b"GET", b"HEAD"):
            answer = (405, "text/plain", "only GET and HEAD\n")
        else:
            answer = page()
        await self._send(http, writer, answer, with_body=request.method != b"HEAD")

    async def _refuse(
        self, http: h11.Connection, writer: asyncio.StreamWriter, error: h11.RemoteProtocolError
    ) -> None:
        if http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            answer = (error.error_status_hint, "text/plain", f"{error}\n")
            await self._send(http, writer, answer, with_body=True)

    async def _send(
        self, http: h11.Connection, writer: asyncio.StreamWriter, answer: Answer, with_body: bool
    ) -> None:
        status, kind, text = answer
        body = text.encode()
        headers = [("content-type", kind), ("content-length", str(len(body)))]
        if status == 405:
            headers.append(("allow", "GET, HEAD"))
        writer.write(http.send(h11.Response(status_code=status, headers=headers)) or b"")
        if with_body:
            writer.write(http.send(h11.Data(data=body)) or b"")
        writer.write(http.send(h11.EndOfMessage()) or b"")
        async with asyncio.timeout(self._idle_timeout_s):
            await writer.drain()


async def _read_request(http: h11.Connection, reader: asyncio.StreamReader) -> h11.Request | None:
    """The next request, its body read and thrown away; None when no more will come."""
    request, body_bytes = None, 0
    while body_bytes <= BODY_BYTES_MAX:
        event = http.next_event()
        if event is h11.NEED_DATA:
            http.receive_data(await reader.read(READ_BYTES))
        elif isinstance(event, h11.Request):
            request = event
        elif isinstance(event, h11.Data):
            body_bytes += len(event.data)
        elif isinstance(event, h11.EndOfMessage):
            return request
        else:
            return None
    return None


def _metrics(registry: Registry, health: Health) -> Answer:
    if health.score() == NOT_STARTED:
        return 503, "text/plain", "starting; there are no counts yet\n"
    return 200, CONTENT_TYPE, registry.render()


def _health(health: Health) -> Answer:
    score = health.score()
    body = json.dumps({"score": score, "details": health.details()})
    return (200 if score == 0 else 503), "application/json", body + "\n"
