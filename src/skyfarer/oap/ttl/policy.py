"""Which tables of days go: by two clocks, oldest first, and not all at once.

A clock that is wrong must not cost data. The day is that of the clock that is behind, this node's
or the storage's, and where they differ too much nothing goes at all. Yesterday, today and every
later day stay whatever is configured. Of one model a run takes half of its days at most, or two:
more than ever expires in a period, while what a long outage has left halves with every run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from skyfarer.base.errors import RetryableError
from skyfarer.oap.core.expiry import DayTable, Kept, Retention
from skyfarer.oap.core.time_bucket import days_before

CLOCKS_DIFFER_MS_MAX: Final = 300_000
DAYS_A_RUN: Final = 2
PARTS_A_RUN: Final = 2
"""A run takes one part of so many, if that is more."""


class ClockError(RetryableError):
    """By a clock that cannot be trusted nothing is deleted."""


@dataclass(frozen=True)
class Plan:
    """`going` in this run and `waiting` for the next ones are expired; each by model, then day."""

    today: int
    first_days: Mapping[Kept, int]
    going: tuple[DayTable, ...]
    waiting: tuple[DayTable, ...]
    staying: tuple[DayTable, ...]

    @property
    def expired(self) -> int:
        return len(self.going) + len(self.waiting)

    @property
    def oldest(self) -> Mapping[Kept, int]:
        """The oldest day there is."""
        days: dict[Kept, int] = {}
        for table in (*self.going, *self.waiting, *self.staying):
            days[table.kept] = min(table.day, days.get(table.kept, table.day))
        return days


def plan(
    tables: Iterable[DayTable],
    retention: Retention,
    local_ms: int,
    storage_ms: int,
    force: bool = False,
) -> Plan:
    """`force` lifts the bound of one run and nothing else. ClockError for clocks that differ
    too much to tell the day."""
    _agree(local_ms, storage_ms)
    now_ms = min(local_ms, storage_ms)
    today = retention.today(now_ms)
    newest_first_day = days_before(today, 1)
    first_days = {kept: min(retention.first_day(kept, now_ms), newest_first_day) for kept in Kept}
    known = sorted(set(tables), key=lambda table: (table.model, table.day))
    expired = [table for table in known if table.day < first_days[table.kept]]
    days = Counter(table.model for table in known)
    going, waiting = (expired, []) if force else _bounded(expired, days)
    staying = [table for table in known if table.day >= first_days[table.kept]]
    return Plan(today, first_days, tuple(going), tuple(waiting), tuple(staying))


def _agree(local_ms: int, storage_ms: int) -> None:
    if abs(local_ms - storage_ms) > CLOCKS_DIFFER_MS_MAX:
        ahead = "ahead of" if local_ms > storage_ms else "behind"
        difference = timedelta(seconds=abs(local_ms - storage_ms) // 1000)
        raise ClockError(
            f"this node's clock is {difference} {ahead} the storage's, and more than"
            f" {CLOCKS_DIFFER_MS_MAX // 60_000} minutes: nothing is deleted until both are set"
        )


def _bounded(
    expired: Iterable[DayTable], days: Mapping[str, int]
) -> tuple[list[DayTable], list[DayTable]]:
    """Of each model the oldest, and the others; `days` are how many each has."""
    taken: Counter[str] = Counter()
    going, waiting = list[DayTable](), list[DayTable]()
    for table in expired:
        taken[table.model] += 1
        within = taken[table.model] <= max(DAYS_A_RUN, days[table.model] // PARTS_A_RUN)
        (going if within else waiting).append(table)
    return going, waiting
