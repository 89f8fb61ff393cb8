"""One GET of a target's metrics, bounded in time and size."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import h11

from skyfarer.base.units import KIB
from skyfarer.satellite.fetchers.prometheus.target import Target
from skyfarer.wire.tls import ClientTls

READ_BYTES: Final = 64 * KIB
HEADER_BYTES_MAX: Final = 32 * KIB
GZIP_WINDOW_BITS: Final = 31
_ACCEPT: Final = (
    ("accept", "text/plain;version=0.0.4;q=1,*/*;q=0.1"),
    ("accept-encoding", "gzip"),
    ("user-agent", "skyfarer-satellite"),
    ("connection", "close"),
)


class ScrapeFailed(Exception):  # noqa: N818 - a state of the target, not of ours
    """`reason` is one word for counting: unreachable, timeout, status, too_large, malformed."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class ScrapeSettings:
    timeout_s: float
    body_bytes_max: int
    authorization: str = ""
    bearer_token_file: str = ""
    tls: ClientTls | None = None


async def scrape(target: Target, settings: ScrapeSettings) -> bytes:
    """The body, inflated. ScrapeFailed for whatever goes wrong over there or on the way."""
    try:
        async with asyncio.timeout(settings.timeout_s):
            return await _scrape(target, settings)
    except TimeoutError as error:
        raise ScrapeFailed("timeout", f"no answer in {settings.timeout_s:g} s") from error
    except OSError as error:
        raise ScrapeFailed("unreachable", error.strerror or str(error)) from error
    except h11.RemoteProtocolError as error:
        raise ScrapeFailed("malformed", f"is no HTTP: {error}") from error


async def _scrape(target: Target, settings: ScrapeSettings) -> bytes:
    secure = settings.tls if target.secure else None
    context = secure.context() if secure is not None else None
    if context is not None:
        context.set_alpn_protocols(["http/1.1"])
    reader, writer = await asyncio.open_connection(target.host, target.port, ssl=context)
    try:
        http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEADER_BYTES_MAX)
        headers = [("host", target.instance), *_ACCEPT, *_authorization(settings)]
        request = h11.Request(method="GET", target=target.path, headers=headers)
        writer.write((http.send(request) or b"") + (http.send(h11.EndOfMessage()) or b""))
        await writer.drain()
        return await _answer(http, reader, settings.body_bytes_max)
    finally:
        writer.close()


async def _answer(http: h11.Connection, reader: asyncio.StreamReader, bytes_max: int) -> bytes:
    body = _Body(bytes_max)
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            http.receive_data(await reader.read(READ_BYTES))
        elif isinstance(event, h11.Response):
            if event.status_code != 200:
                raise ScrapeFailed("status", f"answers {event.status_code}")
            body.open(list(event.headers))
        elif isinstance(event, h11.Data):
            body.add(bytes(event.data))
        elif isinstance(event, h11.EndOfMessage):
            return body.end()
        elif isinstance(event, h11.ConnectionClosed):
            raise ScrapeFailed("malformed", "closed before its answer was whole")


class _Body:
    """Inflates as it comes, so that a bomb is stopped at the bound and not after it."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._parts: list[bytes] = []
        self._size = 0
        self._inflater: zlib._Decompress | None = None

    def open(self, headers: Sequence[tuple[bytes, bytes]]) -> None:
        encoding = dict(headers).get(b"content-encoding", b"identity").lower()
        if encoding == b"gzip":
            self._inflater = zlib.decompressobj(GZIP_WINDOW_BITS)
        elif encoding != b"identity":
            raise ScrapeFailed("malformed", f"is encoded as {encoding.decode('latin-1')}")

    def add(self, data: bytes) -> None:
        if self._inflater is not None:
            try:
                data = self._inflater.decompress(data, self._bytes_max - self._size + 1)
            except zlib.error as error:
                raise ScrapeFailed("malformed", f"is no gzip: {error}") from error
        self._size += len(data)
        if self._size > self._bytes_max:
            raise ScrapeFailed("too_large", f"sends more than {self._bytes_max} bytes")
        self._parts.append(data)

    def end(self) -> bytes:
        if self._inflater is not None and not self._inflater.eof:
            raise ScrapeFailed("malformed", "sends gzip that is cut off")
        return b"".join(self._parts)


def _authorization(settings: ScrapeSettings) -> list[tuple[str, str]]:
    value = settings.authorization
    if settings.bearer_token_file:
        value = f"Bearer {Path(settings.bearer_token_file).read_text().strip()}"
    return [("authorization", value)] if value else []
