"""How old the oldest record is that is not in storage yet.

Records carry no time of arrival, and none is written for this. Instead the queue is looked at,
after each batch and at each scrape. A record was there at the first look that saw it, so the age is
never too high, and too low by no more than the time between two looks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from skyfarer.base.clock import Clock

LOOKS_MAX: Final = 1024


class Lag:
    """Any thread; does not block beyond a short lock. `writing` and `committed` are the queue's
    next number and the first that is not in storage."""

    def __init__(
        self, writing: Callable[[], int], committed: Callable[[], int], clock: Clock
    ) -> None:
        self._writing = writing
        self._committed = committed
        self._clock = clock
        self._lock = threading.Lock()
        self._looks: list[tuple[int, float]] = []

    def look(self) -> float:
        """Seconds; 0 while storage has all there is."""
        with self._lock:
            committed, writing = self._committed(), self._writing()
            now_s = self._clock.monotonic_s()
            self._looks = [look for look in self._looks if look[0] > committed]
            if writing > max(committed, self._looks[-1][0] if self._looks else 0):
                self._looks.append((writing, now_s))
            if len(self._looks) > LOOKS_MAX:
                del self._looks[1::2]  # coarser from now on; the oldest stays
            return now_s - self._looks[0][1] if self._looks else 0.0
