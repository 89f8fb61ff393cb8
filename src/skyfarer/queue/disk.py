"""Every call the queue makes to change a file, in one small class, so that tests can hand in a disk
that fills up, tears a write or dies between two calls."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from skyfarer.base.errors import SkyfarerError
from skyfarer.base.units import KIB
from skyfarer.queue.errors import disk_error
from skyfarer.queue.records import pack_entry_into

BUFFERS_PER_WRITE_MAX: Final = 1024
STORED_BYTES: Final = 64 * KIB  # of an index, a call
FILE_MODE: Final = 0o600
DIRECTORY_MODE: Final = 0o700


class Disk:
    """The real one. Raises OSError as it comes; callers put it into words with `disk_error`."""

    close = staticmethod(os.close)
    pread = staticmethod(os.pread)
    pwrite = staticmethod(os.pwrite)
    pwritev = staticmethod(os.pwritev)
    store_entry = staticmethod(pack_entry_into)

    def make_directory(self, path: Path) -> None:
        path.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)

    def open(self, path: Path, flags: int) -> int:
        return os.open(path, flags | os.O_CLOEXEC, FILE_MODE)

    def lock(self, fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def allocate(self, fd: int, size_bytes: int) -> None:
        os.posix_fallocate(fd, 0, size_bytes)

    def truncate(self, fd: int, size_bytes: int) -> None:
        os.ftruncate(fd, size_bytes)

    def map(self, fd: int, size_bytes: int) -> mmap.mmap:
        return mmap.mmap(fd, size_bytes)

    def sync(self, fd: int) -> None:
        os.fsync(fd)

    def begin_sync(self, fd: int, offset: int, size_bytes: int) -> None:
        """Has the disk begin with what was written there; a sync that follows has less to wait
        for. Nothing survives a power cut before that."""
        writeback()(fd, offset, size_bytes)

    def sync_data(self, fd: int) -> None:
        """Stores through a map included; of the metadata only what reading the bytes needs."""
        os.fdatasync(fd)

    def rename(self, old: Path, new: Path) -> None:
        old.rename(new)

    def unlink(self, path: Path) -> None:
        path.unlink(missing_ok=True)


@cache
def writeback() -> Callable[[int, int, int], None]:
    from skyfarer.queue.writeback import begin_writeback

    return begin_writeback


def write_all(disk: Disk, fd: int, data: bytes | memoryview, offset: int) -> None:
    """Goes on after a short write; Python itself goes on after EINTR."""
    view = memoryview(data)
    while view:
        written = _some(disk.pwrite(fd, view, offset))
        view, offset = view[written:], offset + written


def write_pieces(disk: Disk, fd: int, data: bytes) -> None:
    """`write_all` from the start of a file, some pages a call, for pages that will be stored into
    through a map.

    The kernel may hold what one call wrote as one large folio. It goes through all of one for the
    first store into a page of it: an append with a first store was measured at 15 µs and more in a
    folio of a megabyte and below 6 in one of 64 KiB.
    """
    for at in range(0, len(data), STORED_BYTES):
        write_all(disk, fd, data[at : at + STORED_BYTES], at)


def write_buffers(disk: Disk, fd: int, buffers: Sequence[bytes | memoryview], offset: int) -> None:
    """The kernel takes at most 1024 buffers a call and may stop early."""
    rest: list[bytes | memoryview] = [buffer for buffer in buffers if len(buffer)]
    while rest:
        written = _some(disk.pwritev(fd, rest[:BUFFERS_PER_WRITE_MAX], offset))
        offset += written
        done = 0
        while done < len(rest) and written >= len(rest[done]):
            written -= len(rest[done])
            done += 1
        del rest[:done]
        if written:
            rest[0] = memoryview(rest[0])[written:]


def _some(written: int) -> int:
    if written <= 0:
        raise OSError(errno.EIO, "the disk accepted no byte")
    return written


def create_whole(disk: Disk, path: Path, data: bytes, size_bytes: int, durable: bool) -> None:
    """A file appears under its name only when it is allocated and holds `data`.

    A full disk leaves nothing behind: a failed fallocate may have taken part of the space.
    """
    new = path.with_name(path.name + ".new")
    try:
        fd = disk.open(new, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    except OSError as error:
        raise disk_error(error, new, "create") from error
    try:
        disk.allocate(fd, size_bytes)
        write_pieces(disk, fd, data)
        if durable:
            disk.sync(fd)
        disk.rename(new, path)
    except OSError as error:
        with suppress(OSError):  # the next start removes it, and this failure is the one to tell
            disk.unlink(new)
        raise disk_error(error, path, "create") from error
    finally:
        disk.close(fd)
    if durable:
        try:
            sync_directory(disk, path.parent)
        except SkyfarerError:
            disk.unlink(path)
            raise


def make_directory(disk: Disk, directory: Path, durable: bool) -> None:
    """With the parents it lacks."""
    made = [path for path in directory.parents if not path.exists()]
    try:
        disk.make_directory(directory)
    except OSError as error:
        raise disk_error(error, directory, "create") from error
    if durable:
        for path in (directory, *made):
            sync_directory(disk, path.parent)


def has_size(path: Path, size_bytes: int) -> bool:
    """False where there is no such file, too."""
    try:
        return os.stat(path).st_size == size_bytes  # noqa: PTH116 - one call, often
    except FileNotFoundError:
        return False


def sync_directory(disk: Disk, path: Path) -> None:
    """Names made or removed in it survive a power cut."""
    try:
        fd = disk.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            disk.sync(fd)
        finally:
            disk.close(fd)
    except OSError as error:
        raise disk_error(error, path, "sync") from error


def sync_tree(disk: Disk, directory: Path, files: Sequence[Path]) -> None:
    for path in files:
        sync_file(disk, path)
    sync_directory(disk, directory)


def sync_file(disk: Disk, path: Path) -> None:
    """Whoever wrote it; a file that is gone has nothing to keep."""
    try:
        fd = disk.open(path, os.O_RDWR)
        try:
            disk.sync_data(fd)
        finally:
            disk.close(fd)
    except FileNotFoundError:
        return
    except OSError as error:
        raise disk_error(error, path, "sync") from error
