"""Who owns a directory: an flock held for life. It ends with the process and is never stolen."""

from __future__ import annotations

import os
from pathlib import Path

from skyfarer.queue.disk import Disk
from skyfarer.queue.errors import QueueLocked, disk_error

_PID_BYTES_MAX = 32


class DirectoryLock:
    """The owner's process id stands in the file for people; the lock itself is the kernel's."""

    def __init__(self, disk: Disk, directory: Path) -> None:
        self._disk = disk
        self._path = directory / "lock"
        self._fd: int | None = None

    def acquire(self) -> None:
        try:
            fd = self._disk.open(self._path, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise disk_error(error, self._path, "open") from error
        try:
            self._disk.lock(fd)
            # Padded, because cutting the file to the id before costs more than all of recovery.
            self._disk.pwrite(fd, f"{os.getpid()}\n".encode().ljust(_PID_BYTES_MAX), 0)
        except BlockingIOError as error:
            owner = os.pread(fd, _PID_BYTES_MAX, 0).decode("ascii", "replace").strip()
            self._disk.close(fd)
            raise QueueLocked(
                f"the queue in {self._path.parent} is already open for writing "
                f"in process {owner or '(starting)'}; one directory has one writer"
            ) from error
        except OSError as error:
            self._disk.close(fd)
            raise disk_error(error, self._path, "lock") from error
        self._fd = fd

    def release(self) -> None:
        if self._fd is not None:
            self._disk.close(self._fd)
            self._fd = None
