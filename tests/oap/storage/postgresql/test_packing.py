"""Hours and days that are over are packed, and nobody can tell by what is read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from contracts.expiry_contract import held, tables_of
from contracts.metrics_contract import SHOP
from contracts.storage_contract import MINUTE, TABLE, batch, delta, deltas_of
from skyfarer.oap.core import ids
from skyfarer.oap.core.storage import Analysed, Merge
from skyfarer.oap.storage.postgresql import PostgresStorage, packed, packing
from skyfarer.oap.storage.postgresql.copying import Cursor
from skyfarer.oap.storage.postgresql.days import Days
from skyfarer.testing.programs import eventually

TIMEOUT_S = 60.0
TODAY, TOMORROW = 20261115, 20261116
HOUR = 60
MERGES = {
    "calls": Merge.SUM,
    "slowest": Merge.MAX,
    "ratio": Merge.SUM,
    "late": Merge.MIN,
    "kinds": Merge.SUM,
}
TYPES = {"kinds": TABLE, "ratio": pa.float64()}
SOURCE = "Endpoint"
STEPS = 40


class Plain(PostgresStorage):
    """Reads merged and appended rows alone."""

    def _packs(self, cursor: Cursor, days: Days, service_id: str | None) -> packed.Packs:
        return packed.Packs(super()._packs(cursor, days, service_id).rows.slice(0, 0), {})


@pytest.fixture
def plain(conninfo: str, storage: PostgresStorage) -> Iterator[Plain]:
    plain = Plain(conninfo)
    plain.start(UTC)
    yield plain
    plain.stop()


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "PAUSE_S", 0.0)


def told(storage: PostgresStorage, *rows: dict[str, Any]) -> None:
    first = storage.applied("queue-a")
    storage.apply(of(first, *rows))


def of(first: int, *rows: dict[str, Any]) -> Analysed:
    merges = {name: merge for name, merge in MERGES.items() if any(name in row for row in rows)}
    types = {name: TYPES[name] for name in merges if name in TYPES}
    return batch(first, first + 1, metrics={SOURCE: deltas_of(rows, merges, types)})


def calls(minute: int, number: int = 1, endpoint: str = "/pay") -> dict[str, Any]:
    return delta(minute, endpoint=endpoint, calls=number)


def through(storage: PostgresStorage) -> dict[tuple[str, int], int]:
    """By day and digits."""
    with storage._reading() as cursor:
        cursor.execute(
            "SELECT right(table_name, 8), digits, max(through) FROM packed_metrics GROUP BY 1, 2"
        )
        return {(day, digits): last for day, digits, last in cursor.fetchall()}


def found(storage: PostgresStorage, start: int, end: int, *service: str) -> list[Any]:
    rows = storage.rows(SOURCE, ["calls", "slowest", "ratio", "late", "none"], start, end, *service)
    return sorted(map(str, rows.to_pylist()))


def test_packed_rows_are_the_merged_rows_whatever_comes_when(
    storage: PostgresStorage, other: PostgresStorage, plain: Plain, at_once: None
) -> None:
    random = Random(7)
    newest, seen = MINUTE, set[tuple[str, int]]()
    for step in range(STEPS):
        newest += random.randrange(2 * HOUR)
        told(storage, *(some_row(random, newest, step) for _ in range(random.randrange(1, 9))))
        if random.random() < 0.7:
            random.choice((storage, other)).fold()
        if random.random() < 0.7:
            random.choice((storage, other)).pack()
        seen |= through(storage).keys()
        start, end, service = some_question(random, newest)
        expected = found(plain, start, end, *service)
        for node in (storage, other, storage):
            assert found(node, start, end, *service) == expected
    assert len({day for day, digits in seen if digits == packed.DAY}) > 1
    assert len({day for day, digits in seen if digits == packed.HOUR}) > 2


def some_row(random: Random, newest: int, step: int) -> dict[str, Any]:
    """Mostly new, at times very late; with columns that are null, or come only after a while."""
    late = random.choice((0, 0, 0, random.randrange(HOUR), random.randrange(30 * HOUR)))
    service, endpoint = (f"{random.choice('ab')}{random.randrange(2)}" for _ in range(2))
    values: dict[str, Any] = {"calls": random.choice((1, 300, 2**33, -(2**63), None))}
    values |= {"slowest": random.choice((-5, 2**63 - 1, None)), "kinds": {"k": 1}}
    values |= {"ratio": random.choice((0.1, -1e308, float("inf"), None))}
    if step > STEPS // 2:
        values["late"] = random.choice((7, None))
    return delta(newest - late, service=service, endpoint=endpoint, **values)


def some_question(random: Random, newest: int) -> tuple[int, int, list[str]]:
    """Of hours or days, of which some are not there, and of all services or one."""
    days = sorted(TODAY + random.randrange(-1, 5) for _ in range(2))
    service = random.choice(([], [ids.service_id("a0")], [ids.service_id("a")]))
    if random.random() < 0.3:
        return days[0], days[1], service
    hours = sorted(day * 100 + random.choice((0, 23, random.randrange(24))) for day in days)
    return hours[0], hours[1], service


def test_an_hour_is_over_when_the_next_one_has_begun_and_a_day_with_the_next_day(
    storage: PostgresStorage, at_once: None
) -> None:
    day, next_day = str(TODAY), str(TOMORROW)
    for minute, expected in (
        (MINUTE, {}),
        (MINUTE + HOUR + 4, {}),
        (MINUTE + HOUR + 5, {(day, 10): TODAY * 100 + 12}),
        (MINUTE + 3 * HOUR - 1, {(day, 10): TODAY * 100 + 13}),
        (MINUTE + 12 * HOUR + 4, {(day, 10): TODAY * 100 + 13}),
        (MINUTE + 12 * HOUR + 9, {(day, 10): TODAY * 100 + 23, (day, 8): TODAY}),
        (
            MINUTE + 14 * HOUR + 9,
            {(day, 10): TODAY * 100 + 23, (day, 8): TODAY, (next_day, 10): TOMORROW * 100 + 1},
        ),
    ):
        told(storage, calls(minute))
        storage.fold()
        storage.pack()
        assert through(storage) == expected


def test_what_comes_late_undoes_a_pack_which_is_made_again_after_a_pause(
    storage: PostgresStorage, other: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(storage, calls(MINUTE, 2), calls(MINUTE + HOUR + 5))
    storage.fold()
    assert storage.pack() == 1
    hour = TODAY * 100 + 12
    expected = {"entity_id": ids.endpoint_id(SHOP, "/pay"), "time_bucket": hour, "calls": 2}
    for number, node in enumerate((storage, other)):
        assert node.rows(SOURCE, ["calls"], hour, hour).to_pylist() == [expected]
        told(storage, calls(MINUTE + number, 3))
        expected["calls"] += 3
        assert other.rows(SOURCE, ["calls"], hour, hour).to_pylist() == [expected]
        node.fold()
        assert through(storage) == {}
        assert other.rows(SOURCE, ["calls"], hour, hour).to_pylist() == [expected]
        assert storage.pack() == 0
    monkeypatch.setattr(packing, "PAUSE_S", 0.0)
    assert storage.pack() == 1
    assert other.rows(SOURCE, ["calls"], hour, hour).to_pylist() == [expected]


def test_what_another_node_folds_meanwhile_is_packed_another_time(
    storage: PostgresStorage, other: PostgresStorage, at_once: None
) -> None:
    told(storage, calls(MINUTE), calls(MINUTE + HOUR + 5))
    storage.fold()
    with other._transaction() as cursor:
        packing.schema.take(cursor, packing.schema.Lock.FOLDING)
        assert storage.pack() == 0
    assert storage.pack() == 1


def test_a_day_that_is_dropped_leaves_no_pack_behind(
    storage: PostgresStorage, at_once: None
) -> None:
    told(storage, calls(MINUTE), calls(MINUTE + 14 * HOUR + 9))
    storage.fold()
    storage.pack()
    lease = held(storage)
    for table in tables_of(storage, TODAY):
        storage.drop(lease, table)
    assert through(storage) == {(str(TOMORROW), 10): TOMORROW * 100 + 1}
    assert len(found(storage, TODAY * 100, TOMORROW * 100 + 23)) == 1


def test_a_day_that_is_dropped_right_before_it_is_packed_is_left(storage: PostgresStorage) -> None:
    told(storage, calls(MINUTE), calls(MINUTE + HOUR + 5))
    storage.fold()
    with storage._reading() as cursor:
        (wanted,) = packing._wanted(cursor)
    lease = held(storage)
    for table in tables_of(storage, TODAY):
        storage.drop(lease, table)
    assert not storage._pack(wanted)


def test_tables_that_others_have_named_as_ours_are_not_packed(storage: PostgresStorage) -> None:
    with storage._transaction() as cursor:
        cursor.execute("CREATE TABLE metrics_sales_of_shop_20200101 (shop TEXT)")
    told(storage, calls(MINUTE), calls(MINUTE + HOUR + 5))
    storage.fold()
    assert storage.pack() == 1


def test_a_table_with_too_many_rows_is_read_as_it_is(
    storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch, at_once: None
) -> None:
    monkeypatch.setattr(packing, "PACKED_ROWS_MAX", 1)
    told(storage, calls(MINUTE), calls(MINUTE, endpoint="/take"), calls(MINUTE + HOUR + 5))
    storage.fold()
    assert storage.pack() == 0
    assert len(found(storage, TODAY * 100, TODAY * 100 + 23)) == 3


def test_packs_are_made_by_themselves(conninfo: str) -> None:
    storage = PostgresStorage(conninfo, fold_s=0.05)
    storage.start(UTC)
    told(storage, calls(MINUTE), calls(MINUTE + HOUR + 5))
    eventually(lambda: through(storage) != {}, TIMEOUT_S, "the hour is packed")
    storage.stop()


def test_what_is_remembered_has_a_bound_and_the_oldest_goes_first() -> None:
    part = pa.array(range(100), pa.int64())
    remembered = packed.Remembered(2 * part.nbytes)
    for table in ("a", "b", "a", "c"):
        remembered.remember(table, packed.HOUR, "calls", f"pack of {table}", part)
    known = remembered.known(["a", "b", "c"], packed.HOUR, ["calls"])
    assert known == {"pack of a": {"calls": part}, "pack of c": {"calls": part}}
    assert remembered.known(["a"], packed.HOUR, ["calls", "slowest"]) == {}
    remembered.remember("a", packed.HOUR, "calls", "another", pa.concat_arrays([part] * 3))
    assert remembered.known(["a", "b", "c"], packed.HOUR, ["calls"]) == {}
