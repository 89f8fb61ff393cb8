"""Group commit: making what was appended survive a power cut, and what a failed sync means.

A failed `fdatasync` is final for its file. The kernel reports a page it could not write once and
takes it for clean from then on, so a second call that succeeds proves nothing. Hence:

- under "fsync" the batch is refused, its entries are taken back, and the next batch opens another
  segment, whose `first` overrules whatever of the refused one reached the disk;
- after `append` without it the records are accepted already and can be read. They are never called
  durable: `sync` goes on failing until every consumer has committed them, while appends go on in
  another segment.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from skyfarer.base.errors import RetryableError, SkyfarerError
from skyfarer.queue.disk import Disk, sync_directory
from skyfarer.queue.errors import disk_error
from skyfarer.queue.layout import Geometry

UNSYNCED_SEGMENTS_MAX: Final = 64
_UNKNOWN: Final = sys.maxsize


class SyncFailed(RetryableError):  # noqa: N818 - a state, and a word of the contract
    """Nothing that was not durable before has become so; an operator should look at the disk."""


def sync_failed(error: OSError, path: Path) -> SyncFailed:
    return SyncFailed(
        f"cannot sync {path}: {error.strerror or error}; what it held unsynced is not acknowledged "
        "and the queue goes on in another segment; check the disk"
    )


class GroupCommit:
    """What an explicit sync still has to cover.

    `sync` runs in one thread at a time and may run beside appends: it has file descriptors of its
    own, and believes of a segment only what was entered before it looked. Nothing is tracked, and
    nothing costs, until it is called for the first time. Records below `suspect_below` may be in
    the page cache alone: a sync of them has failed.
    """

    def __init__(self, disk: Disk, directory: Path, geometry: Geometry) -> None:
        self.durable = 0
        self._disk = disk
        self._directory = directory
        self._geometry = geometry
        self._tracking = False
        self._files: dict[int, int] = {}
        self._names_are_durable = False
        self._lock = threading.Lock()
        self.suspect_below = 0

    @property
    def crowded(self) -> bool:
        """So many segments wait for a sync that an append must do one itself."""
        return len(self._files) >= UNSYNCED_SEGMENTS_MAX

    def touch(self, number: int) -> None:
        """Before the first entry of a segment."""
        if self._tracking:
            self._watch(number)

    def left(self, writing: int) -> None:
        """The writer has gone on in another segment; records from `writing` on are sound."""
        self.suspect_below = min(self.suspect_below, writing)

    def sync(
        self,
        current: Callable[[], int],
        writing: Callable[[], int],
        live: Callable[[], list[int]],
        committed: Callable[[], int],
    ) -> int:
        """The order of looking matters: a segment before `current` gets no more entries, and
        every record below `writing` lies in a segment that is watched by the time they are."""
        with self._lock:
            if not self._tracking:
                self._begin(live)
            done_below, target = current(), writing()
            self._check_suspects(target, committed)
            self._sync_names()
            for number in sorted(self._files):
                self._sync(number)
                if number < done_below:
                    self._disk.close(self._files.pop(number))
            self.durable = target
            return target

    def close(self) -> None:
        """A sync after this begins with every segment again."""
        with self._lock:
            self._tracking = False
            while self._files:
                self._disk.close(self._files.popitem()[1])

    def _begin(self, live: Callable[[], list[int]]) -> None:
        """Segments opened from now on are watched by whoever opens them, those before here."""
        self._tracking = True
        try:
            for number in live():
                self._watch(number)
        except SkyfarerError:
            self._tracking = False
            raise

    def _watch(self, number: int) -> None:
        if number in self._files:
            return
        path = self._geometry.path(self._directory, number)
        try:
            fd = self._disk.open(path, os.O_RDWR)
        except FileNotFoundError:
            return
        except OSError as error:
            raise disk_error(error, path, "open") from error
        if self._files.setdefault(number, fd) != fd:
            self._disk.close(fd)
        self._names_are_durable = False

    def _sync_names(self) -> None:
        """A file that was made since may still have none after a power cut. The mark is set first:
        one made meanwhile takes it away again."""
        if self._names_are_durable:
            return
        self._names_are_durable = True
        try:
            sync_directory(self._disk, self._directory)
        except SkyfarerError:
            self._names_are_durable = False
            raise

    def _sync(self, number: int) -> None:
        try:
            self._disk.sync_data(self._files[number])
        except OSError as error:
            self.suspect_below = _UNKNOWN
            self._disk.close(self._files.pop(number))
            raise sync_failed(error, self._geometry.path(self._directory, number)) from error

    def _check_suspects(self, target: int, committed: Callable[[], int]) -> None:
        bound = min(self.suspect_below, target)
        if bound <= self.durable:
            return
        if committed() < bound:
            raise RetryableError(
                f"{self._directory}: a sync has failed, and records up to {bound} are not known to "
                "be durable; they are as soon as every consumer has committed them"
            )
        if self.suspect_below == bound:
            self.suspect_below = 0
