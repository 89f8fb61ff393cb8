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
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from skyfarer.base.errors import PermanentError, RetryableError, SkyfarerError
from skyfarer.queue.disk import Disk, sync_directory
from skyfarer.queue.errors import disk_error
from skyfarer.queue.layout import Geometry

UNSYNCED_SEGMENTS_MAX: Final = 64
UNKNOWN: Final = sys.maxsize
TURN_S_MAX: Final = 0.5


class SyncFailed(RetryableError):  # noqa: N818 - a state, and a word of the contract
    """Nothing that was not durable before has become so; an operator should look at the disk."""


def sync_failed(error: OSError, path: Path) -> SyncFailed:
    return SyncFailed(
        f"cannot sync {path}: {error.strerror or error}; what it held unsynced is not acknowledged "
        "and the queue goes on in another segment; check the disk"
    )


@dataclass(frozen=True, slots=True)
class Appending:
    """What a sync asks the writer beside it, and the order in which it does matters.

    `numbers` are those of all segments with records or reserved for some, `newest` is the last with
    records. `distrust` is told that a sync has failed, before anybody is.
    """

    writing: Callable[[], int]
    newest: Callable[[], int]
    numbers: Callable[[], list[int]]
    committed: Callable[[], int]
    distrust: Callable[[], None]


class GroupCommit:
    """What an explicit sync still has to cover.

    `sync` runs in one thread at a time and may run beside appends: it has file descriptors of its
    own, and believes of a segment only what was entered before it looked. Nothing is tracked, and
    nothing costs, until it is called for the first time. Records below `suspect_below` may be in
    the page cache alone: a sync of them has failed.

    `turning` is held while the writer goes on in another segment and while a failure is noted, so
    that each failure either has its segment left behind by that turn or by the next one.
    """

    def __init__(self, disk: Disk, directory: Path, geometry: Geometry) -> None:
        self.durable = 0
        self._disk = disk
        self._directory = directory
        self._geometry = geometry
        self._tracking = False
        self._files: dict[int, int] = {}
        self._earlier: set[int] = set()
        self._names_are_durable = False
        self._lock = threading.Lock()
        self._open = False
        self.turning = threading.Lock()
        self.suspect_below = 0

    @property
    def crowded(self) -> bool:
        """So many segments wait for a sync that an append must do one itself."""
        return len(self._files) >= UNSYNCED_SEGMENTS_MAX

    def touch(self, number: int) -> None:
        """Before the first entry of a segment. Without a descriptor left it is opened when it is
        synced: an append does not fail for the sake of a sync to come."""
        if self._tracking:
            try:
                self._watch(number)
            except SkyfarerError:
                self._earlier.add(number)
            self._names_are_durable = False

    def resume(self, suspect: int, writing: int) -> None:
        """With what an earlier writer says. Unless it went on behind them, the newest segment is
        among the suspects, and where they end is not known before another is begun."""
        left = suspect < writing
        self.suspect_below = suspect if left else UNKNOWN if writing else 0

    def left(self, writing: int) -> None:
        """The writer goes on in another segment, `turning`: records from `writing` on are sound."""
        self.suspect_below = min(self.suspect_below, writing)

    def sync(self, appending: Appending) -> int:
        """The order of looking matters: every record below `writing` lies in a segment up to the
        `newest` seen behind it, and those before that get no more entries. One that is reserved is
        left alone: were its sync to fail, no turn would leave it behind."""
        try:
            with self._lock:
                if not self._open:
                    raise PermanentError(f"{self._directory}: sync before start or after stop")
                if not self._tracking:
                    self._begin(appending.numbers)
                target = appending.writing()
                newest = appending.newest()
                self.check_suspects(target, appending.committed)
                self._sync_names()
                for number in sorted({*self._files, *self._earlier}):
                    if number > newest:
                        break
                    self._sync(number, appending.distrust)
                    if number < newest:
                        self._forget(number)
                self.durable = target
                return target
        finally:
            if not self._open:
                self.close()

    def mend(self) -> None:
        """After an exception from outside in the middle of a turn, which may have left the lock
        taken. Whoever else takes it has it for microseconds."""
        if self.turning.acquire(timeout=TURN_S_MAX):
            self.turning.release()
        else:
            self.turning = threading.Lock()

    def disown(self) -> None:
        """In a forked child."""
        self._lock, self.turning = threading.Lock(), threading.Lock()

    def open(self) -> None:
        self._open = True

    def close(self) -> bool:
        """Waits for no sync: one that runs closes its files itself. False then, because nobody will
        hear of its outcome."""
        self._open = self._tracking = False
        if not self._lock.acquire(blocking=False):
            return False
        try:
            self._close_files()
        finally:
            self._lock.release()
        return True

    def _close_files(self) -> None:
        self._earlier.clear()
        while self._files:
            self._disk.close(self._files.popitem()[1])

    def _begin(self, numbers: Callable[[], list[int]]) -> None:
        """Segments opened from now on are watched by whoever opens them. Those before are opened
        one by one as they are synced: a full ring has more than a process may hold open."""
        self._close_files()
        self._names_are_durable = False
        self._tracking = True
        self._earlier.update(numbers())

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

    def _forget(self, number: int) -> None:
        self._earlier.discard(number)
        if (fd := self._files.pop(number, None)) is not None:
            self._disk.close(fd)

    def _sync(self, number: int, distrust: Callable[[], None]) -> None:
        self._watch(number)
        if number not in self._files:
            return
        try:
            self._disk.sync_data(self._files[number])
            self._earlier.discard(number)
        except OSError as error:
            with self.turning:
                self.suspect_below = UNKNOWN
                distrust()
            self._forget(number)
            raise sync_failed(error, self._geometry.path(self._directory, number)) from error

    def check_suspects(self, target: int, committed: Callable[[], int]) -> None:
        """RetryableError while records below `target` are suspect that some consumer wants."""
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
