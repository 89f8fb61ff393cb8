"""The tap's way out of the process: a socket in the data directory, for its owner alone.

A watcher connects, writes one line of JSON that says what it wants, and reads a line for every
record that it is shown:

    → {"pipe": "native", "kind": 1, "point": "out", "rate": 10}
    ← {"time_ms": …, "pipe": …, "point": …, "kind": 1, "size_bytes": …, "payload": "<base64>"}
    ← {"missed": 120}

Not on the telemetry port, which may be open to a network: these are the users' own data.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
from binascii import b2a_base64
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from skyfarer.base.clock import Clock
from skyfarer.base.units import KIB
from skyfarer.satellite.tap import IN, OUT, RATE_MAX, Sighting, Tap, Watcher, Wish

log = logging.getLogger(__name__)

SOCKET_NAME: Final = "tap.sock"
WATCHERS_MAX: Final = 8
WISH_BYTES_MAX: Final = 4 * KIB
WISH_TIMEOUT_S: Final = 5.0
WAITING_MAX: Final = 256
MISSED_INTERVAL_S: Final = 1.0


@contextmanager
def reachable(directory: Path) -> Iterator[str]:
    """A path of the socket that is never too long: the kernel allows 107 bytes, users more."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{fd}/{SOCKET_NAME}"
    finally:
        os.close(fd)


class TapSocket:
    """To be started once the directory is ours. What goes wrong with it is said, not raised."""

    def __init__(self, directory: Path, tap: Tap, clock: Clock) -> None:
        self._directory = directory
        self._tap = tap
        self._clock = clock
        self._server: asyncio.AbstractServer | None = None
        self._watching: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            with reachable(self._directory) as path:
                self._server = await asyncio.start_unix_server(
                    self._accept, sock=_bound(path), limit=WISH_BYTES_MAX
                )
        except OSError as error:
            log.warning("nobody can tap this satellite: %s", error)

    async def stop(self) -> None:
        if self._server is None:
            return
        self._server.close()
        self._server = None
        (self._directory / SOCKET_NAME).unlink(missing_ok=True)
        for one in list(self._watching):
            one.cancel()
        await asyncio.gather(*self._watching, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._watching) >= WATCHERS_MAX:
            writer.transport.abort()
            return
        task = asyncio.ensure_future(self._watch(reader, writer))
        self._watching.add(task)
        task.add_done_callback(self._watching.discard)

    async def _watch(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(WISH_TIMEOUT_S):
                wish = _wish(await reader.readline())
            await self._show(wish, writer)
        except ValueError as error:
            writer.write(json.dumps({"error": str(error)}).encode() + b"\n")
        except OSError:
            log.debug("a watcher went away", exc_info=True)
        finally:
            writer.close()

    async def _show(self, wish: Wish, writer: asyncio.StreamWriter) -> None:
        waiting: deque[Sighting] = deque()
        arrived = asyncio.Event()

        def show(sighting: Sighting) -> bool:
            if len(waiting) >= WAITING_MAX:
                return False
            waiting.append(sighting)
            arrived.set()
            return True

        watcher = Watcher(wish, show, self._clock)
        self._tap.add(watcher)
        try:
            while not writer.is_closing():
                with suppress(TimeoutError):
                    await asyncio.wait_for(arrived.wait(), MISSED_INTERVAL_S)
                arrived.clear()
                while waiting:
                    writer.write(_line(waiting.popleft()))
                    await writer.drain()
                # Also when it is 0: writing is how one learns that nobody reads any more.
                missed, watcher.missed = watcher.missed, 0
                writer.write(json.dumps({"missed": missed}).encode() + b"\n")
                await writer.drain()
        finally:
            self._tap.remove(watcher)


def _bound(path: str) -> socket.socket:
    """In place of the one a killed process left; for the owner alone before anyone can connect."""
    Path(path).unlink(missing_ok=True)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.bind(path)
        Path(path).chmod(0o600)
    except OSError:
        made.close()
        raise
    return made


def _wish(line: bytes) -> Wish:
    """ValueError when it is none."""
    asked = json.loads(line or b"{}")
    if not isinstance(asked, dict):
        raise ValueError("what is wanted must be a JSON object")
    pipe, kind, point = asked.get("pipe"), asked.get("kind"), asked.get("point")
    rate = asked.get("rate", 10)
    if not (pipe is None or isinstance(pipe, str)) or not (kind is None or isinstance(kind, int)):
        raise ValueError("pipe must be a name and kind a number")
    if point not in (None, IN, OUT):
        raise ValueError(f"point must be '{IN}' or '{OUT}'")
    if not isinstance(rate, int | float) or not 0 < rate <= RATE_MAX:
        raise ValueError(f"rate must be above 0 and at most {RATE_MAX}")
    return Wish(pipe, kind, point, float(rate))


def _line(sighting: Sighting) -> bytes:
    entry = {
        "time_ms": sighting.time_ms,
        "pipe": sighting.pipe,
        "point": sighting.point,
        "kind": sighting.kind,
        "size_bytes": sighting.size_bytes,
        "payload": b2a_base64(sighting.payload, newline=False).decode("ascii"),
    }
    return json.dumps(entry).encode() + b"\n"
