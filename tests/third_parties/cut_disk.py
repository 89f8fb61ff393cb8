"""A small real file system in a file, whose power can be cut.

`FS_IOC_SHUTDOWN` without a flush of the log stops the file system where it stands: what was not
synced is gone when it is mounted again. The image, the mount and the loop device are given back
whatever happens.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from skyfarer.base.units import MIB

NEEDS: Final = (
    "cutting the power of a file system needs root, a free loop device, mount, losetup and mkfs.{}"
)
_SHUTDOWN: Final = 0x8004587D
_WITHOUT_LOG_FLUSH: Final = struct.pack("I", 2)
_IMAGE_BYTES: Final = {"ext4": 24 * MIB, "xfs": 320 * MIB}
_MAKE: Final = {
    "ext4": ["mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"],
    "xfs": ["mkfs.xfs", "-q", "-K"],
}


class CutDisk:
    def __init__(self, kind: str, device: str, place: Path) -> None:
        self.place = place
        self._mount = ["mount", "-t", kind, device, str(place)]

    def mount(self) -> None:
        _run(self._mount)

    def cut(self) -> None:
        """Proves itself: a file system that is shut down makes no file."""
        directory = os.open(self.place, os.O_RDONLY)
        try:
            fcntl.ioctl(directory, _SHUTDOWN, _WITHOUT_LOG_FLUSH)
        finally:
            os.close(directory)
        try:
            (self.place / "after the cut").touch()
        except OSError as error:
            assert error.errno == errno.EIO, error
        else:
            raise AssertionError(f"the power of {self.place} is still on")

    def unmount(self) -> None:
        _run(["umount", str(self.place)])


@contextmanager
def cut_disk(kind: str, directory: Path, size_bytes: int | None = None) -> Iterator[CutDisk]:
    """Mounted at first, and unmounted at the end if the test left it mounted. As small as the file
    system can be, where no size is told. Where this process may not do that, the test is skipped
    and says what it needs."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("mount", "losetup", _MAKE[kind][0]))):
        pytest.skip(NEEDS.format(kind))
    image, place = directory / "image", directory / "disk"
    place.mkdir()
    with image.open("wb") as file:
        file.truncate(size_bytes or _IMAGE_BYTES[kind])
    _run([*_MAKE[kind], str(image)])
    try:
        device = _run(["losetup", "--find", "--show", str(image)]).strip()
    except AssertionError:
        pytest.skip(NEEDS.format(kind))
    disk = CutDisk(kind, device, place)
    try:
        disk.mount()
        yield disk
    finally:
        if place.is_mount():
            disk.unmount()
        _run(["losetup", "-d", device])
        image.unlink()


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
