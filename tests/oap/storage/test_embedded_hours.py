from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from contracts.storage_contract import MINUTE, TABLE, batch, delta, deltas_of
from skyfarer.oap.core import ids
from skyfarer.oap.core.storage import Deltas, Merge
from skyfarer.oap.storage.embedded import EmbeddedStorage, hours

DAY = 1440
MERGES = {"calls": Merge.SUM, "spread": Merge.SUM}
TODAY = "metrics_service_20261115"


def deltas(minute: int, shops: int = 5) -> dict[str, Deltas]:
    rows = [delta(minute, service=f"shop-{n}", spread={"1": n}) for n in range(shops)]
    return {"Service": deltas_of(rows, MERGES, {"spread": TABLE})}


def store(storage: EmbeddedStorage, *minutes: int) -> None:
    at = storage.applied("queue-a")
    for number, minute in enumerate(minutes, at):
        storage.apply(batch(number, number + 1, metrics=deltas(minute)))


def places(storage: EmbeddedStorage, table: str = TODAY) -> list[int]:
    """Of the rows of hours."""
    query = f"SELECT rowid FROM {table} WHERE time_bucket < 10**10 AND time_bucket > 10**8"
    return [row for (row,) in storage._cursor().execute(f"{query} ORDER BY 1").fetchall()]


def neighbours(rows: list[int]) -> bool:
    return rows == list(range(rows[0], rows[0] + len(rows)))


def read(storage: EmbeddedStorage) -> list[list[dict[str, Any]]]:
    ranges = (202611150000, 202611162359), (2026111500, 2026111623), (20261115, 20261116)
    rows: list[pa.Table] = [storage.rows("Service", list(MERGES), *one) for one in ranges]
    return [
        one.sort_by([("time_bucket", "ascending"), ("entity_id", "ascending")]).to_pylist()
        for one in rows
    ]


def test_hours_lie_together_when_the_next_day_has_begun_and_say_the_same(
    storage: EmbeddedStorage,
) -> None:
    store(storage, *(MINUTE + 60 * hour + turn for hour in range(4) for turn in (0, 1, 0)))
    before, apart = read(storage), places(storage)
    assert not neighbours(apart)
    store(storage, MINUTE + DAY)
    assert neighbours(places(storage))
    assert len(places(storage)) == len(apart) == 4 * 5
    after = read(storage)
    assert [
        [row for row in rows if row["time_bucket"] not in later(rows)] for rows in after
    ] == before


def later(rows: list[dict[str, Any]]) -> set[int]:
    """Buckets of the second day."""
    return {row["time_bucket"] for row in rows if str(row["time_bucket"]).startswith("20261116")}


def test_what_comes_late_is_merged_into_hours_that_were_put_together(
    storage: EmbeddedStorage,
) -> None:
    store(storage, MINUTE, MINUTE + 60, MINUTE + DAY, MINUTE)
    shop = ids.service_id("shop-3")
    series = storage.series("Service", shop, list(MERGES), 2026111512, 2026111513)
    assert series == {
        2026111512: {"calls": 2, "spread": {"1": 6}},
        2026111513: {"calls": 1, "spread": {"1": 3}},
    }
    assert len(places(storage)) == 2 * 5


def test_too_many_hours_stay_where_they_are(
    storage: EmbeddedStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hours, "HOURS_MAX", 9)
    store(storage, MINUTE, MINUTE + 60)
    apart = places(storage)
    store(storage, MINUTE + DAY)
    assert places(storage) == apart


def test_a_table_that_is_gone_is_passed_over(storage: EmbeddedStorage) -> None:
    with storage._transaction() as cursor:
        assert hours.gather(cursor, "metrics_service_20200101") == 0


def test_a_day_has_ended_when_its_source_has_a_newer_one() -> None:
    before = ["metrics_service_20261114", "metrics_service_20261115", "metrics_endpoint_20261115"]
    new = ["metrics_service_20261116", "metrics_cache_20261116"]
    assert hours.ended(before, [*before, *new]) == ["metrics_service_20261115"]
    assert hours.ended(before, [*before, "metrics_service_20261101"]) == []
    assert hours.ended([], new) == []
