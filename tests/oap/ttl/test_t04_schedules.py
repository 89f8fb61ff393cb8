"""Keepers at odd times, over tables with rows: not one of a day that is kept goes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from contracts.storage_contract import batch, segment
from oap.ttl.keepers import keeper_of
from oap.ttl.schedules import DAY_MS, Schedule, schedules
from skyfarer.oap.core.expiry import DayTable, Kept, Retention
from skyfarer.oap.core.time_bucket import day_of, minute_bucket
from skyfarer.oap.storage.embedded import EmbeddedStorage
from skyfarer.testing.clock import HandClock
from skyfarer.testing.day_tables import MemoryTables

IN_FILES = 24
IN_MEMORY = 2_500
SEGMENTS = 12


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.getLogger("skyfarer.oap.ttl").setLevel(logging.CRITICAL)
    yield
    logging.getLogger("skyfarer.oap.ttl").setLevel(logging.NOTSET)


class InMemory:
    def __init__(self, schedule: Schedule, clock: HandClock) -> None:
        self.tables = MemoryTables(clock)
        self._zone, self._rows = schedule.zone, dict[DayTable, list[int]]()

    def store(self, starts: Iterable[int]) -> None:
        for start in starts:
            day = day_of(minute_bucket(start, self._zone))
            table = DayTable("segment", day, Kept.RECORD)
            self._rows.setdefault(table, []).append(start)
        self.tables.present |= set(self._rows)

    def stored(self) -> list[int]:
        return [start for table in self.tables.present for start in self._rows[table]]

    def close(self) -> None:
        return


class InFile:
    def __init__(self, schedule: Schedule, clock: HandClock, path: Path) -> None:
        self.tables = EmbeddedStorage(clock=clock)
        self.tables.start(path, schedule.zone)

    def store(self, starts: Iterable[int]) -> None:
        rows = [segment(f"s{start}-{n}", start) for n, start in enumerate(starts)]
        self.tables.apply(batch(0, SEGMENTS, rows))

    def stored(self) -> list[int]:
        cursor, found = self.tables._cursor(), self.tables.day_tables()
        names = [f"segment_{one.day}" for one in found if one.model == "segment"]
        rows = (cursor.execute(f"SELECT start_time FROM {name}").fetchall() for name in names)
        return [start for found in rows for (start,) in found]

    def close(self) -> None:
        self.tables.stop()


def starts(schedule: Schedule) -> list[int]:
    """Minutes of the days that are kept and of as many before them, among them now and yesterday:
    data comes in."""
    days = schedule.metrics_days + schedule.record_days
    ago = [0, DAY_MS, *(Random(n).randint(0, days * DAY_MS) for n in range(SEGMENTS - 2))]
    found = (schedule.now_ms - one for one in ago)
    return [start - start % 60_000 for start in found]


def live(schedule: Schedule, times: Iterable[int]) -> list[int]:
    """Those on one of the days that are kept, by the calendar alone."""
    first = schedule.today - timedelta(days=schedule.record_days - 1)
    dates = ((time, datetime.fromtimestamp(time / 1000, schedule.zone).date()) for time in times)
    return sorted(time for time, date in dates if date >= first)


def played(
    schedule: Schedule, made: Callable[[Schedule, HandClock], InMemory | InFile]
) -> tuple[int, int]:
    """How many rows were live, and how many went. The clock is the node's own: one that is ahead,
    by a leap or from the start, is caught by the clock that never leaps or by the data. Only
    whoever forces a run must be sure of his clock."""
    clock = HandClock(schedule.now_ms)
    kept = made(schedule, clock)
    wanted = live(schedule, starts(schedule))
    kept.store(starts(schedule))
    retention = Retention(schedule.record_days, schedule.metrics_days, schedule.zone)
    keeper = keeper_of(kept.tables, clock, retention, "node")
    clock.set_ahead(schedule.jump_ms)
    started_so = keeper_of(kept.tables, clock, retention, "node")
    for one in (keeper, keeper, started_so):
        one.run(schedule.force and schedule.jump_ms <= 0)
        assert live(schedule, kept.stored()) == wanted, schedule
    clock.set_ahead(-schedule.jump_ms)
    runs = [keeper.run(schedule.force) for _ in range(6)]
    left = kept.stored()
    if "all data but that of" in runs[-1].why:  # waits for tomorrow
        assert live(schedule, left) == wanted, schedule
    else:
        assert sorted(left) == wanted, schedule
    kept.close()
    return len(wanted), SEGMENTS - len(left)


def test_t04_no_live_row_of_a_real_file_goes_in_any_schedule(tmp_path: Path) -> None:
    for number, schedule in enumerate(schedules(Random(4), IN_FILES)):
        path = tmp_path / f"{number}.duckdb"
        played(schedule, lambda schedule, clock, path=path: InFile(schedule, clock, path))


def test_t04_no_live_row_in_memory_goes_in_any_of_2500_schedules() -> None:
    counts = [played(schedule, InMemory) for schedule in schedules(Random(5), IN_MEMORY)]
    lived, went = map(sum, zip(*counts, strict=True))
    assert lived > 2 * IN_MEMORY
    assert went > 2 * IN_MEMORY
