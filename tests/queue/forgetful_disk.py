"""A disk that may forget, page by page and name by name, whatever was not synced.

It remembers each version a page had since the last sync of its file, stores through a map included,
and each name since the last sync of its directory. A power cut picks one of them at random: any
combination, harsher than the journal of a real file system allows.

A sync that fails does so as on Linux: it is reported once, the pages it should have written count
as clean from then on, and the next sync of that file succeeds and leaves them where they were.
"""

from __future__ import annotations

import errno
import os
import random
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from skyfarer.queue.disk import Disk
from skyfarer.queue.layout import PAGE_BYTES

T = TypeVar("T")


class Remembered:
    """Versions of one file, oldest first; `synced` leaves the last of each."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDONLY)
        self._sizes = [0]
        self._pages: list[list[bytes]] = []
        self._given_up: dict[int, int] = {}

    def look(self) -> None:
        size = os.fstat(self._fd).st_size
        data = os.pread(self._fd, size, 0)
        _note(self._sizes, size)
        for number, start in enumerate(range(0, size, PAGE_BYTES)):
            if number == len(self._pages):
                self._pages.append([bytes(PAGE_BYTES)])
            _note(self._pages[number], data[start : start + PAGE_BYTES].ljust(PAGE_BYTES, b"\0"))

    def synced(self) -> None:
        self.look()
        del self._sizes[:-1]
        for number, versions in enumerate(self._pages):
            if self._given_up.get(number) != len(versions):
                del versions[:-1]
                self._given_up.pop(number, None)

    def sync_failed(self) -> None:
        """Pages that wait to be written are not written by a later sync, unless they change."""
        self.look()
        for number, versions in enumerate(self._pages):
            if len(versions) > 1:
                self._given_up[number] = len(versions)

    def rewritten(self, offset: int, size_bytes: int) -> None:
        for number in range(offset // PAGE_BYTES, -(-(offset + size_bytes) // PAGE_BYTES)):
            self._given_up.pop(number, None)

    def pick(self, chance: random.Random) -> bytes:
        data = b"".join(chance.choice(versions) for versions in self._pages)
        return data[: chance.choice(self._sizes)]

    def close(self) -> None:
        os.close(self._fd)


class ForgetfulDisk(Disk):
    def __init__(
        self,
        directory: Path,
        ignored: Callable[[int], bool] = lambda mode: False,
    ) -> None:
        """`ignored` says for which files, by their mode, a sync is a lie.

        The `fail_at`-th sync fails; `synced` has name and inode of each that was asked for.
        """
        self.before_call: Callable[[], None] = lambda: None
        self.fail_at = 0
        self.synced: list[tuple[str, int]] = []
        self._directory = directory
        self._ignored = ignored
        self._files: dict[int, Remembered] = {}
        self._durable_names: dict[str, int] = {}

    def cut(self, into: Path, chance: random.Random) -> None:
        """Writes what is left of the directory when the power goes now."""
        names = self._look()
        into.mkdir()
        for name in sorted({*names, *self._durable_names}):
            inode = chance.choice([self._durable_names.get(name), names.get(name)])
            if inode is not None:
                (into / name).write_bytes(self._files[inode].pick(chance))

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        self._meet()
        self._files[os.fstat(fd).st_ino].rewritten(offset, len(data))
        return super().pwrite(fd, data, offset)

    def pwritev(self, fd: int, buffers: Sequence[bytes | memoryview], offset: int) -> int:
        self._meet()
        self._files[os.fstat(fd).st_ino].rewritten(offset, sum(map(len, buffers)))
        return super().pwritev(fd, buffers, offset)

    def rename(self, old: Path, new: Path) -> None:
        self._meet()
        super().rename(old, new)

    def unlink(self, path: Path) -> None:
        self._meet()
        super().unlink(path)

    def sync(self, fd: int) -> None:
        self._meet()
        status = os.fstat(fd)
        self.synced.append((Path(f"/proc/self/fd/{fd}").readlink().name, status.st_ino))
        if len(self.synced) == self.fail_at:
            if not stat.S_ISDIR(status.st_mode):
                self._files[status.st_ino].sync_failed()
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if self._ignored(status.st_mode):
            return
        if not stat.S_ISDIR(status.st_mode):
            self._files[status.st_ino].synced()
        elif os.path.samestat(status, self._directory.stat()):
            self._durable_names = self._look()

    def sync_data(self, fd: int) -> None:
        self.sync(fd)

    def close_all(self) -> None:
        for file in self._files.values():
            file.close()

    def _meet(self) -> None:
        self._look()
        self.before_call()

    def _look(self) -> dict[str, int]:
        """Files are held open, so the number of one that was removed is not used again."""
        if not self._directory.exists():
            return {}
        names = {entry.name: entry.inode() for entry in os.scandir(self._directory)}
        for name, inode in names.items():
            if inode not in self._files:
                self._files[inode] = Remembered(self._directory / name)
        for file in self._files.values():
            file.look()
        return names


def _note(versions: list[T], now: T) -> None:
    if versions[-1] != now:
        versions.append(now)
