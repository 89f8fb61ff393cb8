"""A disk under the queue that dies in the middle of a call, fails one, fills up, and rots.

Death is that of the process: what earlier calls and stores did stays, the fatal one is done in part
or not at all, and nothing done later has any effect. Locks end with their files, as the kernel
would have it. A power cut is another matter: `sync` does nothing here, because what a dead process
leaves in the page cache is safe.
"""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from skyfarer.queue.disk import Disk

NEEDS_SPACE: Final = frozenset({"open", "allocate", "pwrite", "pwritev", "rename"})


class Death(BaseException):
    """Not an Exception: no handler of the program under test outlives its process."""


class FaultyDisk(Disk):
    """Set `full` to the names of calls that find no space; call `die_at` to choose the end.

    0 as the number of a call is never.
    """

    def __init__(self) -> None:
        self.calls = 0
        self.full: frozenset[str] = frozenset()
        self.dead = False
        self._last_call = 0
        self._refused_call = 0
        self._failed_call = 0
        self._kept_bytes = 0
        self._files: set[int] = set()

    def die_at(self, call: int, kept_bytes: int = 0) -> None:
        """The `call`-th changing call from now is the last; of a write it does `kept_bytes`."""
        self._last_call, self._kept_bytes = self.calls + call, kept_bytes

    def refuse_at(self, call: int) -> None:
        """The `call`-th from now finds no space, if it is one that needs some."""
        self._refused_call = self.calls + call

    def fail_at(self, call: int) -> None:
        """The `call`-th from now finds the disk broken, whatever it is, and changes nothing."""
        self._failed_call = self.calls + call

    def die(self) -> None:
        """At once, between two calls."""
        self.dead = True
        for fd in list(self._files):
            self.close(fd)

    def meet(self, name: str) -> int | None:
        """Counts a call; how many bytes it still does when it is the last, None when it is not."""
        if self.dead:
            raise Death(name)
        self.calls += 1
        if self.calls == self._failed_call and name != "store":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        refused = self.calls == self._refused_call and name in NEEDS_SPACE
        if refused or name in self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._kept_bytes if self.calls == self._last_call else None

    def end(self, name: str) -> Death:
        self.die()
        return Death(name)

    def open(self, path: Path, flags: int) -> int:
        self._change("open")
        fd = super().open(path, flags)
        self._files.add(fd)
        return fd

    def close(self, fd: int) -> None:
        """The kernel closes what a dead process had open; its number may be another's by now."""
        if fd in self._files:
            self._files.remove(fd)
            os.close(fd)

    def allocate(self, fd: int, size_bytes: int) -> None:
        """Without space it takes what there is, as fallocate does; what is there needs none."""
        if os.fstat(fd).st_size >= size_bytes:
            return
        try:
            kept = self.meet("allocate")
        except OSError as error:
            if error.errno == errno.ENOSPC:
                os.ftruncate(fd, size_bytes // 2)
            raise
        if kept is not None:
            os.ftruncate(fd, min(kept, size_bytes))
            raise self.end("allocate")
        super().allocate(fd, size_bytes)

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> int:  # type: ignore[override]
        return self.pwritev(fd, [data], offset, "pwrite")

    def pwritev(  # type: ignore[override]
        self, fd: int, buffers: Sequence[bytes | memoryview], offset: int, name: str = "pwritev"
    ) -> int:
        kept = self.meet(name)
        if kept is None:
            return os.pwritev(fd, buffers, offset)
        os.pwrite(fd, b"".join(buffers)[:kept], offset)
        raise self.end(name)

    def store_entry(self, index: mmap.mmap, at: int, checked: bytes, check: int) -> None:  # type: ignore[override]
        """A store like any other into a map, which may end in the middle."""
        entry = checked + check.to_bytes(4, "little")
        index[at : at + len(entry)] = entry

    def map(self, fd: int, size_bytes: int) -> mmap.mmap:
        self._change("map")
        mapped = _FaultyMap(fd, size_bytes)
        mapped.disk = self
        return mapped

    def sync(self, fd: int) -> None:
        self._change("sync")

    def begin_sync(self, fd: int, offset: int, size_bytes: int) -> None:
        self._change("begin_sync")

    def sync_data(self, fd: int) -> None:
        self._change("sync_data")

    def rename(self, old: Path, new: Path) -> None:
        self._change("rename")
        super().rename(old, new)

    def unlink(self, path: Path) -> None:
        self._change("unlink")
        super().unlink(path)

    def _change(self, name: str) -> None:
        if self.meet(name) is not None:
            raise self.end(name)


class _FaultyMap(mmap.mmap):
    """A store of bytes is a call too: a process may die in the middle of copying."""

    disk: FaultyDisk

    def __setitem__(self, key: Any, value: Any) -> None:
        kept = self.disk.meet("store")
        if kept is None:
            super().__setitem__(key, value)
            return
        part = bytes(value)[:kept]
        super().__setitem__(slice(key.start or 0, (key.start or 0) + len(part)), part)
        raise self.disk.end("store")


def flip(path: Path, byte: int, bit: int) -> None:
    """In place, so that whoever has the file mapped sees it."""
    with path.open("r+b") as file:
        file.seek(byte)
        old = file.read(1)[0]
        file.seek(byte)
        file.write(bytes([old ^ 1 << bit]))
