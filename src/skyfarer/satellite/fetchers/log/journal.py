"""A file of frames that a process may die over at any moment: what was added is there, or is not.

    | length u32 | crc u32 | body |   | length u32 | crc u32 | body |   …
    crc = CRC32C( length, body ), begun with the crc of the frame before

The chain ends at the first frame that does not check, which is the one being written at the end:
bytes left of an older, longer one cannot continue it. A file is begun anew under another name and
takes the place of the old one when it is whole and on the disk.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from skyfarer.queue.checksum import crc32c
from skyfarer.queue.disk import Disk, write_all
from skyfarer.queue.errors import disk_error

_HEAD: Final = struct.Struct("<II")
_LENGTH: Final = struct.Struct("<I")


class Journal:
    """One process, one thread. RetryableError or PermanentError when the disk refuses: nothing was
    added then, and the same call may be made again. The constructor touches nothing."""

    def __init__(self, path: Path, disk: Disk | None = None) -> None:
        self.path = path
        self.size_bytes = 0
        self._disk = disk or Disk()
        self._fd: int | None = None
        self._crc = 0

    def read(self) -> list[bytes]:
        """The bodies that are there; none if there is no file."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise disk_error(error, self.path, "read") from error
        return [body for body, _ in _frames(data)]

    def begin(self, body: bytes) -> None:
        """Puts a file with this one frame in the place of whatever was there, and survives a power
        cut: this waits for the disk."""
        frame, crc = _frame(body, 0)
        new = self.path.with_name(self.path.name + ".new")
        try:
            fd = self._disk.open(new, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            try:
                write_all(self._disk, fd, frame, 0)
                self._disk.sync(fd)
                self._disk.rename(new, self.path)
            except BaseException:
                self._disk.close(fd)
                raise
        except OSError as error:
            raise disk_error(error, self.path, "write") from error
        self.close()
        self._fd, self._crc, self.size_bytes = fd, crc, len(frame)

    def add(self, body: bytes) -> None:
        """Survives the end of the process on return. Only after `begin`."""
        assert self._fd is not None, "add before begin"
        frame, crc = _frame(body, self._crc)
        try:
            write_all(self._disk, self._fd, frame, self.size_bytes)
        except OSError as error:
            raise disk_error(error, self.path, "write to") from error
        self._crc = crc
        self.size_bytes += len(frame)

    def close(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            self._disk.close(fd)


def _frame(body: bytes, previous_crc: int) -> tuple[bytes, int]:
    crc = crc32c(body, crc32c(_LENGTH.pack(len(body)), previous_crc))
    return _HEAD.pack(len(body), crc) + body, crc


def _frames(data: bytes) -> Iterator[tuple[bytes, int]]:
    at, crc = 0, 0
    while at + _HEAD.size <= len(data):
        length, _ = _HEAD.unpack_from(data, at)
        body = data[at + _HEAD.size : at + _HEAD.size + length]
        frame, crc = _frame(body, crc)
        if frame != data[at : at + len(frame)] or len(body) != length:
            return
        yield body, crc
        at += len(frame)
