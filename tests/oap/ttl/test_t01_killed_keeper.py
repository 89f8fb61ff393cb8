"""A keeper that is killed while it deletes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, TypeAlias

from contracts.expiry_contract import NOON, OLD
from contracts.storage_contract import batch, delta, segment
from oap.ttl.cluster_of import DAYS
from oap.ttl.keepers import keeper_of
from oap.ttl.killed import Saying, killed_at
from oap.ttl.schedules import DAY_MS
from skyfarer.oap.core.expiry import DayTable, Kept
from skyfarer.oap.storage.embedded import EmbeddedStorage
from skyfarer.oap.storage.embedded.schema import present
from skyfarer.oap.storage.expiring import OUT_OF_SIGHT
from skyfarer.oap.ttl.keeper import LEASE_S
from skyfarer.testing.clock import HandClock


class SayingStorage(Saying, EmbeddedStorage):
    pass


def run_and_say(path: str) -> None:
    """In a process of its own."""
    clock = HandClock(NOON)
    storage = SayingStorage(clock=clock)
    storage.start(Path(path), DAYS.zone)
    keeper_of(storage, clock, DAYS, "killed").run()
    storage.stop()


Rows: TypeAlias = dict[DayTable, list[Any]]


def filled(path: Path) -> tuple[Rows, list[DayTable]]:
    """A day that has expired and two that have not; what is to stay, and to go."""
    storage = EmbeddedStorage()
    storage.start(path, DAYS.zone)
    for first, days_ago in enumerate((8, 1, 0)):
        minute = (NOON - days_ago * DAY_MS) // 60_000
        rows = [segment(f"s{days_ago}", minute * 60_000)], [delta(minute=minute)]
        storage.apply(batch(first, first + 1, *rows))
    stays = {one: rows for one, rows in rows_of(storage).items() if one.day > OLD}
    goes = [one for one in storage.day_tables() if one.day <= OLD]
    storage.stop()
    return stays, goes


def rows_of(storage: EmbeddedStorage) -> Rows:
    cursor = storage._cursor()
    return {
        one: cursor.execute(f"SELECT * FROM {one.model}_{one.day} ORDER BY ALL").fetchall()
        for one in storage.day_tables()
    }


def finished(path: Path, stays: Rows) -> int:
    """By the next keeper, when the lease of the killed one has ended: how many it has dropped."""
    clock = HandClock(NOON + int(LEASE_S + 1) * 1000)
    storage = EmbeddedStorage(clock=clock)
    storage.start(path, DAYS.zone)
    left = [one for one in storage.day_tables() if one not in stays]
    run = keeper_of(storage, clock, DAYS, "last").run()
    assert (run.outcome, run.dropped, run.left) == ("dropped" if left else "clean", tuple(left), 0)
    assert rows_of(storage) == stays
    if left:
        hidden = [name for name in present(storage._cursor()) if name.startswith(OUT_OF_SIGHT)]
        assert hidden == [], "it is swept with the next drop"
        assert storage.expired() == {Kept.RECORD: 20261107, Kept.METRICS: 20261107}
    storage.stop()
    return len(left)


def test_t01_a_keeper_killed_at_any_moment_of_its_run_is_followed_by_one_that_finishes(
    tmp_path: Path,
) -> None:
    whole, left = tmp_path / "whole.duckdb", list[int]()
    stays, goes = filled(whole)
    while True:
        path = Path(shutil.copy(whole, tmp_path / f"{len(left)}.duckdb"))
        if not killed_at(__name__, str(path), len(left)):
            break
        left.append(finished(path, stays))
    assert len(left) == 3 * len(goes) > 12
    assert left == [len(goes) - (moment + 2) // 3 for moment in range(len(left))]
