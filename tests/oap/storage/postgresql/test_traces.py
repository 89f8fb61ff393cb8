from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import psycopg
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.storage_contract import MINUTE, NOON, batch, segment
from contracts.trace_contract import TraceContract, found
from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.oap.core import ids
from skyfarer.oap.core.time_bucket import minute_bucket
from skyfarer.oap.core.traces import TraceCondition, TraceOrder
from skyfarer.oap.storage.postgresql import PostgresStorage, segments, traces
from skyfarer.oap.storage.postgresql.pages import Listing
from skyfarer.oap.storage.postgresql.searching import Search, instants

NUL, INSTEAD = "\x00", "\ufffd"


class TestPostgresTraces(TraceContract):
    pass


def test_statements_of_one_search_share_its_time_and_the_storage_goes_on(
    storage: PostgresStorage,
) -> None:
    with (
        pytest.raises(RetryableError, match="ask for a shorter time"),
        storage._reading() as cursor,
    ):
        search = Search(cursor, 0.5)
        for _ in range(100):
            search.rows("SELECT pg_sleep(0.1)", {})
    assert storage.trace("t", 1, 1) == []


def test_whoever_waits_for_a_lock_is_told_to_come_again_and_then_finds_all(
    storage: PostgresStorage, conninfo: str
) -> None:
    storage.apply(batch(0, 1, [segment("a")]))
    hurried = PostgresStorage(conninfo, read_timeout_s=2.0)
    hurried.start(UTC)
    with psycopg.connect(conninfo) as connection:
        connection.execute("LOCK TABLE segment_20261115")
        for read in (lambda: hurried.trace("t", 9, 9), lambda: found(hurried)):
            with pytest.raises(RetryableError, match=r"searched for 2 s .* a shorter time"):
                read()
    assert [one.brief.segment_id for one in hurried.trace("t", 9, 9)] == found(hurried) == ["a"]
    hurried.stop()


def test_a_day_that_expires_while_it_is_read_may_be_asked_for_again(
    storage: PostgresStorage,
) -> None:
    storage.apply(batch(0, 1, [segment("a")]))
    with storage._transaction() as cursor:
        cursor.execute("DROP TABLE segment_data_20261115")
    with pytest.raises(RetryableError, match="a day expired while it was read"):
        storage.trace("t", 9, 9)


@pytest.mark.parametrize("stored", [1, 5000])
def test_a_trace_is_found_by_the_index(storage: PostgresStorage, stored: int) -> None:
    rows = [segment(f"s{n}", trace_id=f"t{n}") for n in range(stored)]
    storage.apply(batch(0, stored, rows))
    with storage._reading() as cursor:
        cursor.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        asked = {"trace_id": "t0", "rows_max": 9, "bytes_max": 9}
        query = f"EXPLAIN {traces._whole(['segment_20261115'])}"
        plan = "\n".join(line for (line,) in cursor.execute(query, asked, prepare=True).fetchall())
    assert "segment_20261115_trace" in plan
    assert "Seq Scan on segment_20261115" not in plan


def test_every_order_and_rare_condition_has_an_index(storage: PostgresStorage) -> None:
    rows = [segment(f"s{n}", NOON + n, latency=n, is_error=n == 7) for n in range(5000)]
    rows += [segment("rare", service="rare", tags=["k=v"])]
    storage.apply(batch(0, 5001, rows))
    with storage._transaction() as cursor:
        cursor.execute("ANALYZE segment_20261115")
    rare = ids.service_id("rare")
    tests = traces._TESTS
    for where, values, index in (
        ("true", {}, "start"),
        (tests["service_id"], {"service_id": rare}, "service"),
        (tests["is_error"], {"is_error": True}, "error"),
        (tests["endpoint_id"], {"endpoint_id": ids.endpoint_id(rare, "/pay")}, "endpoint"),
        ("tags @> %(tags)s::text[]", {"tags": ["k=v"]}, "tags"),
        (tests["latency_min_ms"], {"latency_min_ms": 4999}, "latency"),
    ):
        with storage._reading() as cursor:
            query = f"""EXPLAIN SELECT segment_id FROM segment_20261115 WHERE {where}
                ORDER BY start_time DESC, segment_id LIMIT 20"""
            plan = cursor.execute(query, values, prepare=False).fetchall()
        assert f"segment_20261115_{index}" in "\n".join(line for (line,) in plan)


def test_the_slowest_of_all_days_are_taken_from_their_indices_side_by_side(
    storage: PostgresStorage,
) -> None:
    rows = [segment(f"s{n}", NOON + n // 5000 * 86_400_000, latency=n % 99) for n in range(10_000)]
    storage.apply(batch(0, 10_000, rows))
    days = {f"segment_{day}": ["true", traces._TESTS["service_id"]] for day in (20261115, 20261116)}
    keys = [("latency", True), ("segment_id", False)]
    with storage._transaction() as cursor:
        cursor.execute(f"ANALYZE {', '.join(days)}")
        query = f"EXPLAIN {Listing(traces._BRIEF, keys, by_day=False)._at_once(days)}"
        asked = {"service_id": ids.service_id("shop"), "rows_max": 20}
        plan = [line for (line,) in cursor.execute(query, asked, prepare=False).fetchall()]
    assert any("Merge Append" in line for line in plan)
    assert not any("Bitmap" in line or "Seq Scan" in line for line in plan)
    slowest = storage.traces(TraceCondition(), TraceOrder.DURATION, 0, 150)
    expected = sorted(rows, key=lambda row: (-row["latency"], row["segment_id"]))[:150]
    assert [one.segment_id for one in slowest] == [row["segment_id"] for row in expected]


def test_texts_that_the_database_cannot_hold_are_found_all_the_same(
    storage: PostgresStorage,
) -> None:
    rows = [segment(f"a{NUL}", trace_id=f"t{NUL}", tags=[f"k={NUL}"])]
    rows.append(segment(f"a{INSTEAD}", trace_id="other"))
    storage.apply(batch(0, 2, rows))
    assert found(storage, tags=(f"k={NUL}",)) == found(storage, trace_id=f"t{NUL}")
    assert [one.brief.segment_id for one in storage.trace(f"t{NUL}", 9, 9)] == [f"a{INSTEAD}"]
    assert storage.tag_values("k", (20261115120000,) * 2, 9) == [INSTEAD]
    assert storage.tag_values(f"k{NUL}", (20261115120000,) * 2, 9) == []
    asked = pa.chunked_array([[f"a{NUL}", "b", f"a{INSTEAD}"]])
    known = storage.known_segments(asked, pa.chunked_array([[MINUTE] * 3]))
    assert list(known) == [f"a{NUL}", f"a{INSTEAD}"]
    assert found(storage, service_id="\ud800") == found(storage, tags=("\ud800",)) == []


def test_a_segment_that_another_node_stored_meanwhile_is_left_out_the_next_time(
    storage: PostgresStorage,
) -> None:
    unsampled = pa.table({"segment_id": ["c", "d"], "minute": [MINUTE] * 2})
    other = batch(0, 1, [segment("a")], unsampled=unsampled)
    storage.apply(replace(other, partition="queue-b"))
    for one in (batch(0, 2, [segment("b"), segment("a")]), batch(0, 2, unsampled=unsampled)):
        with pytest.raises(RetryableError, match="another node has stored one"):
            storage.apply(one)
    storage.apply(batch(0, 2, [segment("b")]))
    assert found(storage) == ["a", "b"]
    with pytest.raises(PermanentError, match="not unique: e is twice"):
        storage.apply(batch(2, 3, [segment("e"), segment("f"), segment("e")]))


def test_bytes_are_those_of_their_segment_in_whatever_block(
    storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "ROWS_A_BLOCK", 2)
    for first in (0, 5):
        rows = [
            segment(f"s{n}", NOON + n * 10**8, data_binary=b"%d" % n if n else None)
            for n in range(first, first + 5)
        ]
        storage.apply(batch(first, first + 5, rows))
    data = [one.data for one in storage.trace("t", 99, 99)]
    assert data == [None, *(b"%d" % n for n in range(1, 10))]


def test_a_large_segment_is_read_whole(storage: PostgresStorage) -> None:
    large = bytes(range(256)) * 20_000
    storage.apply(batch(0, 1, [segment("a", data_binary=large)]))
    assert [one.data for one in storage.trace("t", 1, len(large))] == [large]
    assert [one.data for one in storage.trace("t", 1, len(large) - 1)] == [None]


def test_pages_are_by_time_where_clocks_go_back_over_midnight(conninfo: str) -> None:
    zone = ZoneInfo("America/St_Johns")  # a minute after midnight it was an hour earlier again
    after = int(datetime(2006, 10, 29, 0, 0, 30, tzinfo=zone).timestamp() * 1000)
    storage = PostgresStorage(conninfo)
    storage.start(zone)
    times = {"before": after - 60_000, "after": after, "again": after + 60_000}
    assert minute_bucket(times["again"], zone) < minute_bucket(after, zone)
    storage.apply(batch(0, 3, [segment(name, at_ms) for name, at_ms in times.items()]))
    pages = [
        storage.traces(TraceCondition(), TraceOrder.START_TIME, start, 1)[0].segment_id
        for start in range(3)
    ]
    assert pages == ["again", "after", "before"]
    assert found(storage, between=(20061028235900, 20061028235959)) == ["before"]
    assert found(storage, between=(20061028230100, 20061028230159)) == ["again"]
    storage.stop()


ZONES = ("UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kolkata", "Australia/Lord_Howe")


@given(
    st.sampled_from(ZONES).map(ZoneInfo),
    st.integers(1_100_000_000, 1_900_000_000),
    st.integers(-90_000, 90_000),
    st.integers(-90_000, 90_000),
)
def test_no_row_of_a_range_of_seconds_lies_outside_its_instants(
    zone: ZoneInfo, at_s: int, before_s: int, after_s: int
) -> None:
    def second(moment_s: int) -> int:
        return minute_bucket(moment_s * 1000, zone) * 100 + moment_s % 60

    between = second(at_s + before_s), second(at_s + after_s)
    if between[0] <= second(at_s) <= between[1]:
        span = instants(between, zone)
        assert span is not None
        assert span[0] <= at_s * 1000 <= at_s * 1000 + 999 <= span[1]


@pytest.mark.parametrize("between", [(1, 2), (20261115000000, 20261399999999), (0, 10**18)])
def test_seconds_that_are_no_times_are_no_instants(between: tuple[int, int]) -> None:
    assert instants(between, ZoneInfo("UTC")) is None
