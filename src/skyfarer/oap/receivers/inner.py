"""The Unix socket between the main process and its receiver.

The receiver makes it, when it holds the queue: so nobody else does, and one that a killed receiver
left behind may be replaced. Its name needs no room in the kernel's 108 bytes, however deep the data
directory lies. Only the user of the program can connect.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

BACKLOG: Final = 128
MODE: Final = 0o600
_NAME_BYTES_MAX: Final = 100


def bind(path: Path) -> socket.socket:
    """A listening socket, the caller's to close; what has that name already is replaced."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        os.fchmod(listener.fileno(), MODE)  # before it has a name: never open to others
        with short_name(path) as name:
            listener.bind(name)
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


async def connect(path: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """OSError while nobody listens there."""
    with short_name(path) as name:
        return await asyncio.open_unix_connection(name)


@contextmanager
def short_name(path: Path) -> Iterator[str]:
    """By which the socket can be reached while the context lasts."""
    if len(os.fsencode(path)) <= _NAME_BYTES_MAX:
        yield str(path)
        return
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)
