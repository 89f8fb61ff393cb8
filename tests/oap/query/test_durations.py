"""Buckets of a duration where the server's clock is set forward and back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skyfarer.oap.query.durations import Duration

BERLIN = ZoneInfo("Europe/Berlin")
KOLKATA = ZoneInfo("Asia/Kolkata")


def duration(start: str, end: str, step: str) -> Duration:
    return Duration.of({"start": start, "end": end, "step": step})


def test_the_hour_the_clock_leaps_over_is_no_point():
    points = duration("2026-03-29 00", "2026-03-29 04", "HOUR").points(BERLIN)
    assert [p.bucket for p in points] == [2026032900, 2026032901, 2026032903, 2026032904]


def test_the_hour_the_clock_repeats_is_one_point():
    points = duration("2026-10-25 01", "2026-10-25 04", "HOUR").points(BERLIN)
    assert [p.bucket for p in points] == [2026102501, 2026102502, 2026102503, 2026102504]
    assert points[2].epoch_ms - points[1].epoch_ms == 2 * 3_600_000


def test_days_follow_the_calendar_across_a_change_of_the_clock():
    points = duration("2026-10-24", "2026-10-26", "DAY").points(BERLIN)
    assert [p.bucket for p in points] == [20261024, 20261025, 20261026]
    assert points[2].epoch_ms - points[1].epoch_ms == 25 * 3_600_000


def test_hours_of_a_zone_with_half_hours_begin_on_its_own_hour():
    points = duration("2026-11-15 23", "2026-11-16 00", "HOUR").points(KOLKATA)
    assert [p.bucket for p in points] == [2026111523, 2026111600]
    assert points[0].epoch_ms % 3_600_000 == 1_800_000


def test_minutes_run_over_the_end_of_a_month():
    points = duration("2026-02-28 2359", "2026-03-01 0000", "MINUTE").points(KOLKATA)
    assert [p.bucket for p in points] == [202602282359, 202603010000]


def test_the_minutes_of_a_duration_cover_all_of_its_last_bucket():
    spans = {
        step: (duration(text, text, step).start_minute, duration(text, text, step).end_minute)
        for step, text in {
            "DAY": "2026-11-15",
            "HOUR": "2026-11-15 08",
            "MINUTE": "2026-11-15 0817",
            "SECOND": "2026-11-15 081759",
        }.items()
    }
    assert spans == {
        "DAY": (202611150000, 202611152359),
        "HOUR": (202611150800, 202611150859),
        "MINUTE": (202611150817, 202611150817),
        "SECOND": (202611150817, 202611150817),
    }


ZONES = [UTC, BERLIN, KOLKATA, ZoneInfo("Australia/Lord_Howe"), ZoneInfo("Africa/Casablanca")]
LEAPS = [
    *(datetime(2026, 3, 29, 1), datetime(2026, 10, 25, 3)),  # Berlin's
    *(datetime(2026, 4, 5, 2), datetime(2026, 10, 4, 2)),  # Lord Howe's, of half an hour
    *(datetime(2026, 2, 15, 3), datetime(2026, 3, 22, 2)),  # Casablanca's
]


def followed(start: datetime, end: datetime, apart: timedelta, zone: tzinfo) -> list[list[int]]:
    """A clock on the wall, looked at again and again until it is past the end, and what it shows
    from before the start left out: bucket, and when storage has it begin."""
    found: dict[datetime, int] = {}
    moment, minutes = start.replace(tzinfo=zone).astimezone(UTC), apart < timedelta(hours=1)
    while True:
        shown = moment.astimezone(zone).replace(tzinfo=None)
        whole = shown if minutes else shown.replace(minute=0)
        if whole > end:
            break
        if whole >= start:
            found.setdefault(whole, int(whole.replace(tzinfo=zone).timestamp() * 1000))
        moment += apart
    shape = "%Y%m%d%H%M" if minutes else "%Y%m%d%H"
    return [[int(shown.strftime(shape)), began] for shown, began in found.items()]


@pytest.mark.parametrize("zone", ZONES, ids=str)
@settings(max_examples=60)
@given(
    leap=st.sampled_from(LEAPS),
    before=st.integers(-200, 300),
    long=st.integers(0, 300),
    hours=st.booleans(),
)
@example(leap=LEAPS[0], before=-90, long=0, hours=False)
@example(leap=LEAPS[0], before=0, long=90, hours=False)
def test_points_are_what_a_clock_on_the_wall_shows(zone, leap, before, long, hours):
    start = leap - timedelta(minutes=before)
    end = start + timedelta(minutes=long)
    shape, step, apart = "%Y-%m-%d %H%M", "MINUTE", timedelta(minutes=1)
    if hours:
        shape, step, apart = "%Y-%m-%d %H", "HOUR", timedelta(hours=1)
        start, end = start.replace(minute=0), end.replace(minute=0)
    asked = duration(start.strftime(shape), end.strftime(shape), step)
    found = [[point.bucket, point.epoch_ms] for point in asked.points(zone)]
    assert found == followed(start, end, apart, zone)
