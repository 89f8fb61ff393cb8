"""Whether the disk has the room that the queues were promised."""

from __future__ import annotations

import os
from pathlib import Path

from skyfarer.satellite.config import SatelliteConfig
from skyfarer.satellite.sections import QueueConfig

_BLOCK_BYTES = 512  # of st_blocks, whatever the file system's own are


def short_of_room(config: SatelliteConfig) -> str:
    """A sentence when the queues may grow beyond what their disk has left; else empty.

    It is no error: a queue that finds its disk full refuses what comes, and loses nothing.
    """
    wanted = sum(
        max(
            0, pipe.queue.capacity_bytes - _taken_bytes(config.data_directory / pipe.name / "queue")
        )
        for pipe in config.pipes
        if isinstance(pipe.queue, QueueConfig)
    )
    disk = os.statvfs(_existing(config.data_directory))
    free = disk.f_bavail * disk.f_frsize
    if wanted <= free:
        return ""
    return (
        f"{config.data_directory} has {free} bytes left, and the queues may take {wanted} more;"
        " make their capacity_bytes smaller, or agents are told to come back when the disk is full"
    )


def _taken_bytes(directory: Path) -> int:
    try:
        return sum(file.stat().st_blocks * _BLOCK_BYTES for file in directory.iterdir())
    except OSError:
        return 0


def _existing(path: Path) -> Path:
    path = path.absolute()
    while not path.exists() and path != path.parent:
        path = path.parent
    return path
