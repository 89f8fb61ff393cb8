"""A keeper that is killed while it deletes, and one that runs over a real file at odd times."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

from contracts.expiry_contract import NOON, OLD
from contracts.storage_contract import batch, delta, segment
from oap.ttl.cluster_of import DAYS, PERIOD_S, Told
from oap.ttl.schedules import DAY_MS, Schedule, schedules
from skyfarer.oap.core.cluster import Node
from skyfarer.oap.core.expiry import Kept, Retention
from skyfarer.oap.storage.embedded import EmbeddedStorage
from skyfarer.oap.ttl.keeper import LEASE_S, Keeper, KeeperSettings
from skyfarer.oap.ttl.sight import Sight
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.clock import HandClock

PROGRAM = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from oap.ttl.test_t01_killed_keeper import run_and_say
run_and_say(Path(sys.argv[1]), sys.argv[3])
"""
OWN = Node("10.0.0.1", 11800, is_self=True)
SCHEDULES = 12
SEGMENTS = 12


def keeper_of(
    storage: EmbeddedStorage, clock: HandClock, retention: Retention, holder: str
) -> Keeper:
    registry = Registry()
    return Keeper(
        KeeperSettings(retention, PERIOD_S, holder),
        *(storage, Told([OWN]), Sight(retention, PERIOD_S, registry, Health(), clock)),
        *(registry, clock),
    )


class SayingStorage(EmbeddedStorage):
    """Says before and after each drop that it is there, and waits to be told to go on."""

    def drop(self, lease, table):  # type: ignore[no-untyped-def]
        self._said("before")
        dropped = super().drop(lease, table)
        self._said("after")
        return dropped

    def _said(self, where: str) -> None:
        print(where, flush=True)
        sys.stdin.readline()


def run_and_say(path: Path, life: str) -> None:
    """In a process of its own, a lease later than the life before it."""
    clock = HandClock(NOON + int(life) * int(LEASE_S + 1) * 1000)
    storage = SayingStorage(clock=clock)
    storage.start(path, DAYS.zone)
    keeper_of(storage, clock, DAYS, f"life-{life}").run()
    storage.stop()
    print("over", flush=True)


def killed_at(path: Path, life: int, moment: int) -> bool:
    """Lets it go on so many times, then kills it there; False if it was over before that."""
    tests = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, path, tests, str(life)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stdin is not None
        for _ in range(moment):
            said = process.stdout.readline().strip()
            if said not in ("before", "after"):
                assert said == "over"
                return False
            process.stdin.write("\n")
            process.stdin.flush()
        said = process.stdout.readline().strip()
        os.kill(process.pid, signal.SIGKILL)
        return said != "over"


def filled(path: Path) -> set[tuple[str, int]]:
    """Two days that have expired and two that have not; returns what there is of the latter."""
    storage = EmbeddedStorage()
    storage.start(path, DAYS.zone)
    for first, days_ago in enumerate((9, 8, 1, 0)):
        minute = (NOON - days_ago * DAY_MS) // 60_000
        rows = [segment(f"s{days_ago}", minute * 60_000)], [delta(minute=minute)]
        storage.apply(batch(first, first + 1, *rows))
    live = {(one.model, one.day) for one in storage.day_tables() if one.day > OLD}
    storage.stop()
    return live


def test_t01_a_keeper_killed_around_each_drop_is_followed_by_one_that_finishes(
    tmp_path: Path,
) -> None:
    path = tmp_path / "skyfarer.duckdb"
    live = filled(path)
    lives = 0
    for life, moment in enumerate((0, 1, 2, 5)):
        assert killed_at(path, life, moment)
        lives += 1
    clock = HandClock(NOON + lives * int(LEASE_S + 1) * 1000)
    storage = EmbeddedStorage(clock=clock)
    storage.start(path, DAYS.zone)
    left = [one for one in storage.day_tables() if (one.model, one.day) not in live]
    assert left, "something was left to do"
    run = keeper_of(storage, clock, DAYS, "last").run()
    assert (run.outcome, run.dropped, run.left) == ("dropped", tuple(left), 0)
    assert {(one.model, one.day) for one in storage.day_tables()} == live
    assert storage.expired() == {Kept.RECORD: 20261107, Kept.METRICS: 20261107}
    (rows,) = storage._cursor().execute("SELECT count(*) FROM segment_20261115").fetchall()
    assert rows == (1,)
    storage.stop()


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


def stored(storage: EmbeddedStorage) -> list[int]:
    cursor = storage._cursor()
    names = [f"segment_{one.day}" for one in storage.day_tables() if one.model == "segment"]
    rows = (cursor.execute(f"SELECT start_time FROM {name}").fetchall() for name in names)
    return [start for found in rows for (start,) in found]


def test_t04_no_live_row_of_a_real_file_goes_in_any_schedule(tmp_path: Path) -> None:
    """Its clock is the node's own: one that is ahead, by a leap or from the start, is caught by the
    clock that never leaps or by the data. Only whoever forces a run must be sure of his clock."""
    for number, schedule in enumerate(schedules(Random(4), SCHEDULES)):
        clock = HandClock(schedule.now_ms)
        storage = EmbeddedStorage(clock=clock)
        storage.start(tmp_path / f"{number}.duckdb", schedule.zone)
        wanted = live(schedule, starts(schedule))
        rows = [segment(f"s{start}-{n}", start) for n, start in enumerate(starts(schedule))]
        storage.apply(batch(0, SEGMENTS, rows))
        retention = Retention(schedule.record_days, schedule.metrics_days, schedule.zone)
        keeper = keeper_of(storage, clock, retention, "node")
        clock.set_ahead(schedule.jump_ms)
        started_so = keeper_of(storage, clock, retention, "node")
        for one in (keeper, keeper, started_so):
            one.run(schedule.force and schedule.jump_ms <= 0)
            assert live(schedule, stored(storage)) == wanted, schedule
        clock.set_ahead(-schedule.jump_ms)
        for _ in range(6):
            keeper.run(schedule.force)
        assert sorted(stored(storage)) == wanted, schedule
        storage.stop()
