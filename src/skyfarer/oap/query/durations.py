"""Durations of the query protocol: text in the server's time zone to time buckets and back.

A duration is a range of buckets, both ends included: of minutes, which is what lists are asked by,
and of the step's own, one point of a chart each. Storage has metrics by all three.

    step    text               bucket          minutes of one bucket (first … last)
    MINUTE  yyyy-MM-dd HHmm    202611150817    itself
    HOUR    yyyy-MM-dd HH      2026111508      bucket·100   … bucket·100   + 59
    DAY     yyyy-MM-dd         20261115        bucket·10⁴   … bucket·10⁴   + 2359
    SECOND  yyyy-MM-dd HHmmss  20261115081759  the minute it falls in
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from enum import Enum
from functools import cached_property, lru_cache
from typing import NamedTuple

from skyfarer.oap.core import time_bucket
from skyfarer.oap.core.time_bucket import MINUTE_MS
from skyfarer.oap.query.errors import QueryError

POINTS_MAX = 500
WINDOWS_REMEMBERED_MAX = 64
_FIRST_YEAR = 1970
_LAST_YEAR = 9998  # one year short of what datetime can add a step to


@dataclass(frozen=True)
class _Shape:
    text: str
    pattern: re.Pattern[str]


class Step(Enum):
    DAY = "DAY"
    HOUR = "HOUR"
    MINUTE = "MINUTE"
    SECOND = "SECOND"


_DATE, _TWO = "([0-9]{4})-([0-9]{2})-([0-9]{2})", "([0-9]{2})"
_SHAPES = {
    Step.DAY: _Shape("yyyy-MM-dd", re.compile(_DATE)),
    Step.HOUR: _Shape("yyyy-MM-dd HH", re.compile(f"{_DATE} {_TWO}")),
    Step.MINUTE: _Shape("yyyy-MM-dd HHmm", re.compile(f"{_DATE} {_TWO}{_TWO}")),
    Step.SECOND: _Shape("yyyy-MM-dd HHmmss", re.compile(f"{_DATE} {_TWO}{_TWO}{_TWO}")),
}

# Per step that metrics have: digits a minute bucket has more, its last minute, minutes in all.
_MINUTES = {Step.DAY: (10_000, 2359, 1440), Step.HOUR: (100, 59, 60), Step.MINUTE: (1, 0, 1)}


class Point(NamedTuple):
    """One bucket of a chart. `epoch_ms` is the moment it begins."""

    bucket: int
    epoch_ms: int


@dataclass(frozen=True)
class Window:
    """Points in order, the bucket before the first, and how many minutes a bucket has."""

    points: tuple[Point, ...]
    before: int
    minutes: int

    @cached_property
    def buckets(self) -> tuple[int, ...]:
        """In order."""
        return tuple(point.bucket for point in self.points)

    @cached_property
    def moments(self) -> tuple[str, ...]:
        """When each begins, as values of expressions have it."""
        return tuple(str(point.epoch_ms) for point in self.points)

    @cached_property
    def predecessors(self) -> dict[int, int]:
        """Bucket → the one before it."""
        return dict(zip(self.buckets, (self.before, *self.buckets), strict=False))


@dataclass(frozen=True)
class Duration:
    step: Step
    start: datetime
    end: datetime

    @classmethod
    def of(cls, argument: Mapping[str, str]) -> Duration:
        """From the protocol's input value; QueryError when a text does not fit or start > end."""
        step = Step(argument["step"])
        start, end = _moment(argument["start"], step), _moment(argument["end"], step)
        if start > end:
            raise QueryError(
                f"duration starts at {argument['start']!r}, after its end {argument['end']!r}"
            )
        return cls(step, start, end)

    @property
    def start_minute(self) -> int:
        return _bucket(self.start, Step.MINUTE)

    @property
    def end_minute(self) -> int:
        last = _MINUTES.get(self.step, (1, 0, 1))[1]
        return _bucket(self.end, Step.MINUTE) + last

    @property
    def buckets(self) -> tuple[int, int]:
        """The first and the last of the step's own; of seconds the minutes they fall in."""
        digits = _MINUTES.get(self.step, (1, 0, 1))[0]
        return self.start_minute // digits, self.end_minute // digits

    @property
    def seconds(self) -> tuple[int, int]:
        """The first and the last second bucket."""
        if self.step is Step.SECOND:
            return (
                self.start_minute * 100 + self.start.second,
                self.end_minute * 100 + self.end.second,
            )
        return self.start_minute * 100, self.end_minute * 100 + 59

    def points(self, zone: tzinfo) -> list[Point]:
        """Every bucket in order. An hour that the clock repeats is one bucket, and one point."""
        if self.step is Step.SECOND:
            raise QueryError("metrics are kept by the minute: use step MINUTE, HOUR or DAY")
        return _evenly(self, zone) or _one_by_one(self, zone)

    def window(self, zone: tzinfo, earlier: int = 0) -> Window:
        """Its points, and so many before them; together they are bounded as points are."""
        return window_of(self, zone, earlier)


@lru_cache(WINDOWS_REMEMBERED_MAX)
def window_of(duration: Duration, zone: tzinfo, earlier: int) -> Window:
    """Remembered: a page asks hundreds of metrics for one and the same time."""
    points, unit = duration.points(zone), duration.step.value.lower()
    if not points:
        raise QueryError(f"the server's clock has no such {unit}: it was set forward then")
    if len(points) + earlier > POINTS_MAX:
        raise QueryError(f"{earlier} {unit}s before {len(points)} are more than {POINTS_MAX}")
    *more, before = _before(points[0].bucket, duration, earlier + 1, zone)
    return Window((*reversed(more), *points), before.bucket, minutes_of(duration.step))


def _evenly(duration: Duration, zone: tzinfo) -> list[Point]:
    """Where the clock is not set meanwhile, which is nearly always, and ten times as fast; none
    where it is, or where there are too many. It is never set twice in an hour."""
    start, end, minutes = duration.start, duration.end, _MINUTES[duration.step][2]
    count = (end - start) // timedelta(minutes=minutes) + 1
    if duration.step is Step.DAY or count > POINTS_MAX:
        return []
    hour = start.replace(minute=0)
    hours = [hour + timedelta(hours=n) for n in range((end - hour) // timedelta(hours=1) + 1)]
    there = end.replace(tzinfo=zone).astimezone(UTC).astimezone(zone).replace(tzinfo=None)
    if there != end or len(set(map(zone.utcoffset, (start, *hours[1:], end)))) > 1:
        return []
    buckets = [_bucket(hour, Step.HOUR) for hour in hours]
    if duration.step is Step.MINUTE:
        every = [minute for one in buckets for minute in range(one * 100, one * 100 + 60)]
        buckets = every[start.minute : start.minute + count]
    first_ms, apart_ms = _point(buckets[0], duration.step, zone).epoch_ms, minutes * MINUTE_MS
    return list(map(Point, buckets, range(first_ms, first_ms + count * apart_ms, apart_ms)))


def _one_by_one(duration: Duration, zone: tzinfo) -> list[Point]:
    """A clock that is set back shows what was before the start once more; that is no part of it."""
    points: dict[int, Point] = {}
    start, end = (_bucket(moment, duration.step) for moment in (duration.start, duration.end))
    for moment in _moments(duration.start, duration.step, zone):
        bucket = _bucket(moment, duration.step)
        if bucket > end:
            break
        if bucket < start:
            continue
        if len(points) == POINTS_MAX and bucket not in points:
            unit = duration.step.value.lower()
            raise QueryError(f"duration has more than {POINTS_MAX} {unit}s")
        points.setdefault(bucket, _point(bucket, duration.step, zone))
    return list(points.values())


def minutes_of(step: Step) -> int:
    return _MINUTES[step][2]


def _moment(text: str, step: Step) -> datetime:
    """By hand: `strptime` takes as long as all else that is done with a duration."""
    shape = _SHAPES[step]
    if written := shape.pattern.fullmatch(text):
        numbers = [*map(int, written.groups()), 0, 0, 0]
        year, month, day, hour, minute, second = numbers[:6]
        try:
            moment = datetime(year, month, day, hour, minute, second)
        except ValueError:
            moment = datetime.min
        if _FIRST_YEAR <= moment.year <= _LAST_YEAR:
            return moment
    raise QueryError(f"{text[:40]!r} is not a time of step {step.value}, written {shape.text}")


def _moments(start: datetime, step: Step, zone: tzinfo, direction: int = 1) -> Iterator[datetime]:
    """Local times a step apart: days by the calendar, hours and minutes by the elapsed time."""
    if step is Step.DAY:
        day = start
        while True:
            yield day
            day += timedelta(days=direction)
    moment = start.replace(tzinfo=zone).astimezone(UTC)
    while True:
        yield moment.astimezone(zone)
        moment += timedelta(minutes=direction * minutes_of(step))


def _before(first: int, duration: Duration, count: int, zone: tzinfo) -> list[Point]:
    """So many buckets before the first, the latest of them first."""
    points: dict[int, Point] = {}
    for moment in _moments(duration.start, duration.step, zone, -1):
        bucket = _bucket(moment, duration.step)
        if bucket < first:
            points.setdefault(bucket, _point(bucket, duration.step, zone))
        if len(points) == count:
            return list(points.values())
    raise AssertionError("moments never end")


def _bucket(moment: datetime, step: Step) -> int:
    day = (moment.year * 100 + moment.month) * 100 + moment.day
    return (day * 10_000 + moment.hour * 100 + moment.minute) // _MINUTES[step][0]


def _point(bucket: int, step: Step, zone: tzinfo) -> Point:
    first_minute = bucket * _MINUTES[step][0]
    return Point(bucket, time_bucket.epoch_ms(first_minute, zone))
