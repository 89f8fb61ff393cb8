"""Waking whoever waits for records, in any process, at no cost while nobody does.

    wake, one mapped page        u32 0: the signal     u32 1: somebody sleeps

A sleeper takes word 0, says that it sleeps, looks at the queue and waits in the kernel (a futex on
word 0) until the word is another. The writer looks at word 1 after it has shown its records; only
when that is set it clears it, makes word 0 the low half of `writing` and asks the kernel to wake.
An append before the sleeper's look is seen by it, one behind it finds word 1 set, and the kernel
compares word 0 before it lets a process sleep. Clearing comes before the signal: a sleeper that
sets word 1 in between has taken a signal that is about to change. One that was killed leaves
word 1 set, which costs the next append one system call.

Nothing orders the writer's store before its look at word 1, so in theory a wake-up could be missed
between two cores; a sleeper therefore looks again after LOOK_AGAIN_S, however long it may wait.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skyfarer.queue.disk import Disk
from skyfarer.queue.errors import QueueMissing, disk_error
from skyfarer.queue.layout import PAGE_BYTES
from skyfarer.queue.state import State

if TYPE_CHECKING:
    from skyfarer.queue.futex import Futex

LOOK_AGAIN_S: Final = 1.0
FILE: Final = "wake"
_SIGNAL: Final = 0
_SLEEPING: Final = 1
_LOW_HALF: Final = 0xFFFF_FFFF


class _Page:
    def __init__(self, mapped: mmap.mmap) -> None:
        self._mapped = mapped
        self.words = memoryview(mapped).cast("I")
        self._futex: Futex | None = None

    def futex(self) -> Futex:
        if self._futex is None:
            from skyfarer.queue.futex import Futex

            self._futex = Futex(self._mapped)
        return self._futex

    def close(self) -> None:
        if self._futex is not None:
            self._futex.close()
        self.words.release()
        self._mapped.close()


class Waker:
    """The writer's end. `show` is stores and a look; a system call only when somebody sleeps.

    `shown` and `sleeping` are what it stores into and looks at, for an append that cannot afford
    a call.
    """

    def __init__(self, disk: Disk, directory: Path, state: State, hear: Callable[[], None]) -> None:
        """`hear` is told as well, in this process."""
        self.shown = state.shown
        self._hear = hear
        path = directory / FILE
        try:
            fd = disk.open(path, os.O_RDWR | os.O_CREAT)
            try:
                disk.allocate(fd, PAGE_BYTES)
                self._page = _Page(disk.map(fd, PAGE_BYTES))
            finally:
                disk.close(fd)
        except OSError as error:
            raise disk_error(error, path, "open") from error
        self.sleeping = self._page.words[_SLEEPING : _SLEEPING + 1]

    def show(self, writing: int) -> None:
        """Readers may take what is below, and those that sleep are woken."""
        self.shown[0] = self.shown[1] = writing
        if self.sleeping[0]:
            self.wake(writing)

    def wake(self, writing: int) -> None:
        """Once `sleeping` is set and `writing` is shown."""
        self.sleeping[0] = 0
        self._page.words[_SIGNAL] = writing & _LOW_HALF
        self._hear()
        self._page.futex().wake()

    def arm(self) -> None:
        """The next append wakes whoever sleeps, and so calls `hear`."""
        self.sleeping[0] = 1

    def close(self) -> None:
        self.sleeping.release()
        self._page.close()


class Sleeper:
    """A reader's end, for one thread at a time."""

    def __init__(self, directory: Path, look_again_s: float = LOOK_AGAIN_S) -> None:
        path = directory / FILE
        self._look_again_s = look_again_s
        try:
            with path.open("r+b") as file:
                if os.fstat(file.fileno()).st_size < PAGE_BYTES:
                    raise QueueMissing(f"{path} is not complete yet; its writer is starting")
                self._page = _Page(mmap.mmap(file.fileno(), PAGE_BYTES))
        except FileNotFoundError as error:
            raise QueueMissing(f"there is no {path} yet; its writer makes it") from error
        except OSError as error:
            raise disk_error(error, path, "open") from error

    def token(self) -> int:
        """To be taken before looking whether there is a reason to sleep; from now on an append
        changes it."""
        signal = self._page.words[_SIGNAL]
        self._page.words[_SLEEPING] = 1
        return signal

    def sleep(self, token: int, deadline_s: float) -> None:
        """Unless something was appended since `token`; not for long, so look again afterwards.

        `deadline_s` is of the monotonic clock.
        """
        left_s = max(0.0, deadline_s - time.monotonic())
        self._page.futex().wait(token, min(left_s, self._look_again_s))

    def close(self) -> None:
        self._page.close()
