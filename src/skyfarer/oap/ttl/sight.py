"""What this node has seen of the boundaries of the data, whoever deletes it.

Nothing is told between nodes. Each looks at the tables itself: as long as nothing expired is left,
or less than there was, somebody deletes. If that stops for three periods, every node says so, the
one whose turn it is and the others. It is judged when health is asked for: a run that hangs, and a
timer that stands still, can say nothing.
"""

from __future__ import annotations

from datetime import timedelta
from threading import Lock
from typing import Final

from skyfarer.base.clock import Clock
from skyfarer.oap.core.expiry import Kept, Retention
from skyfarer.oap.core.time_bucket import begins_ms
from skyfarer.oap.ttl.policy import Plan
from skyfarer.telemetry import table
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry

PART: Final = "ttl"
ALARM_PERIODS: Final = 3


class Sight:
    """Any thread. What was never looked at counts from the construction on."""

    def __init__(
        self,
        retention: Retention,
        period_s: float,
        registry: Registry,
        health: Health,
        clock: Clock,
    ) -> None:
        self._retention = retention
        self._period_s = period_s
        self._registry = registry
        self._health = health
        self._clock = clock
        self._lock = Lock()
        self._success_s = clock.monotonic_s()
        self._expired = 0
        self._oldest: dict[Kept, int] = {}
        self._why = ""
        self._began_s: float | None = None

    def observe(self, alarm: bool = True) -> None:
        """`alarm`: health has a part of it. A node that is told to delete nothing has none."""
        self._registry.observe_with(table.TTL_LAST_SUCCESS_AGE, self.age_s)
        self._registry.observe_split(table.OLDEST_DATA_AGE, self.oldest_ages_s)
        if alarm:
            self._health.ask(PART, self.ailment)

    def saw(self, plan: Plan) -> None:
        """After the tables were looked at."""
        with self._lock:
            if not plan.expired or plan.expired < self._expired:
                self._success_s = self._clock.monotonic_s()
            self._expired, self._oldest = plan.expired, dict(plan.oldest)
        self._registry.set(table.TTL_EXPIRED_TABLES, plan.expired)

    def began(self) -> None:
        with self._lock:
            self._began_s = self._clock.monotonic_s()

    def ended(self, why: str) -> None:
        """`why` is what the run has to say."""
        with self._lock:
            self._began_s, self._why = None, why

    def ailment(self) -> str:
        """The alarm in a sentence; empty when there is none. Never blocks."""
        if self.periods_overdue() < ALARM_PERIODS:
            return ""
        with self._lock:
            expired, why, began_s = self._expired, self._why, self._began_s
        lasts_s = 0.0 if began_s is None else self._clock.monotonic_s() - began_s
        if lasts_s >= self._period_s:
            why = f"a run has not ended for {_span(lasts_s)}"
        found = f"{expired} expired tables" if expired else "unknown what is expired"
        said = f"nothing expired was deleted for {_span(self.age_s())}: {found}"
        return said + (f"; {why}" if why else "")

    def age_s(self) -> float:
        return self._clock.monotonic_s() - self._success_s

    def periods_overdue(self) -> float:
        return self.age_s() / self._period_s

    def oldest_ages_s(self) -> dict[str, float]:
        now_ms, zone = self._clock.now_ms(), self._retention.zone
        with self._lock:
            days = dict(self._oldest)
        return {kept.value: (now_ms - begins_ms(day, zone)) / 1000 for kept, day in days.items()}


def _span(seconds: float) -> timedelta:
    return timedelta(seconds=int(seconds))
