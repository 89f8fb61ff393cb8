"""Finding upstreams: a list as written, or names that stand for a changing set of addresses."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from dataclasses import dataclass

from skyfarer.base.errors import RetryableError
from skyfarer.satellite.notation import address

LOOPBACK = "127.0.0.1"
UPSTREAMS_MAX = 64


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to connect, and the name by which that was found: a certificate is held against it."""

    host: str
    port: int
    name: str

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def listed(text: str) -> tuple[Endpoint, ...]:
    """The addresses of a list with commas; ValueError for what is none."""
    written = [address(piece, LOOPBACK) for piece in text.split(",") if piece.strip()]
    if not 1 <= len(written) <= UPSTREAMS_MAX:
        raise ValueError(f"server_addr must be from 1 to {UPSTREAMS_MAX} addresses, not '{text}'")
    return tuple(dict.fromkeys(Endpoint(host, port, host) for host, port in written))


async def resolved(names: Iterable[Endpoint]) -> tuple[Endpoint, ...]:
    """Every address behind these names, in a fixed order, UPSTREAMS_MAX at most.

    A name that cannot be resolved counts for none. RetryableError when there is none at all.
    """
    loop = asyncio.get_running_loop()
    found: set[Endpoint] = set()
    failures: list[str] = []
    for name in names:
        try:
            rows = await loop.getaddrinfo(name.host, name.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as failure:
            failures.append(f"{name}: {failure}")
            continue
        found.update(Endpoint(str(row[4][0]), name.port, name.host) for row in rows)
    if not found:
        raise RetryableError(f"no upstream is found by name: {'; '.join(failures)}")
    return tuple(sorted(found, key=lambda one: (one.host, one.port))[:UPSTREAMS_MAX])
