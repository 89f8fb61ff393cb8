"""Whether somebody owns a directory, found out without touching its lock.

Trying the lock would tell as well, and for that moment keep the real owner out. The kernel lists
the locks held: a row with the lock file's inode means an owner that lives, whatever process id
the file names and whoever has that id today.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LOCKS: Final = Path("/proc/locks")

_PID_BYTES_MAX: Final = 32
_PID: Final = 4
_FILE: Final = 5


@dataclass(frozen=True, slots=True)
class Owner:
    """`pid` is the last writer's, in its own process namespace; None when the file has none."""

    pid: int | None
    alive: bool


def owner_of(directory: Path, locks: Path = LOCKS) -> Owner:
    try:
        with (directory / "lock").open("rb") as file:
            text = file.read(_PID_BYTES_MAX).strip()
            about = os.fstat(file.fileno())
    except FileNotFoundError:
        return Owner(None, False)
    pid = int(text) if text.isdigit() else None
    try:
        rows = [line.replace(" -> ", " ").split() for line in locks.read_text().splitlines()]
    except OSError:
        return Owner(pid, pid is not None and _exists(pid))
    device = f"{os.major(about.st_dev):02x}:{os.minor(about.st_dev):02x}"
    return Owner(pid, any(_is_held(row, device, about.st_ino, pid) for row in rows))


def _is_held(row: list[str], device: str, inode: int, pid: int | None) -> bool:
    """Some file systems show another device to `stat` than to the list; there the process id must
    do in its place."""
    if len(row) <= _FILE or row[1] != "FLOCK":
        return False
    where, _, number = row[_FILE].rpartition(":")
    return number == str(inode) and (where == device or row[_PID] == str(pid))


def _exists(pid: int) -> bool:
    """For systems without the kernel's list: a process of that id, which may be another by now."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
