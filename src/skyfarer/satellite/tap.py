"""Looking at what passes, live, without being in its way.

A watcher gets copies: at most so many a second, only what it asked for, and only as much as it has
read of those before. Whatever is more is counted as missed. A pipe that nobody watches pays one
look at an empty tuple; one that is watched pays for what is shown, never for what is missed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from skyfarer.base.clock import Clock
from skyfarer.base.units import KIB

RATE_MAX: Final = 1000
BURST_S: Final = 1.0
PAYLOAD_BYTES_MAX: Final = 64 * KIB
IN, OUT = "in", "out"


@dataclass(frozen=True)
class Wish:
    """What a watcher wants to see; None is everything. `rate` is records a second."""

    pipe: str | None = None
    kind: int | None = None
    point: str | None = None
    rate: float = 10.0


@dataclass(frozen=True)
class Sighting:
    """One record as it passed: behind the queue's append (`in`), or on its way upstream (`out`)."""

    time_ms: int
    pipe: str
    point: str
    kind: int
    size_bytes: int
    payload: bytes


class Watcher:
    """`show` takes a sighting and says whether it could: False is one more missed."""

    def __init__(self, wish: Wish, show: Callable[[Sighting], bool], clock: Clock) -> None:
        self._wish = wish
        self._show = show
        self._clock = clock
        self._tokens_max = max(1.0, wish.rate * BURST_S)
        self._tokens = self._tokens_max
        self._filled_s = clock.monotonic_s()
        self.missed = 0

    def offer(
        self, pipe: str, point: str, kind: int, payloads: Sequence[bytes | memoryview]
    ) -> None:
        wish = self._wish
        if (
            (wish.pipe is not None and wish.pipe != pipe)
            or (wish.kind is not None and wish.kind != kind)
            or (wish.point is not None and wish.point != point)
        ):
            return
        affordable = min(len(payloads), int(self._fill()))
        now_ms = self._clock.now_ms()
        shown = 0
        for payload in payloads[:affordable]:
            beginning = bytes(payload[:PAYLOAD_BYTES_MAX])
            if not self._show(Sighting(now_ms, pipe, point, kind, len(payload), beginning)):
                break
            shown += 1
        self._tokens -= shown
        self.missed += len(payloads) - shown

    def _fill(self) -> float:
        now_s = self._clock.monotonic_s()
        earned = (now_s - self._filled_s) * self._wish.rate
        self._tokens = min(self._tokens_max, self._tokens + earned)
        self._filled_s = now_s
        return self._tokens


class Tap:
    """Where all pipes offer what passes. Event loop only."""

    def __init__(self) -> None:
        self.watchers: tuple[Watcher, ...] = ()

    def add(self, watcher: Watcher) -> None:
        self.watchers = (*self.watchers, watcher)

    def remove(self, watcher: Watcher) -> None:
        self.watchers = tuple(one for one in self.watchers if one is not watcher)

    def offer(
        self, pipe: str, point: str, kind: int, payloads: Sequence[bytes | memoryview]
    ) -> None:
        for watcher in self.watchers:
            watcher.offer(pipe, point, kind, payloads)
