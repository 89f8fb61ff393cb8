"""Calls off what takes too long: one thread for all that is under way.

A thread for each read, as `threading.Timer` has it, must be started and waited for, which takes
longer than a short read itself. This one sleeps until the earliest deadline that it knows of, and
ends when there is none; whoever is in time never wakes it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from threading import Condition, Thread


class Deadlines:
    """From any thread."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._numbers = count()
        self._due: dict[int, tuple[float, Callable[[], None]]] = {}
        self._wakes_s = 0.0
        self._thread: Thread | None = None

    @contextmanager
    def within(self, timeout_s: float, late: Callable[[], None]) -> Iterator[None]:
        """`late` is called once if this is not left in time, and never after it was left; it must
        not block."""
        number, due_s = next(self._numbers), time.monotonic() + timeout_s
        with self._changed:
            self._due[number] = due_s, late
            if self._thread is None or not self._thread.is_alive():
                self._wakes_s = due_s
                self._thread = Thread(target=self._watch, name="deadlines", daemon=True)
                self._thread.start()
            elif due_s < self._wakes_s:
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._due.pop(number, None)

    def _watch(self) -> None:
        with self._changed:
            while self._due:
                self._wakes_s = min(due_s for due_s, _ in self._due.values())
                self._changed.wait(max(self._wakes_s - time.monotonic(), 0.0))
                self._call_off()
            self._thread = None

    def _call_off(self) -> None:
        """Nothing of it stays in the thread, or it would keep what it called off open."""
        now_s = time.monotonic()
        for number in [number for number, (due_s, _) in self._due.items() if due_s <= now_s]:
            _, late = self._due.pop(number)
            late()
