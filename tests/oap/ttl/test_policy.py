"""Which tables go, by days, clocks and bounds."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from random import Random
from zoneinfo import ZoneInfo

import pytest

from oap.ttl.schedules import Schedule, edges, schedules
from skyfarer.oap.core.expiry import DayTable, Kept, Retention
from skyfarer.oap.core.time_bucket import begins_ms, day_of, days_before, minute_bucket
from skyfarer.oap.ttl.policy import CLOCKS_DIFFER_MS_MAX, ClockError, Plan, plan

NOW = int(datetime(2026, 11, 15, 12, tzinfo=UTC).timestamp() * 1000)
HOUR_MS, DAY_MS, YEAR_MS = 3_600_000, 86_400_000, 365 * 86_400_000
WEEK = Retention(3, 7)
SCHEDULES = 10_000


def day(of: date) -> int:
    return of.year * 10_000 + of.month * 100 + of.day


def model(name: str, kept: Kept, first: int, last: int) -> list[DayTable]:
    """One table a day, so many days before 2026-11-15."""
    days = range(first, last - 1, -1)
    return [DayTable(name, day(date(2026, 11, 15) - timedelta(days=n)), kept) for n in days]


def segments(first: int, last: int) -> list[DayTable]:
    return model("segment", Kept.RECORD, first, last)


def days(tables: tuple[DayTable, ...]) -> list[int]:
    return [table.day for table in tables]


def test_today_and_the_days_before_it_stay_and_metrics_longer_than_records() -> None:
    found = plan([*segments(4, -1), *model("cpm", Kept.METRICS, 8, 0)], WEEK, NOW, NOW)
    assert found.today == 20261115
    assert found.first_days == {Kept.RECORD: 20261113, Kept.METRICS: 20261109}
    assert [(one.model, one.day) for one in found.going] == [
        *(("cpm", 20261107), ("cpm", 20261108)),
        *(("segment", 20261111), ("segment", 20261112)),
    ]
    assert found.waiting == ()
    assert found.expired == 4
    assert found.oldest == {Kept.RECORD: 20261111, Kept.METRICS: 20261107}
    assert days(found.staying)[-4:] == [20261113, 20261114, 20261115, 20261116]


@pytest.mark.parametrize("ahead_ms", [HOUR_MS, DAY_MS, YEAR_MS])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("whose", ["this node's", "the storage's"])
def test_t05_clocks_that_differ_are_told_and_delete_nothing(
    ahead_ms: int, sign: int, whose: str
) -> None:
    local_ms, storage_ms = NOW, NOW
    if whose == "this node's":
        local_ms += sign * ahead_ms
    else:
        storage_ms += sign * ahead_ms
    with pytest.raises(ClockError) as refused:
        plan(segments(30, 0), WEEK, local_ms, storage_ms, force=True)
    said = "ahead of" if local_ms > storage_ms else "behind"
    assert f"{said} the storage's, and more than 5 minutes" in str(refused.value)


def test_t05_the_clock_that_is_behind_tells_the_day() -> None:
    midnight = int(datetime(2026, 11, 16, tzinfo=UTC).timestamp() * 1000)
    for local_ms, storage_ms in (
        (midnight - 1, midnight + CLOCKS_DIFFER_MS_MAX - 1),
        (midnight + CLOCKS_DIFFER_MS_MAX - 1, midnight - 1),
    ):
        assert plan([], WEEK, local_ms, storage_ms).today == 20261115
    assert plan([], WEEK, midnight, midnight + 1).today == 20261116


@pytest.mark.parametrize("ttl_days", [1, 0, -1, -1000])
def test_t06_yesterday_today_and_tomorrow_stay_whatever_is_configured(ttl_days: int) -> None:
    found = plan(segments(3, -2), Retention(ttl_days, ttl_days), NOW, NOW, force=True)
    assert days(found.going) == [20261112, 20261113]
    assert days(found.staying) == [20261114, 20261115, 20261116, 20261117]


@pytest.mark.parametrize(
    ("there", "goes"), [(4, 1), (5, 2), (6, 3), (7, 3), (8, 4), (10, 5), (11, 5)]
)
def test_t05_a_run_takes_two_days_of_a_model_or_half_of_them(there: int, goes: int) -> None:
    tables = segments(there - 1, 0)
    found = plan(tables, WEEK, NOW, NOW)
    assert found.going == tuple(tables[:goes])
    assert found.waiting == tuple(tables[goes : there - 3])
    forced = plan(tables, WEEK, NOW, NOW, force=True)
    assert forced.going == tuple(tables[: there - 3])
    assert forced.waiting == ()


def test_t05_the_bound_is_each_models_own() -> None:
    tables = [*segments(11, 0), *model("log", Kept.RECORD, 3, 0)]
    found = plan(tables, WEEK, NOW, NOW)
    assert [one.model for one in found.going] == ["log"] + ["segment"] * 6


@pytest.mark.parametrize(("left", "runs"), [(3, 0), (4, 1), (30, 4), (365, 7), (3650, 11)])
def test_t01_what_a_long_outage_has_left_is_gone_within_a_few_runs(left: int, runs: int) -> None:
    tables, count = segments(left - 1, 0), 0
    while going := plan(tables, WEEK, NOW, NOW).going:
        gone = set(going)
        tables = [one for one in tables if one not in gone]
        count += 1
    assert (len(tables), count) == (3, runs)


def test_a_table_that_is_listed_twice_counts_once() -> None:
    assert plan(segments(5, 0) * 3, WEEK, NOW, NOW) == plan(segments(5, 0), WEEK, NOW, NOW)


def planned(schedule: Schedule, *, local_ms: int, storage_ms: int) -> Plan:
    retention = Retention(schedule.record_days, schedule.metrics_days, schedule.zone)
    tables = [
        DayTable(name, day(schedule.today - timedelta(days=n)), kept)
        for name, kept in (("segment", Kept.RECORD), ("cpm", Kept.METRICS))
        for n in range(-2, schedule.metrics_days + schedule.record_days)
    ]
    return plan(tables, retention, local_ms, storage_ms, schedule.force)


def expired(schedule: Schedule, kept: Kept) -> int:
    """The newest day that has expired, by the calendar alone."""
    ttl = schedule.record_days if kept is Kept.RECORD else schedule.metrics_days
    return day(schedule.today - timedelta(days=ttl))


def test_t04_no_live_day_goes_in_any_schedule_of_zones_edges_and_jumps() -> None:
    """10,000 of them: the day is right as long as one of the two clocks is."""
    refused = went = 0
    for schedule in schedules(Random(20261115), SCHEDULES):
        wrong = schedule.now_ms + schedule.jump_ms
        clocks = (schedule.now_ms, wrong) if schedule.storage_jumps else (wrong, schedule.now_ms)
        try:
            found = planned(schedule, local_ms=clocks[0], storage_ms=clocks[1])
        except ClockError:
            refused += 1
            assert abs(schedule.jump_ms) > CLOCKS_DIFFER_MS_MAX
            continue
        went += len(found.going)
        for one in (*found.going, *found.waiting):
            assert one.day <= expired(schedule, one.kept), schedule
        if not schedule.jump_ms:
            for kept in Kept:
                left = [one.day for one in found.staying if one.kept is kept]
                assert min(left) > expired(schedule, kept), schedule
    assert refused > SCHEDULES // 10
    assert went > SCHEDULES


def test_t04_a_day_begins_after_the_last_minute_of_the_day_before_in_every_zone() -> None:
    """The pipeline takes what storage does not refuse: minute by minute around every edge."""
    for zone, moment_ms in edges():
        for minute in range(-3, 4):
            at_ms = moment_ms + minute * 60_000
            today = day_of(minute_bucket(at_ms, zone))
            for one in (today, days_before(today, -1)):
                begins = begins_ms(one, zone)
                assert day_of(minute_bucket(begins, zone)) >= one
                if at_ms >= begins:
                    assert today >= one, (zone, at_ms)


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=-9.5)), ZoneInfo("Asia/Kolkata")])
def test_t04_where_the_clock_is_never_set_a_day_begins_at_midnight(zone: timezone) -> None:
    begins = begins_ms(20280229, zone)
    assert minute_bucket(begins, zone) == 202802290000
    assert minute_bucket(begins - 1, zone) == 202802282359
    assert days_before(20280301, 1) == 20280229
    assert days_before(20261231, -1) == 20270101
