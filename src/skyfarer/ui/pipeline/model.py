"""The pipeline as values: what one look found, and what two looks say together."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from skyfarer.ui.model import Ledger

LOOKS_MAX: Final = 180
"""Kept of one page: six minutes of a look every two seconds."""
RATE_LOOKS: Final = 5
"""So many looks back a rate is taken from, so that it does not jump from batch to batch."""

Counts = Mapping[str, int]


@dataclass(frozen=True)
class Analysis:
    lag_s: float | None
    batches: int
    restarts: int
    last_batch_s: float | None
    last_batch_records: int | None
    rows: Counts
    records: Counts


@dataclass(frozen=True)
class Ttl:
    """Days that data is kept, and what this node saw of it. Ages are in seconds."""

    record_days: int
    metrics_days: int
    oldest_s: Mapping[str, float]
    last_success_s: float | None
    expired_tables: int
    dropped: Counts
    failures: int


@dataclass(frozen=True)
class Satellite:
    """Of one name, all instances together; figures are of the last full minute."""

    service: str
    instances: tuple[str, ...]
    received: int | None
    sent: int | None
    connections: int | None


@dataclass(frozen=True)
class ClusterNode:
    name: str
    is_self: bool


@dataclass(frozen=True)
class Look:
    """All that one refresh brought."""

    time_ms: int
    started_ms: int | None
    ledger: Ledger
    dropped: Counts
    connections: int | None
    refused: Counts
    satellite_queues: int
    capacity_s: float | None
    free_s: float | None
    analysis: Analysis
    ttl: Ttl
    storage: str
    memory_bytes: Mapping[str, int]
    unwell: tuple[str, ...]
    nodes: tuple[ClusterNode, ...]
    satellites: tuple[Satellite, ...]


@dataclass
class Looks:
    """The latest looks, and the rates between them."""

    kept: deque[Look] = field(default_factory=lambda: deque(maxlen=LOOKS_MAX))

    def add(self, look: Look) -> None:
        """A node whose books have gone back is another one: nothing is compared with it."""
        if self.kept and look.ledger.accepted < self.kept[-1].ledger.accepted:
            self.kept.clear()
        self.kept.append(look)

    def accepted_per_s(self) -> float | None:
        return _rate(list(self.kept)[-RATE_LOOKS - 1 :], "accepted")

    def delivered_per_s(self) -> float | None:
        return _rate(list(self.kept)[-RATE_LOOKS - 1 :], "delivered")

    def rates(self, what: str) -> list[float | None]:
        """One for each look that is kept."""
        looks = list(self.kept)
        return [_rate(looks[max(0, at - RATE_LOOKS) : at + 1], what) for at in range(len(looks))]


def _rate(looks: list[Look], what: str) -> float | None:
    if len(looks) < 2 or looks[-1].time_ms <= looks[0].time_ms:
        return None
    gained = getattr(looks[-1].ledger, what) - getattr(looks[0].ledger, what)
    return float(max(gained, 0) * 1000 / (looks[-1].time_ms - looks[0].time_ms))


def rate_text(per_s: float | None) -> str:
    if per_s is None:
        return "–"
    return f"{per_s:,.1f}" if per_s < 100 else f"{per_s:,.0f}"


def seconds_text(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    if seconds < 120:
        return f"{seconds:,.1f} s" if seconds < 10 else f"{seconds:,.0f} s"
    span = timedelta(seconds=int(seconds))
    hours, minutes = span.seconds // 3600, span.seconds % 3600 // 60
    if span.days:
        return f"{span.days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def bytes_text(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


def by_count(counts: Counts) -> Iterable[tuple[str, int]]:
    """The greatest first; nothing of what was never counted."""
    return sorted(((k, n) for k, n in counts.items() if n), key=lambda one: (-one[1], one[0]))
