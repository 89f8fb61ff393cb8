"""Metrics that were appended become part of the merged rows, whatever happens meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from contracts.expiry_contract import OLD, held, of_day, tables_of
from contracts.metrics_contract import SHOP
from contracts.storage_contract import BUCKET, MINUTE, TABLE, batch, delta, deltas_of
from skyfarer.base.errors import RetryableError
from skyfarer.oap.core.storage import Analysed, Merge
from skyfarer.oap.storage.postgresql import PostgresStorage, columnar, folding, schema
from skyfarer.testing.programs import eventually

TIMEOUT_S = 120.0
DAY = BUCKET // 10_000
BATCHES = 20
MERGES = {"calls": Merge.SUM, "slowest": Merge.MAX, "kinds": Merge.SUM}


def one(number: int, service: str = "shop") -> Analysed:
    row = delta(MINUTE, service=service, calls=1, slowest=number, kinds={"a": 1, f"{number}": 1})
    metrics = {"Service": deltas_of([row], MERGES, {"kinds": TABLE})}
    return batch(number, number + 1, metrics=metrics)


def expected(count: int) -> dict[str, Any]:
    kinds = {"a": count} | {f"{number}": 1 for number in range(count)}
    return {"calls": count, "slowest": count - 1, "kinds": kinds}


def agree(storage: PostgresStorage, count: int) -> None:
    """By minute and day, of one entity and of all."""
    for bucket in (BUCKET, DAY):
        series = storage.series("Service", SHOP, list(MERGES), bucket, bucket)
        assert series == {bucket: expected(count)}
        (row,) = storage.rows("Service", list(MERGES), bucket, bucket).to_pylist()
        assert row["calls"] == count
        assert dict(row["kinds"]) == expected(count)["kinds"]


def appended(storage: PostgresStorage) -> int:
    with storage._reading() as cursor:
        return int(cursor.execute(f"SELECT count(*) FROM appended_service_{DAY}").fetchall()[0][0])


def test_what_batches_append_is_folded_by_itself(conninfo: str) -> None:
    storage = PostgresStorage(conninfo, fold_s=0.05)
    storage.start(UTC)
    for number in range(3):
        storage.apply(one(number))
    eventually(lambda: appended(storage) == 0, TIMEOUT_S, "all is folded")
    agree(storage, 3)
    storage.stop()


def test_a_table_with_many_rows_is_folded_before_its_time(
    conninfo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folding, "ROWS_MANY", 2)
    storage = PostgresStorage(conninfo, fold_s=TIMEOUT_S)
    storage.start(UTC)
    storage.apply(one(0))
    assert appended(storage) == 1
    storage.apply(one(1))
    eventually(lambda: appended(storage) == 0, TIMEOUT_S, "all is folded")
    storage.stop()


def test_batches_wait_where_folding_is_behind(
    storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folding, "APPENDED_ROWS_MAX", 2)
    for number in range(2):
        storage.apply(one(number))
    assert appended(storage) == 2
    storage.apply(one(2))
    assert appended(storage) == 1
    agree(storage, 3)


def test_what_another_node_keeps_from_being_folded_is_not_forgotten(
    storage: PostgresStorage, other: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is too much of it, a batch waits until it can be folded."""
    monkeypatch.setattr(folding, "APPENDED_ROWS_MAX", 2)
    for number in range(2):
        storage.apply(one(number))
    batch_waits = threading.Thread(target=lambda: storage.apply(one(2)))
    with other._transaction() as cursor:
        schema.take(cursor, schema.Lock.FOLDING)
        assert storage.fold() == 0
        assert storage._most_appended() == 2
        batch_waits.start()
        eventually(lambda: _waits_for_a_lock(storage), TIMEOUT_S, "the batch waits")
        assert appended(storage) == 2
    batch_waits.join(TIMEOUT_S)
    assert (appended(storage), storage._most_appended()) == (1, 1)
    agree(storage, 3)


def test_what_another_node_has_folded_counts_no_longer(
    storage: PostgresStorage, other: PostgresStorage
) -> None:
    storage.apply(one(0))
    assert other.fold() == 1
    assert (storage.fold(), storage._most_appended()) == (0, 0)


def _waits_for_a_lock(storage: PostgresStorage) -> bool:
    with storage._reading() as cursor:
        query = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        return bool(cursor.execute(query).fetchall()[0][0])


def test_much_is_folded_in_pieces(
    storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(7):
        storage.apply(one(number))
    for name, few in (("ROWS_A_FOLD", 2), ("BYTES_A_FOLD", 1)):
        monkeypatch.setattr(folding, name, few)
        assert storage.fold() == (7 if name == "ROWS_A_FOLD" else 2)
        agree(storage, 7 if name == "ROWS_A_FOLD" else 9)
        for number in (7, 8):
            if storage.applied("queue-a") == number:
                storage.apply(one(number))


def of(number: int, *rows: tuple[int, str, int]) -> Analysed:
    """A batch with rows of minutes, services and calls."""
    told = [
        delta(MINUTE + minute, service=service, calls=calls, slowest=calls, kinds={"a": calls})
        for minute, service, calls in rows
    ]
    metrics = {"Service": deltas_of(told, MERGES, {"kinds": TABLE})}
    return batch(number, number + 1, metrics=metrics)


def calls_by_bucket(storage: PostgresStorage) -> dict[tuple[str, int], tuple[int, int, int]]:
    found = {}
    for bucket in (BUCKET, BUCKET + 1, BUCKET // 100, DAY):
        for row in storage.rows("Service", list(MERGES), bucket, bucket).to_pylist():
            told = row["calls"], row["slowest"], dict(row["kinds"])["a"]
            found[row["entity_id"], bucket] = told
    return found


def test_minutes_of_one_hour_that_are_folded_at_once_are_added_up_in_it(
    storage: PostgresStorage,
) -> None:
    """One entity has two minutes, the other one, and a batch two rows of the same."""
    for again in range(2):
        storage.apply(of(2 * again, (0, "shop", 1), (0, "shop", 2), (0, "cart", 4)))
        storage.apply(of(2 * again + 1, (1, "shop", 8), (0, "shop", 16)))
        before = calls_by_bucket(storage)
        assert before[SHOP, DAY] == ((again + 1) * 27, 16, (again + 1) * 27)
        assert storage.fold() == 5
        assert calls_by_bucket(storage) == before
    assert before[SHOP, BUCKET] == (38, 16, 38)
    assert len(before) == 7


def test_sums_of_batches_that_are_folded_together_wrap_around(storage: PostgresStorage) -> None:
    for number in range(3):
        storage.apply(of(number, (0, "shop", 2**62), (0, "cart", 1)))
    before = calls_by_bucket(storage)
    assert before[SHOP, DAY] == (-(2**62), 2**62, -(2**62))
    storage.fold()
    assert calls_by_bucket(storage) == before


def test_a_fold_that_is_killed_in_the_middle_has_not_happened(
    storage: PostgresStorage, conninfo: str
) -> None:
    """It has read what was appended, and waits for a row to take it in."""
    storage.apply(one(0))
    storage.fold()
    for number in range(1, 4):
        storage.apply(one(number))
    failures: list[RetryableError] = []

    def fold() -> None:
        try:
            storage.fold()
        except RetryableError as error:
            failures.append(error)

    with psycopg.connect(conninfo) as connection:
        connection.execute(f"SELECT FROM metrics_service_{DAY} FOR UPDATE")
        thread = threading.Thread(target=fold)
        thread.start()
        eventually(lambda: waiting(connection) != [], TIMEOUT_S, "the fold waits for the row")
        agree(storage, 4)
        connection.execute("SELECT pg_terminate_backend(%s)", waiting(connection))
        thread.join(TIMEOUT_S)
    assert len(failures) == 1
    assert appended(storage) == 3
    agree(storage, 4)
    assert storage.fold() == 3
    agree(storage, 4)


def waiting(connection: psycopg.Connection[Any]) -> list[int]:
    query = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    return [pid for (pid,) in connection.execute(query).fetchall()]


def at_once(*work: Callable[[], None]) -> None:
    with ThreadPoolExecutor(len(work)) as pool:
        for one in [pool.submit(each) for each in work]:
            one.result(TIMEOUT_S)


def test_readers_see_each_batch_once_while_two_nodes_fold(
    storage: PostgresStorage, other: PostgresStorage
) -> None:
    ended, seen = threading.Event(), list[int]()

    def write() -> None:
        try:
            for number in range(BATCHES):
                storage.apply(one(number))
        finally:
            ended.set()

    def fold(node: PostgresStorage) -> None:
        while not ended.is_set():
            node.fold()

    def read() -> None:
        while not ended.is_set():
            series = other.series("Service", SHOP, ["calls"], DAY, DAY)
            calls: Any = series.get(DAY, {}).get("calls", 0)
            seen.append(calls)

    at_once(write, lambda: fold(storage), lambda: fold(other), read)
    assert seen == sorted(seen)
    assert seen[-1] <= BATCHES
    agree(storage, BATCHES)


def test_a_day_may_be_dropped_while_it_is_folded(
    storage: PostgresStorage, other: PostgresStorage
) -> None:
    storage.apply(of_day(OLD))
    ended = threading.Event()

    def drop() -> None:
        try:
            lease = held(storage)
            for table in tables_of(storage, OLD):
                assert storage.drop(lease, table)
        finally:
            ended.set()

    def fold() -> None:
        while not ended.is_set():
            other.fold()

    at_once(drop, fold)
    assert storage.day_tables() == []
    assert other.fold() == 0


def test_columns_come_with_their_nulls(storage: PostgresStorage) -> None:
    types = {"entity_id": "text", "time_bucket": "bigint", "n": "bigint", "x": "double precision"}
    rows = [("é_1.", 1, None, 0.5), ("b", 2, -(2**63), None), ("c", 3, 7, float("-inf"))]
    values = """(VALUES ('é_1.', 1::bigint, NULL::bigint, 0.5::float8),
        ('b', 2, (-9223372036854775808)::bigint, NULL), ('c', 3, 7, '-Infinity'))
        AS t (entity_id, time_bucket, n, x)"""
    with storage._reading() as cursor:
        for some in (rows, rows[2:], []):
            query = f"SELECT * FROM {values} WHERE time_bucket > {3 - len(some)}"
            found = columnar.read(cursor, query, types, {})
            assert found.to_pylist() == [dict(zip(types, row, strict=True)) for row in some]
            texts = {**types, "t": "text"}
            told = (
                f"SELECT *, nullif(repeat('ü', (3 - time_bucket)::int), '') AS t FROM ({query}) q"
            )
            once = columnar.read_once(cursor, told, texts)
            assert once.select(list(types)).equals(found)
            assert once["t"].to_pylist() == ["ü" * (3 - row[1]) for row in some]
            assert once.schema.field("t").type == pa.string()
