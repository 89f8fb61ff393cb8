"""How the query room is asked, and how it asks storage: a connection, and a reader that notes."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from skyfarer.oap.core.storage import Reader


class Noted:
    """A reader that notes what it was asked, as calls that can be made again."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.calls: list[Callable[[], object]] = []
        self.noting = False

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._reader, name)
        if not self.noting:
            return call

        def noted(*arguments: Any, **named: Any) -> object:
            self.calls.append(lambda: call(*arguments, **named))
            return call(*arguments, **named)

        return noted


class Client:
    """A connection that is kept, with as little of its own as can be: it is measured as well."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, wire: bytes) -> bytes:
        self._socket.sendall(wire)
        answer = self._socket.recv(1 << 16)
        head, _, body = answer.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        chunks, missing = [body], length - len(body)
        while missing > 0:
            chunks.append(self._socket.recv(1 << 20))
            missing -= len(chunks[-1])
        assert head.startswith(b"HTTP/1.1 200"), answer[:400]
        return b"".join(chunks)

    def close(self) -> None:
        self._socket.close()


def posted(query: str, variables: Mapping[str, object]) -> bytes:
    body = json.dumps({"query": query, "variables": variables}).encode()
    lines = (
        "POST /graphql HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    )
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode() + body


def gotten(path: str, **parameters: object) -> bytes:
    return f"GET {path}?{urlencode(parameters)} HTTP/1.1\r\nHost: h\r\n\r\n".encode()
