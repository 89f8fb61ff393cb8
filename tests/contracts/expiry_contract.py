"""What every storage promises of data that expires. A provider's test file subclasses
`ExpiryContract` and gives `storage`, empty and started, whose days are of UTC."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from contracts.metrics_contract import address, aliases_of, only
from contracts.storage_contract import (
    MINUTE,
    NOON,
    batch,
    calls_of,
    delta,
    records,
    segment,
    sums,
)
from skyfarer.base.errors import PermanentError
from skyfarer.oap.core import ids
from skyfarer.oap.core.entities import ADDRESS_ALIAS
from skyfarer.oap.core.expiry import DayTable, DayTables, DroppedDayError, Kept, Lease
from skyfarer.oap.core.slow import Slow
from skyfarer.oap.core.storage import Analysed

LEASE = "ttl"
LONG_S = 300.0
SOME_S = 3.0
"""Enough to be asked whose it is, on a busy machine too."""
SHORT_S = 0.2
DAY_MS = 86_400_000
TODAY, YESTERDAY, OLD, OLDER = 20261115, 20261114, 20261113, 20261112
QUEUE = "queue-a"
SHOP = ids.service_id("shop")


def at(day: int) -> int:
    """Noon of that day of November."""
    return NOON + (day - TODAY) * DAY_MS


def of_day(day: int, first: int = 0) -> Analysed:
    minute = at(day) // 60_000
    return batch(first, first + 1, [segment(f"s{first}", at(day))], [delta(minute=minute)])


def tables_of(tables: DayTables, day: int, kept: Kept | None = None) -> list[DayTable]:
    return [one for one in tables.day_tables() if one.day == day and kept in (None, one.kept)]


def held(tables: DayTables, holder: str = "a", seconds: float = LONG_S) -> Lease:
    lease = tables.take_lease(LEASE, holder, seconds)
    assert lease is not None
    return lease


def outlast(tables: DayTables, lease: Lease) -> None:
    while tables.now_ms() <= lease.expires_ms:
        time.sleep(0.01)


class LeaseContract:
    """For `tables` that hold at least one table of OLD."""

    def test_c05_a_lease_is_one_holders_until_it_expires(self, tables: Any) -> None:
        first = held(tables, "a", SOME_S)
        assert (first.name, first.holder) == (LEASE, "a")
        renewed = held(tables, "a", SOME_S)
        assert renewed.epoch == first.epoch
        assert renewed.expires_ms >= first.expires_ms
        assert tables.take_lease(LEASE, "b", SHORT_S) is None
        assert tables.take_lease("another", "b", SHORT_S) is not None
        outlast(tables, renewed)
        assert held(tables, "b").epoch == first.epoch + 1
        assert tables.take_lease(LEASE, "a", SHORT_S) is None

    def test_c04_the_newest_lease_is_told_to_all_and_after_its_end_too(self, tables: Any) -> None:
        assert tables.last_lease(LEASE) is None
        first = held(tables, "a", SHORT_S)
        assert tables.last_lease(LEASE) == first
        outlast(tables, first)
        assert tables.take_lease("another", "b", SHORT_S) is not None
        assert tables.last_lease(LEASE) == first
        newest = held(tables, "b")
        assert tables.last_lease(LEASE) == newest

    def test_c04_a_drop_under_a_lease_that_another_has_taken_is_refused(self, tables: Any) -> None:
        paused = held(tables, "a", SHORT_S)
        outlast(tables, paused)
        there, newest = tables.day_tables(), held(tables, "b")
        for table in tables_of(tables, OLD):
            with pytest.raises(PermanentError, match="lease"):
                tables.drop(paused, table)
        assert tables.day_tables() == there
        assert tables.drop(newest, tables_of(tables, OLD)[0])

    def test_c04_a_drop_under_a_lease_that_has_expired_is_refused(self, tables: Any) -> None:
        paused, there = held(tables, "a", SHORT_S), tables.day_tables()
        outlast(tables, paused)
        with pytest.raises(PermanentError, match="expired"):
            tables.drop(paused, tables_of(tables, OLD)[0])
        assert tables.day_tables() == there

    def test_c05_a_lease_that_was_never_given_drops_nothing(self, tables: Any) -> None:
        there, forged = tables.day_tables(), Lease(LEASE, "b", 1, tables.now_ms() + 60_000)
        with pytest.raises(PermanentError, match="lease"):
            tables.drop(forged, there[0])
        held(tables, "a")
        with pytest.raises(PermanentError, match="lease"):
            tables.drop(forged, there[0])
        assert tables.day_tables() == there

    def test_t03_a_second_drop_finds_nothing_and_is_no_mistake(self, tables: Any) -> None:
        lease, (table, *_) = held(tables), tables_of(tables, OLD)
        assert [tables.drop(lease, table) for _ in range(3)] == [True, False, False]
        assert table not in tables.day_tables()


LATE: Mapping[str, Mapping[str, Any]] = {
    "segments": {"segments": [segment("late", at(OLD))]},
    "metrics": {"deltas": [delta(minute=at(OLD) // 60_000)]},
    "unsampled": {
        "unsampled": pa.table({"segment_id": ["late"], "minute": [at(OLD) // 60_000]}),
    },
    "records": {"records": records((1, 40, at(OLD) // 60_000, b"late"))},
    "slow": {
        "slow": pa.table(
            {
                "what": [Slow.DATABASE.name],
                "service": ["db"],
                "statement": ["SELECT 1"],
                "latency": pa.array([900], pa.int64()),
                "start_time": pa.array([at(OLD)], pa.int64()),
                "minute": pa.array([at(OLD) // 60_000], pa.int64()),
                "id": ["late-0"],
                "trace_id": ["t"],
            }
        )
    },
}


FOREIGN: Mapping[str, str] = {
    "metrics_sales_of_shop_20200101": "shop TEXT, amount BIGINT",
    "metrics_sum_20261101": "id TEXT, table_name TEXT, entity_id TEXT, time_bucket BIGINT",
    "segment_20261101": "id TEXT, table_name TEXT, segment_id TEXT, trace_id TEXT",
    "top_n_database_statement_20261101": "id TEXT, table_name TEXT, statement TEXT",
    "dropped_orders_20200101": "id TEXT",
    "dropped_metrics_of_shop_20200101": "shop TEXT",
}
"""What others have named as we do, SkyWalking itself among them."""


def everything(day: int) -> Analysed:
    """A batch with a row of each of LATE, of that day."""
    minute = at(day) // 60_000
    slow = LATE["slow"]["slow"]
    for name, value in (("minute", minute), ("start_time", at(day))):
        where = slow.schema.get_field_index(name)
        slow = slow.set_column(where, name, pa.array([value], pa.int64()))
    return batch(
        *(0, 1, [segment("first", at(day))], [delta(minute=minute)]),
        unsampled=pa.table({"segment_id": ["unsampled"], "minute": [minute]}),
        records=records((0, 40, minute, b"early")),
        slow=slow,
    )


class ExpiryContract(LeaseContract):
    @pytest.fixture
    def tables(self, storage: Any) -> Any:
        storage.apply(of_day(OLD))
        return storage

    def test_tables_are_listed_by_model_and_day_as_they_are_kept(self, storage: Any) -> None:
        assert storage.day_tables() == []
        for first, day in enumerate((TODAY, OLD, YESTERDAY)):
            storage.apply(of_day(day, first))
        found = storage.day_tables()
        assert found == sorted(found, key=lambda one: (one.model, one.day))
        assert {one.day for one in found} == {OLD, YESTERDAY, TODAY}
        assert {one.kept for one in found} == set(Kept)
        models = {one.model for one in found}
        assert len(found) == 3 * len(models)

    def test_its_clock_is_in_milliseconds_and_runs(self, storage: Any) -> None:
        first = storage.now_ms()
        assert first > 1_700_000_000_000
        assert storage.now_ms() >= first

    def test_t01_only_what_was_named_is_dropped(self, storage: Any) -> None:
        for first, day in enumerate((OLD, TODAY)):
            storage.apply(of_day(day, first))
        lease, there = held(storage), storage.day_tables()
        gone = tables_of(storage, OLD)
        for table in gone:
            assert storage.drop(lease, table)
        assert storage.day_tables() == [one for one in there if one not in gone]
        known = pa.chunked_array([["s0", "s1"]]), pa.chunked_array([[at(OLD) // 60_000, MINUTE]])
        assert list(storage.known_segments(*known)) == ["s1"]
        series = calls_of(storage, "Service", SHOP, OLD, TODAY)
        assert series == {TODAY: sums(1, 10, 0)}

    def test_an_address_stands_for_its_instance_when_all_days_are_dropped(
        self, storage: Any
    ) -> None:
        claim = only(ADDRESS_ALIAS, address(at(OLD) // 60_000, "10.0.0.1:80", "shop", "a"))
        storage.apply(batch(0, 1, metrics=claim))
        storage.apply(of_day(OLD, 1))
        lease = held(storage)
        for table in storage.day_tables():
            assert storage.drop(lease, table)
        assert aliases_of(storage) == {"10.0.0.1:80": ("shop", "a")}

    @pytest.mark.parametrize("what", LATE)
    def test_t07_late_rows_of_a_dropped_day_are_refused_and_make_no_table(
        self, storage: Any, what: str
    ) -> None:
        storage.apply(everything(OLD))
        lease = held(storage)
        for table in tables_of(storage, OLD):
            storage.drop(lease, table)
        there, before = storage.day_tables(), storage.progress(QUEUE)
        with pytest.raises(DroppedDayError):
            storage.apply(batch(1, 2, **LATE[what]))
        assert storage.day_tables() == there
        assert storage.progress(QUEUE) == before
        storage.apply(batch(1, 2, dropped={"expired": 1}))
        assert storage.progress(QUEUE).dropped == {"expired": 1}

    def test_t07_a_batch_is_refused_whole_if_one_of_its_rows_is_too_late(
        self, storage: Any
    ) -> None:
        storage.apply(of_day(OLD))
        lease = held(storage)
        for table in tables_of(storage, OLD):
            storage.drop(lease, table)
        rows = [delta(), delta(minute=at(OLD) // 60_000)]
        with pytest.raises(DroppedDayError):
            storage.apply(batch(1, 3, [segment("new")], rows))
        assert storage.applied(QUEUE) == 1
        assert storage.day_tables() == []
        assert calls_of(storage, "Service", SHOP, OLD, TODAY) == {}
        storage.apply(batch(1, 3, [segment("new")], rows[:1], dropped={"expired": 1}))
        assert calls_of(storage, "Service", SHOP, OLD, TODAY) == {TODAY: sums(1, 10, 0)}

    def test_t07_a_day_before_the_dropped_one_is_refused_and_one_after_it_is_not(
        self, storage: Any
    ) -> None:
        storage.apply(of_day(OLD))
        lease = held(storage)
        for table in tables_of(storage, OLD):
            storage.drop(lease, table)
        with pytest.raises(DroppedDayError):
            storage.apply(of_day(OLDER, 1))
        storage.apply(of_day(YESTERDAY, 1))
        assert {one.day for one in storage.day_tables()} == {YESTERDAY}

    def test_t08_what_one_model_has_dropped_does_not_bind_another(self, storage: Any) -> None:
        storage.apply(of_day(OLD))
        lease = held(storage)
        for table in tables_of(storage, OLD, Kept.RECORD):
            storage.drop(lease, table)
        storage.apply(batch(1, 2, deltas=[delta(minute=at(OLD) // 60_000)]))
        assert calls_of(storage, "Service", SHOP, OLD, OLD) == {OLD: sums(2, 20, 0)}
        with pytest.raises(DroppedDayError):
            storage.apply(batch(2, 3, [segment("late", at(OLD))]))

    def test_the_last_day_that_was_dropped_is_told_by_how_it_was_kept(self, storage: Any) -> None:
        assert storage.expired() == {}
        for first, day in enumerate((OLDER, OLD, TODAY)):
            storage.apply(of_day(day, first))
        lease = held(storage)
        for day, kept in ((OLD, Kept.RECORD), (OLDER, Kept.RECORD), (OLDER, Kept.METRICS)):
            for table in tables_of(storage, day, kept):
                storage.drop(lease, table)
        assert storage.expired() == {Kept.RECORD: OLD, Kept.METRICS: OLDER}

    def test_t03_of_many_that_want_the_lease_at_once_one_has_it(self, storage: Any) -> None:
        storage.apply(of_day(OLD))
        start, found = threading.Barrier(6), list[Lease | None]()

        def want(holder: str) -> None:
            start.wait(30)
            found.append(storage.take_lease(LEASE, holder, LONG_S))

        threads = [threading.Thread(target=want, args=[f"node-{n}"]) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert len(found) == 6
        assert len([lease for lease in found if lease is not None]) == 1

    def test_t07_writing_goes_on_while_old_days_are_dropped(self, storage: Any) -> None:
        """The tables that the writer remembers, and what it has seen, are right after each drop."""
        days = (OLDER, OLD, YESTERDAY)
        for first, day in enumerate(days):
            storage.apply(of_day(day, first))
        lease = held(storage)
        for first, day in enumerate(days, len(days)):
            for table in tables_of(storage, day):
                storage.drop(lease, table)
            storage.apply(of_day(TODAY, first))
        assert calls_of(storage, "Service", SHOP, OLDER, TODAY) == {TODAY: sums(3, 30, 0)}
        assert {one.day for one in storage.day_tables()} == {TODAY}

    def test_tables_that_others_have_named_as_ours_stay(self, storage: Any) -> None:
        with storage._transaction() as cursor:
            for name, columns in FOREIGN.items():
                cursor.execute(f"CREATE TABLE {name} ({columns})")
        storage.apply(of_day(OLD))
        lease, ours = held(storage), storage.day_tables()
        assert {one.day for one in ours} == {OLD}
        for table in ours:
            assert storage.drop(lease, table)
        for name in FOREIGN:
            model, day = name[:-9], int(name[-8:])
            kept = Kept.METRICS if model.startswith("metrics_") else Kept.RECORD
            with pytest.raises(PermanentError, match="is no table of a day"):
                storage.drop(lease, DayTable(model, day, kept))
        with storage._transaction() as cursor:
            for name in FOREIGN:
                assert cursor.execute(f"SELECT count(*) FROM {name}").fetchall() == [(0,)]

    def test_metrics_of_a_source_that_only_another_program_has_expire(self, storage: Any) -> None:
        storage.apply(of_day(OLD))
        name = "metrics_of_a_later_program"
        with storage._transaction() as cursor:
            cursor.execute(f"CREATE TABLE {name}_{OLD} AS SELECT * FROM metrics_service_{OLD}")
        table = DayTable(name, OLD, Kept.METRICS)
        assert table in storage.day_tables()
        assert storage.drop(held(storage), table)
        assert table not in storage.day_tables()
        assert storage.expired() == {Kept.METRICS: OLD}
