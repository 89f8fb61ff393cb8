"""`state`: the numbers a writer shows to readers, in one mapped page.

    word (u64)   0 magic   1–2 queue id   3 starts   4, 5 writing   6, 7 oldest   8, 9 suspect

A reader needs no lock: each number is an aligned 8-byte store. Each is kept twice and the smaller
is believed, because too small is always safe (readers wait, recovery scans) while a flipped bit
that made one larger would invent records or skip them. Nothing here is needed to recover: the
segments say it all, unless some are damaged, and then `writing` tells how much was promised and
`oldest` what had been given up before.

`suspect` is for the writer that comes after one whose sync has failed: records below it are in the
page cache and perhaps nowhere else, and the kernel will not say so a second time. There the larger
is believed. After a power cut the page cache is gone, and with it all that was suspect.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Final

from skyfarer.queue.disk import Disk
from skyfarer.queue.errors import QueueMissing, disk_error
from skyfarer.queue.layout import PAGE_BYTES

_MAGIC: Final = int.from_bytes(b"SKYQSTAT", "little")
_WORD: Final = 1 << 64
_STARTS: Final = 3
_WRITING: Final = 4
_OLDEST: Final = 6
_SUSPECT: Final = 8


class State:
    """One writer process, any number of readers. `shown` are the two words of `writing`."""

    def __init__(self, view: mmap.mmap) -> None:
        self._map = view
        self._words = memoryview(view).cast("Q")
        self.shown = self._words[_WRITING : _WRITING + 2]

    @property
    def writing(self) -> int:
        return min(self._words[_WRITING], self._words[_WRITING + 1])

    @property
    def oldest(self) -> int:
        return min(self._words[_OLDEST], self._words[_OLDEST + 1])

    @property
    def suspect(self) -> int:
        return max(self._words[_SUSPECT], self._words[_SUSPECT + 1])

    @property
    def starts(self) -> int:
        """Changes whenever a writer has recovered the directory: what a reader remembers of it
        may be wrong from then on."""
        return self._words[_STARTS]

    def publish_writing(self, sequence: int) -> None:
        self.shown[0] = self.shown[1] = sequence

    def publish_oldest(self, sequence: int) -> None:
        self._words[_OLDEST] = sequence
        self._words[_OLDEST + 1] = sequence

    def publish_suspect(self, sequence: int) -> None:
        self._words[_SUSPECT] = sequence
        self._words[_SUSPECT + 1] = sequence

    def belongs_to(self, queue_id: bytes) -> bool:
        return self._words[0] == _MAGIC and self._words[1:3].tobytes() == queue_id

    def show(self, queue_id: bytes, oldest: int, writing: int) -> None:
        """From now on readers may look; the magic comes last, so half a page is none."""
        self._words[_STARTS] = (self._words[_STARTS] + 1) % _WORD
        self.publish_oldest(oldest)
        self.publish_writing(writing)
        self._words[1:3] = memoryview(queue_id).cast("Q")
        self._words[0] = _MAGIC

    def close(self) -> None:
        self.shown.release()
        self._words.release()
        self._map.close()


def open_state(disk: Disk, directory: Path) -> State:
    """For the writer. The file is mended in place, never replaced: readers have it mapped."""
    path = directory / "state"
    try:
        fd = disk.open(path, os.O_RDWR | os.O_CREAT)
        try:
            disk.allocate(fd, PAGE_BYTES)
            return State(disk.map(fd, PAGE_BYTES))
        finally:
            disk.close(fd)
    except OSError as error:
        raise disk_error(error, path, "open") from error


def map_state(directory: Path, queue_id: bytes) -> State:
    """For readers."""
    path = directory / "state"
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < PAGE_BYTES:
                raise QueueMissing(f"{path} is not complete yet; its writer is starting")
            state = State(mmap.mmap(file.fileno(), PAGE_BYTES, access=mmap.ACCESS_READ))
    except FileNotFoundError as error:
        raise QueueMissing(f"there is no {path} yet; the writer of the queue makes it") from error
    except OSError as error:
        raise disk_error(error, path, "open") from error
    if not state.belongs_to(queue_id):
        state.close()
        raise QueueMissing(f"{path} is not filled in yet; its writer is starting")
    return state
