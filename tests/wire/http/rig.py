"""An HTTP server on the test's event loop, with a queue that does as the test says."""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skyfarer.telemetry.metrics import Registry
from skyfarer.wire.http.endpoints import ENDPOINTS
from skyfarer.wire.http.server import HttpServer, HttpSettings
from skyfarer.wire.relay import Relay
from skyfarer.wire.tls import HTTP_1, ServerTls, ServerTlsSettings
from skyfarer.wire.tokens import Tokens

HOST = "127.0.0.1"
WAIT_S = 120.0
PROTOBUF = {"Content-Type": "application/x-protobuf"}


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


class Rig:
    """`judge` sees what is appended before it counts as kept and refuses it by raising. `tls` has
    the files of `ServerTlsSettings`; what else is given are `HttpSettings`."""

    def __init__(
        self,
        judge: Callable[[], None] = lambda: None,
        tls: tuple[Path, ...] = (),
        tokens: Callable[[Registry], Tokens] | None = None,
        relay: Relay | None = None,
        **settings: Any,
    ) -> None:
        self.judge = judge
        self.kept: list[tuple[int, bytes]] = []
        self.registry = Registry()
        certificates = ServerTls(ServerTlsSettings(*tls, protocol=HTTP_1)) if tls else None
        self.server = HttpServer(
            HttpSettings(**settings),
            self.registry,
            certificates.context if certificates else None,
            tokens(self.registry) if tokens else None,
            relay=relay,
        )
        self.server.serve(dict.fromkeys(ENDPOINTS, self.append))

    def append(self, kind: int, payloads: Sequence[bytes]) -> None:
        self.judge()
        self.kept.extend((kind, bytes(one)) for one in payloads)

    @property
    def port(self) -> int:
        return self.server.port

    async def post(
        self,
        path: str,
        body: bytes | str = b"",
        headers: Mapping[str, str] | None = None,
        method: str = "POST",
    ) -> Reply:
        """By the standard library's client, on a connection of its own."""
        return await asyncio.to_thread(self._post, path, body, headers or {}, method)

    def _post(self, path: str, body: bytes | str, headers: Mapping[str, str], method: str) -> Reply:
        client = http.client.HTTPConnection(HOST, self.port, timeout=WAIT_S)
        try:
            client.request(method, path, body, dict(headers))
            return reply(client)
        finally:
            client.close()

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(HOST, self.port)

    async def say(self, data: bytes) -> bytes:
        """Everything the server answers to these bytes until it closes."""
        reader, writer = await self.open()
        try:
            writer.write(data)
            return await read_all(reader)
        finally:
            writer.close()

    def metric(self, line_start: str) -> float:
        lines = [one for one in self.registry.render().splitlines() if one.startswith(line_start)]
        return sum(float(one.rsplit(" ", 1)[1]) for one in lines)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_S):
            while True:
                if holds():
                    return
                await asyncio.sleep(0.005)


async def read_all(reader: asyncio.StreamReader) -> bytes:
    try:
        async with asyncio.timeout(WAIT_S):
            return await reader.read()
    except ConnectionResetError:
        return b""


def reply(client: http.client.HTTPConnection) -> Reply:
    response = client.getresponse()
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Reply(response.status, headers, response.read())


def run(rig: Rig, talk: Callable[[Rig], Coroutine[Any, Any, None]]) -> None:
    async def scenario() -> None:
        await rig.server.start()
        try:
            await talk(rig)
        finally:
            await rig.server.stop(1.0)
            await rig.server.stop(1.0)

    asyncio.run(scenario())
