"""What is asked of a week of data, beside a look-up of one segment by its primary key.

Every question is asked in turns with the look-up, each time of another trace, service or endpoint,
through the same door as the query room; the 99th percentile of one is held against that of the
other, since both meet the same disturbances. Medians are listed beside.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Any, Final, Protocol

import numpy as np

import week
from figures import figure
from skyfarer.base.units import MIB
from skyfarer.oap.core import ids
from skyfarer.oap.core.storage import Reader
from skyfarer.oap.core.traces import TraceCondition, TraceOrder
from skyfarer.oap.oal.compiler import compile_texts, shipped
from skyfarer.oap.query.durations import Duration, Step
from skyfarer.oap.query.expressions import ranking
from skyfarer.oap.query.expressions.catalogue import Catalogue, Derived

ASKED: Final = 200
ASKED_AFRESH: Final = 50
WARM_UP: Final = 5
TIMES_MAX: Final = 10.0
PAGE: Final = 20
TOP: Final = 20
POINTS_MAX: Final = 500
SLOW_MS: Final = 100
TAG: Final = "http.status_code=500"
SERIES: Final = ["count", "sum_latency"]
SEGMENTS_MAX: Final = 1_000
HOURS_FROM: Final = 10**8  # days are smaller numbers

Question = Callable[[], object]


def _metric(name: str) -> Derived:
    found = Catalogue(compile_texts(shipped()).plan).find(name)
    assert isinstance(found, Derived), f"{name} is no metric of the plan"
    return found


RANKED: Final = _metric("endpoint_resp_time")


class Reading(Protocol):
    """A provider with a week in it."""

    name: str
    storage: Reader

    def look_up(self, day: int, segment_id: str) -> object:
        """The whole row, by its primary key."""

    def forget(self) -> None:
        """What this process remembers of answers, as when it has just been started."""


class Questions:
    """Each method makes one question, which is asked by calling it."""

    def __init__(self, reading: Reading, days: int, segments: int) -> None:
        self._reading, self._storage = reading, reading.storage
        self._days, self._segments = days, segments
        self._random = Random(7)

    def primary_key(self) -> Question:
        day, number = self._random.randrange(self._days), self._random.randrange(self._segments)
        (found,) = week.hex_ids(week.SEGMENT, day, np.array([number])).to_pylist()
        return lambda: self._reading.look_up(day, found)

    def trace(self) -> Question:
        day, number = self._random.randrange(self._days), self._random.randrange(self._segments)
        (found,) = week.hex_ids(week.TRACE, day, np.array([number // week.FAN])).to_pylist()
        return lambda: self._storage.trace(found, SEGMENTS_MAX, 16 * MIB)

    def search(self, order: TraceOrder, by: str) -> Question:
        """Of a week: all that a person may say at once, or one thing."""
        name = week.service_name(self._random.randrange(week.SERVICES))
        said: Mapping[str, dict[str, Any]] = {
            "all": {
                "service_id": ids.service_id(name),
                "latency_min_ms": SLOW_MS,
                "tags": (TAG,),
            },
            "service": {"service_id": ids.service_id(name)},
            "tag": {"tags": (TAG,)},
            "endpoint": {"endpoint_id": self._random.choice(week.ENDPOINT_IDS)},
        }
        between = week.day_bucket(0) * 10**6, week.day_bucket(self._days - 1) * 10**6 + 235959
        condition = TraceCondition(between=between, **said[by])
        return lambda: self._storage.traces(condition, order, 0, PAGE)

    def searches(self) -> dict[str, Callable[[], Question]]:
        orders = {"newest": TraceOrder.START_TIME, "slowest": TraceOrder.DURATION}
        return {
            f"search_{name}" + (f"_by_{by}" if by != "all" else ""): partial(self.search, order, by)
            for by in ("all", "service", "tag", "endpoint")
            for name, order in orders.items()
        }

    def series(self, start: int, end: int) -> Question:
        entity = self._random.choice(week.ENDPOINT_IDS)
        return lambda: self._storage.series("Endpoint", entity, SERIES, start, end)

    def minutes(self) -> Question:
        """As many as one question may have, all of one day."""
        day = week.day_bucket(self._random.randrange(self._days))
        hours, minutes = divmod(POINTS_MAX - 1, 60)
        start = day * 10_000 + self._random.randrange(24 - hours - 1) * 100
        return self.series(start, start + hours * 100 + minutes)

    def top(self, start: int, end: int) -> Question:
        """Of the endpoints' mean latencies, as the query room ranks them."""
        step, text = (Step.DAY, "%Y%m%d") if start < HOURS_FROM else (Step.HOUR, "%Y%m%d%H")
        ends = (datetime.strptime(str(bucket), text) for bucket in (start, end))
        window = Duration(step, *ends).window(UTC)
        return lambda: ranking.ranked(self._storage, RANKED, window, ranking.Top(TOP, False))

    def top_of_hours_afresh(self) -> Question:
        """As a process asks that has just been started."""
        self._reading.forget()
        return self.all()["top_of_hours"]()

    def all(self) -> Mapping[str, Callable[[], Question]]:
        first, last = week.day_bucket(0), week.day_bucket(self._days - 1)
        hours = first * 100, last * 100 + 23
        return {
            **self.searches(),
            "trace": self.trace,
            "series_of_days": lambda: self.series(first, last),
            "series_of_hours": lambda: self.series(*hours),
            "series_of_minutes": self.minutes,
            "top_of_days": lambda: self.top(first, last),
            "top_of_hours": lambda: self.top(*hours),
        }


def measure(reading: Reading, days: int, segments: int) -> None:
    """What is asked afresh has turns of its own: it leaves nothing in the processor's caches."""
    questions = Questions(reading, days, segments)
    spent = _spent({"primary_key": questions.primary_key, **questions.all()}, ASKED)
    _report(reading.name, spent)
    spent = _spent({"top_of_hours_afresh": questions.top_of_hours_afresh}, ASKED_AFRESH)
    _list(reading.name, spent)


def _spent(asked: Mapping[str, Callable[[], Question]], times: int) -> dict[str, list[float]]:
    spent: dict[str, list[float]] = {name: [] for name in asked}
    for number in range(WARM_UP + times):
        for name, made in asked.items():
            question = made()
            begun_s = time.perf_counter()
            found = question()
            if number >= WARM_UP:
                spent[name].append(time.perf_counter() - begun_s)
            assert found, f"{name} has found nothing: it would be measured for nothing"
    return spent


def _list(provider: str, spent: Mapping[str, list[float]]) -> None:
    for name, some in spent.items():
        unit = f"ms, p99 of {len(some)}; median {statistics.median(some) * 1e3:.2f} ms"
        figure(f"storage_{provider}_{name}", _tail(some) * 1e3, unit)


def _tail(some: list[float]) -> float:
    return statistics.quantiles(some, n=100)[-1]


def _report(provider: str, spent: Mapping[str, list[float]]) -> None:
    _list(provider, spent)
    tails = {name: _tail(some) for name, some in spent.items()}
    medians = {name: statistics.median(some) for name, some in spent.items()}
    for name in (name for name in spent if name != "primary_key"):
        for what, times in (("p99", tails), ("median", medians)):
            figure(
                f"storage_{provider}_{name}_times_{what}",
                times[name] / times["primary_key"],
                f"of a look-up by primary key, {what} each",
                at_most=TIMES_MAX,
            )
