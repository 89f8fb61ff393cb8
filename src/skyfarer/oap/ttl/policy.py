"""Which tables of days go: by two clocks, oldest first, and not all at once.

A clock that is wrong must not cost data. The day is that of the clock that is behind, this node's
or the storage's, and where they differ too much nothing goes at all. Both may be one clock, so the
data is a third: a day has come when there is something of it. Where nothing came for so long that
all there is would go, or all but what came today, a wrong clock and a long outage look alike, and
nothing goes: in the one case until newer data comes or somebody forces it, in the other that day.

Yesterday, today and every later day stay whatever is configured. Of one model a run takes half of
its days at most, or two: more than ever expires in a period, while what a long outage has left
halves with every run.
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
    """`going` in this run and `waiting` for the next ones are expired; each by model, then day.
    `today` is the newest day that there is data of, and never after `clocks_day`."""

    clocks_day: int
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
    """`force` lifts the bound of one run, and believes the clocks without data that confirms them.
    ClockError for clocks that differ too much to tell the day, or that nothing confirms."""
    _agree(local_ms, storage_ms)
    known = sorted(set(tables), key=lambda table: (table.model, table.day))
    clocks_day = retention.today(min(local_ms, storage_ms))
    today = clocks_day if force else _confirmed(known, retention, clocks_day)
    first_days = _first_days(retention, today)
    expired = [table for table in known if table.day < first_days[table.kept]]
    staying = [table for table in known if table.day >= first_days[table.kept]]
    if expired and not force:
        _outlast(staying, clocks_day)
    days = Counter(table.model for table in known)
    going, waiting = (expired, []) if force else _bounded(expired, days)
    return Plan(clocks_day, today, first_days, tuple(going), tuple(waiting), tuple(staying))


def _first_days(retention: Retention, today: int) -> dict[Kept, int]:
    newest = days_before(today, 1)
    return {kept: min(retention.first_day_on(today, kept), newest) for kept in Kept}


def _confirmed(tables: Iterable[DayTable], retention: Retention, clocks_day: int) -> int:
    """The newest day that there is data of; ClockError when even that has expired long ago."""
    newest = max((one.day for one in tables if one.day <= clocks_day), default=clocks_day)
    if newest < min(_first_days(retention, clocks_day).values()):
        raise ClockError(
            f"there is nothing newer than {newest}, and by the clocks it is {clocks_day} and all of"
            " it has expired: nothing is deleted until data comes, or by ttl --now --force"
        )
    return newest


def _outlast(staying: Iterable[DayTable], clocks_day: int) -> None:
    """Some day but the last one stays; ClockError if not."""
    if {one.day for one in staying if one.day <= clocks_day} == {clocks_day}:
        raise ClockError(
            f"all data but that of {clocks_day}, which is today by the clocks, would go, as if they"
            " had been set ahead: nothing is deleted until tomorrow, or by ttl --now --force"
        )


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
