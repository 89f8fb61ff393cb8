"""A consumer's own place in the queue."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from skyfarer.base.errors import PermanentError
from skyfarer.queue.checkpoint import (
    FILE_BYTES,
    Checkpoint,
    checkpoint_path,
    decode_newest,
)
from skyfarer.queue.disk import Disk, write_all
from skyfarer.queue.errors import QueueLocked, QueueMissing, disk_error
from skyfarer.queue.meta import read_meta
from skyfarer.queue.state import State, map_state

_NOTHING: Final[Mapping[str, int]] = MappingProxyType({})
_log = logging.getLogger(__name__)


class Consumer:
    """One process and one thread per name; the name must be among the writer's `consumers`.

    `commit` survives SIGKILL on return, and if it is `durable` a power cut as well, for a wait for
    the disk. If it is not, a cut may take a consumer back to an earlier commit, whose records it
    then sees again: to that before the writer's last flush at most. Committing hands the bytes
    below `sequence` back to the writer, which may overwrite them under any map still held. What it
    passed over without delivering goes into `dropped`, in the same write, so the ledger is exact
    after any crash.
    """

    def __init__(
        self, directory: Path, name: str, disk: Disk | None = None, *, durable: bool = False
    ) -> None:
        self._directory = directory
        self._path = checkpoint_path(directory, name)
        self._disk = disk or Disk()
        self._durable = durable
        self._fd: int | None = None
        self._state: State | None = None
        self._queue_id = b""
        self._checkpoint = Checkpoint(0, 0)

    def start(self) -> None:
        """QueueMissing until the writer has started once; QueueLocked when the name is in use."""
        if self._fd is not None:
            return
        self._queue_id = read_meta(self._directory).queue_id
        self._state = map_state(self._directory, self._queue_id)
        try:
            self._fd = self._open()
            self._make_whole(self._fd)
            self._checkpoint = self._load(self._fd, self._state)
        except BaseException:
            self.stop()
            raise

    def stop(self, timeout_s: float = 0.0) -> None:
        if self._fd is not None:
            self._disk.close(self._fd)
            self._fd = None
        if self._state is not None:
            self._state.close()
            self._state = None

    def committed(self) -> int:
        """The next sequence wanted. It may be below the queue's oldest: runs() then says so."""
        return self._checkpoint.committed

    def dropped(self) -> dict[str, int]:
        return dict(self._checkpoint.dropped)

    def commit(self, sequence: int, dropped: Mapping[str, int] = _NOTHING) -> None:
        """Never backwards, never past what was written, never dropping more than was passed."""
        if self._fd is None or self._state is None:
            raise PermanentError(f"{self._path}: commit before start or after stop")
        now = self._checkpoint
        if sequence == now.committed and not dropped:
            return
        then = now.advanced(sequence, dropped)
        if not now.committed <= sequence <= self._state.writing:
            raise PermanentError(
                f"{self._path}: cannot commit {sequence}, which is not between the committed "
                f"{now.committed} and the written {self._state.writing}"
            )
        if min(dropped.values(), default=0) < 0 or sum(then.dropped.values()) > sequence:
            raise PermanentError(f"{self._path}: {dict(dropped)} is not a count of passed records")
        try:
            write_all(self._disk, self._fd, then.encode(self._queue_id), then.offset)
            if self._durable:  # if it fails, trying again writes the same slot again
                self._disk.sync_data(self._fd)
        except OSError as error:
            raise disk_error(error, self._path, "write") from error
        self._checkpoint = then

    def _open(self) -> int:
        try:
            fd = self._disk.open(self._path, os.O_RDWR)
        except FileNotFoundError as error:
            raise QueueMissing(
                f"there is no {self._path}; name the consumer in the writer's 'consumers'"
            ) from error
        except OSError as error:
            raise disk_error(error, self._path, "open") from error
        try:
            self._disk.lock(fd)
        except BlockingIOError as error:
            self._disk.close(fd)
            raise QueueLocked(f"{self._path} is in use by another consumer of that name") from error
        except OSError as error:
            self._disk.close(fd)
            raise disk_error(error, self._path, "lock") from error
        return fd

    def _make_whole(self, fd: int) -> None:
        """A power cut may have left the name and not the space; a slot cut short is never read."""
        try:
            if os.fstat(fd).st_size < FILE_BYTES:
                self._disk.allocate(fd, FILE_BYTES)
        except OSError as error:
            raise disk_error(error, self._path, "mend") from error

    def _load(self, fd: int, state: State) -> Checkpoint:
        try:
            found = decode_newest(self._disk.pread(fd, FILE_BYTES, 0), self._queue_id)
        except OSError as error:
            raise disk_error(error, self._path, "read") from error
        if found is not None:
            return found
        _log.error(
            "%s: both slots are damaged; starting again from the oldest record held, %d",
            self._path,
            state.oldest,
        )
        return Checkpoint(0, state.oldest)
