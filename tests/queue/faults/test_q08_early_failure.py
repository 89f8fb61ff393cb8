"""Q8: a page fails on its way to the disk before the sync is asked for, because a writer had the
disk begin early. All that keeps such a batch from being acknowledged is that the sync behind it
still reports the page, so a real kernel is asked whether it does.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from skyfarer.base.units import KIB, MIB
from skyfarer.queue.disk import Disk
from third_parties.cut_disk import cut_disk

GROUP_BYTES = 80 * KIB
SETTLED_S = 0.3


@contextmanager
def failing_file(directory: Path) -> Iterator[int]:
    """Of a file system whose image has no room left for what the file was promised: the pages it
    takes cannot be written, as on a disk that fails."""
    directory.mkdir()
    options = ["-t", "tmpfs", "-o", "size=16m", "tmpfs", str(directory)]
    subprocess.run(["mount", *options], check=True)
    try:
        with cut_disk("ext4", directory) as disk:
            file = os.open(disk.place / "file", os.O_RDWR | os.O_CREAT)
            os.posix_fallocate(file, 0, 8 * MIB)
            os.fsync(file)
            left = os.statvfs(directory)
            (directory / "filler").write_bytes(bytes(left.f_bavail * left.f_bsize))
            yield file
            os.close(file)
    finally:
        subprocess.run(["umount", "-l", str(directory)], check=True)


def test_q08_a_page_that_fails_before_the_sync_is_reported_by_the_sync(tmp_path):
    with failing_file(tmp_path / "small") as file:
        disk = Disk()
        disk.pwrite(file, os.urandom(GROUP_BYTES), 4 * MIB)
        disk.begin_sync(file, 4 * MIB, GROUP_BYTES)
        time.sleep(SETTLED_S)
        with pytest.raises(OSError, match=r"No space left|Input/output"):
            disk.sync_data(file)
        disk.sync_data(file)  # reported once: a writer must not ask again
