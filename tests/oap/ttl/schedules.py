"""Moments at which a day may be told wrongly: where clocks are set, at the ends of months and
years, and any other; in every zone there is, with one clock of the two jumping."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import cache
from random import Random
from zoneinfo import ZoneInfo, available_timezones

YEARS = range(2024, 2029)
MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
JUMPS = (0, 0, 0, 1, 4 * MINUTE_MS, 299_999, HOUR_MS, DAY_MS, 2 * DAY_MS, 365 * DAY_MS)
CALENDAR = ((2, 28), (2, 29), (3, 1), (12, 31), (1, 1))
HISTORY = (("Pacific/Apia", 2011), ("America/Sao_Paulo", 2018), ("Asia/Gaza", 2023))
"""A day that was left out, midnights that were left out, and clocks set at midnight."""


@dataclass(frozen=True)
class Schedule:
    """`jump_ms`: how far one clock is off, the storage's or the node's."""

    zone: tzinfo
    now_ms: int
    record_days: int
    metrics_days: int
    jump_ms: int
    storage_jumps: bool
    force: bool

    @property
    def today(self) -> date:
        return datetime.fromtimestamp(self.now_ms / 1000, self.zone).date()


def schedules(random: Random, count: int) -> Iterator[Schedule]:
    zones = [ZoneInfo(name) for name in sorted(available_timezones())]
    known = edges()
    for _ in range(count):
        zone, now_ms = random.choice(known)
        if random.random() < 0.5:
            zone = random.choice(zones)
            now_ms = _midnight(random, zone)
        near = random.choice((0, -1, 1, -HOUR_MS, HOUR_MS, random.randint(-DAY_MS, DAY_MS)))
        yield Schedule(
            zone,
            now_ms + near,
            random.randint(2, 20),
            random.randint(2, 20),
            random.choice(JUMPS) * random.choice((1, -1)),
            random.random() < 0.5,
            random.random() < 0.5,
        )


def _midnight(random: Random, zone: tzinfo) -> int:
    year, (month, day) = random.choice(YEARS), random.choice(CALENDAR)
    if random.random() < 0.5:
        month, day = random.randint(1, 12), random.randint(1, 28)
    if (month, day) == (2, 29) and year % 4:
        day = 28
    return int(datetime(year, month, day, tzinfo=zone).timestamp() * 1000)


@cache
def edges() -> list[tuple[ZoneInfo, int]]:
    """Every moment at which a clock is set in these years, in every zone; same ones once."""
    found = {}
    for name in sorted(available_timezones()):
        zone = ZoneInfo(name)
        for moment in _set(zone, YEARS.start, YEARS.stop):
            before = datetime.fromtimestamp(moment - 1, zone).utcoffset()
            after = datetime.fromtimestamp(moment, zone).utcoffset()
            found.setdefault((before, after, moment), (zone, moment * 1000))
    for name, year in HISTORY:
        zone = ZoneInfo(name)
        for moment in _set(zone, year, year + 1):
            found[name, moment] = (zone, moment * 1000)
    return list(found.values())


def _set(zone: ZoneInfo, first: int, end: int) -> Iterator[int]:
    at, last = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (first, end))
    step = timedelta(days=5).total_seconds()
    while at < last:
        following = int(at + step)
        if _offset(zone, at) != _offset(zone, following):
            yield _first_after(zone, at, following)
        at = following


def _first_after(zone: ZoneInfo, low: int, high: int) -> int:
    """Between two moments of different offsets, the first of the later one."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _offset(zone, middle) == _offset(zone, low) else (low, middle)
    return high


def _offset(zone: ZoneInfo, at: int) -> timedelta | None:
    return datetime.fromtimestamp(at, zone).utcoffset()
