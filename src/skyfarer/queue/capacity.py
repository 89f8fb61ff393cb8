"""How long a queue lasts: its room, in seconds at the pace at which it is being used up.

"512 MiB" says nothing about an outage; "an hour at the current rate" does. The pace is taken from
outside, from two looks at the files, so that it costs an append nothing and is the same figure for
the owner and for an onlooker. What is used up is room of the ring: a segment whose index is full
is as full as one whose payloads are, so small records use up more than their bytes.

Well defined at the ends: no room left is 0 seconds, whatever the pace. Room that nothing uses up,
or so slowly that it would take more than ten years, is infinite.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Final, NamedTuple

from skyfarer.base.clock import Clock
from skyfarer.queue.fill import fill_of
from skyfarer.telemetry import table
from skyfarer.telemetry.metrics import Registry

MEMORY_S: Final = 60.0
LOOK_INTERVAL_S: Final = 1.0
FOREVER_S: Final = 10 * 365 * 24 * 3600.0


class Pace:
    """How fast a count grows, recent growth weighted most: what is `memory_s` old weighs 1/e.

    The weights add up to one from the second observation on, so a young pace is as true as an old
    one; with one observation it is 0. A count that went back (a queue begun anew) has not grown.
    """

    def __init__(self, memory_s: float = MEMORY_S) -> None:
        self._memory_s = memory_s
        self._seen: tuple[float, float] | None = None
        self._sum = self._weight = 0.0

    def observe(self, at_s: float, count: float) -> None:
        """`at_s` by a monotonic clock; a second count of the same moment is left out."""
        before_s, before = self._seen or (at_s, count)
        elapsed_s = at_s - before_s
        if self._seen is not None and elapsed_s <= 0:
            return
        self._seen = (at_s, count)
        if elapsed_s > 0:
            share = -math.expm1(-elapsed_s / self._memory_s)
            self._sum += (max(0.0, count - before) / elapsed_s - self._sum) * share
            self._weight += (1.0 - self._weight) * share

    @property
    def per_s(self) -> float:
        return self._sum / self._weight if self._weight else 0.0


class Outlook(NamedTuple):
    """`bytes_per_s` are bytes of the ring, unused ends of segments and the index included.
    `free_s` is of segments that no consumer wants, not of the rest of the one being written."""

    records_per_s: float
    bytes_per_s: float
    capacity_s: float
    free_s: float


class Watch:
    """The queue in `directory`, seen again and again. One thread at a time; the constructor
    touches nothing."""

    def __init__(self, directory: Path, clock: Clock, memory_s: float = MEMORY_S) -> None:
        self._directory = directory
        self._clock = clock
        self._bytes, self._records = Pace(memory_s), Pace(memory_s)
        self._looked_s = -math.inf
        self._outlook = Outlook(0.0, 0.0, math.inf, math.inf)

    def look(self) -> Outlook:
        """Raises what `fill_of` does. The first look knows no pace: all is infinite."""
        found = fill_of(self._directory)
        now_s = self._clock.monotonic_s()
        self._bytes.observe(now_s, found.written_bytes)
        self._records.observe(now_s, found.writing)
        self._outlook = Outlook(
            records_per_s=self._records.per_s,
            bytes_per_s=self._bytes.per_s,
            capacity_s=lasts_s(found.capacity_bytes, self._bytes.per_s),
            free_s=lasts_s(found.free_bytes, self._bytes.per_s),
        )
        self._looked_s = now_s
        return self._outlook

    def register(self, registry: Registry, queue: str) -> None:
        """Each scrape looks; `queue` is the label that tells queues of a program apart."""
        registry.observe_with(
            table.QUEUE_CAPACITY_SECONDS, lambda: self._recent().capacity_s, queue=queue
        )
        registry.observe_with(table.QUEUE_FREE_SECONDS, lambda: self._recent().free_s, queue=queue)

    def _recent(self) -> Outlook:
        if self._clock.monotonic_s() - self._looked_s >= LOOK_INTERVAL_S:
            self.look()
        return self._outlook


def lasts_s(room_bytes: int, bytes_per_s: float) -> float:
    if room_bytes <= 0:
        return 0.0
    if bytes_per_s * FOREVER_S < room_bytes:
        return math.inf
    return room_bytes / bytes_per_s
