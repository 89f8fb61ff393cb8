"""A small real file system in memory, for what happens when a disk is full."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

NEEDS: Final = "a small file system needs the right to mount a tmpfs: {}"


@contextmanager
def small_disk(place: Path, size_bytes: int) -> Iterator[Path]:
    """Mounted at `place`, and unmounted whatever happens."""
    place.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", str(place)]
    done = subprocess.run(["mount", *options], capture_output=True, text=True, check=False)
    assert not done.returncode, NEEDS.format(done.stderr.strip())
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)
