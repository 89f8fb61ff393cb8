"""A disk that tells which files are synced, and asks before each write and sync."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from .bench import UnsyncedDisk


class WatchedDisk(UnsyncedDisk):
    """Notes the names of files synced. `before_write` and `before_sync` are called with a file's
    name, and may fail the call."""

    def __init__(self) -> None:
        self.synced: list[str] = []
        self.before_write: Callable[[str], None] = lambda name: None
        self.before_sync: Callable[[str], None] = lambda name: None

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        self.before_write(_name(fd))
        return super().pwrite(fd, data, offset)

    def pwritev(self, fd: int, buffers: Sequence[bytes | memoryview], offset: int) -> int:
        self.before_write(_name(fd))
        return super().pwritev(fd, buffers, offset)

    def sync_data(self, fd: int) -> None:
        self.before_sync(_name(fd))
        self.synced.append(_name(fd))


def _name(fd: int) -> str:
    return Path(f"/proc/self/fd/{fd}").readlink().name
