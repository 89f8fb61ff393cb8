"""The receiver's end of its pipes: JSON lines to and from the process that started it.

Standard output is written without blocking, so that a parent that is busy delays no agent. What it
has not read yet is bounded by whoever speaks: questions by their number and bytes (`asking`), and
nothing else is said while so much waits.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Mapping
from typing import Any, Final

from skyfarer.base.units import KIB, MIB

LINE_BYTES_MAX: Final = 16 * MIB
UNREAD_BYTES_MAX: Final = 256 * KIB
_FLUSH_TIMEOUT_S: Final = 2.0

log = logging.getLogger(__name__)


class _Output(asyncio.BaseProtocol):
    def __init__(self) -> None:
        self.lost = asyncio.Event()

    def connection_lost(self, _error: Exception | None) -> None:
        self.lost.set()


class ParentLines:
    """Event loop only; `open` once. `say` after the parent is gone says nothing."""

    def __init__(self) -> None:
        self._reader = asyncio.StreamReader(limit=LINE_BYTES_MAX)
        self._output: asyncio.WriteTransport | None = None
        self._end = _Output()

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(self._reader), sys.stdin)
        self._output, _ = await loop.connect_write_pipe(lambda: self._end, sys.stdout)

    async def read(self) -> bytes:
        """The next line, empty when there is no more: the parent is gone, or wants us to end.

        A line that is too long for us is the parent's defect, and ends us as well.
        """
        try:
            return await self._reader.readline()
        except ValueError:
            log.error("the parent process sent a line of more than %d bytes", LINE_BYTES_MAX)
            return b""

    def say(self, message: Mapping[str, Any]) -> None:
        if self._output is not None and not self._output.is_closing():
            self._output.write(json.dumps(message).encode() + b"\n")

    def report(self, message: Mapping[str, Any]) -> None:
        """Says what the next report says anyway, unless the parent has much to read still."""
        if self._output is not None and self._output.get_write_buffer_size() < UNREAD_BYTES_MAX:
            self.say(message)

    async def close(self) -> None:
        """Waits a moment for the parent to read the rest. Safe twice and unopened."""
        output, self._output = self._output, None
        if output is None:
            return
        output.close()
        try:
            await asyncio.wait_for(self._end.lost.wait(), _FLUSH_TIMEOUT_S)
        except TimeoutError:
            output.abort()
