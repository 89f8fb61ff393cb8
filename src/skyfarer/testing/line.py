"""A TCP line that can be bad: slow, mute, or cut after so many bytes."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections import deque
from collections.abc import Iterable
from contextlib import suppress

from skyfarer.base.units import KIB

HOST = "127.0.0.1"
STOP_S = 60.0
READ_BYTES = 16 * KIB
SLOW_STEP_S = 0.02
_RESET = struct.pack("ii", 1, 0)


class Line:
    """Between whoever connects to `address` and the port it leads to, on a thread of its own.

    `rate_bytes_s`: of what goes there, 0 is no bound. `mute`: connections stay open and
    nothing passes any more, on those that met it not even afterwards. `cuts`: the next
    connections, one by one, are reset after so many bytes, there or (below 0) back. All may change
    at any time.
    """

    def __init__(self, port: int, cuts: Iterable[int] = ()) -> None:
        self.rate_bytes_s = 0.0
        self.mute = False
        self.cuts = deque(cuts)
        self.connections = 0
        self.resets = 0
        self.swallowed_bytes = 0
        self.port = 0
        self._leads_to = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def __enter__(self) -> Line:
        self._thread.start()
        serving = asyncio.start_server(self._pass, HOST, 0, limit=READ_BYTES)
        server = asyncio.run_coroutine_threadsafe(serving, self._loop).result(STOP_S)
        self.port = server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *failure: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(STOP_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(STOP_S)
        self._loop.close()

    async def _end(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _pass(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        self.connections += 1
        cut = self.cuts.popleft() if self.cuts else None
        try:
            far, there = await asyncio.open_connection(HOST, self._leads_to, limit=READ_BYTES)
        except OSError:
            back.close()
            return
        ways = (
            self._carry(near, there, cut if cut is not None and cut >= 0 else None, True),
            self._carry(far, back, -cut if cut is not None and cut < 0 else None, False),
        )
        tasks = [asyncio.ensure_future(way) for way in ways]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for writer in (back, there):
                self._close(writer, cut is not None)

    async def _carry(
        self,
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        left: int | None,
        there: bool,
    ) -> None:
        """Returns when the connection is over, or has had all the bytes it may."""
        with suppress(ConnectionError):
            while left is None or left > 0:
                data = await self._read(source, left, there)
                if not data:
                    return
                target.write(data)
                await target.drain()
                left = None if left is None else left - len(data)
            self.resets += 1

    async def _read(self, source: asyncio.StreamReader, left: int | None, there: bool) -> bytes:
        size = READ_BYTES
        if there and self.rate_bytes_s:
            await asyncio.sleep(SLOW_STEP_S)
            size = max(1, int(self.rate_bytes_s * SLOW_STEP_S))
        data = await source.read(size if left is None else min(size, left))
        if self.mute:
            while data:
                self.swallowed_bytes += len(data)
                data = await source.read(READ_BYTES)
        return data

    def _close(self, writer: asyncio.StreamWriter, hard: bool) -> None:
        """`hard`: by a reset, which takes with it what is still on its way."""
        if hard:
            found = writer.get_extra_info("socket")
            with suppress(OSError):
                found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            writer.transport.abort()
        else:
            writer.close()
