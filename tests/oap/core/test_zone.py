"""Zones by their rules: this process's, and whether a storage is of the same one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest

from skyfarer.base.errors import PermanentError
from skyfarer.oap.core.zone import check_zone, local_zone, name_of

SUMMER = int(datetime(2026, 7, 15, 12, tzinfo=UTC).timestamp() * 1000)
WINTER = int(datetime(2026, 12, 15, 12, tzinfo=UTC).timestamp() * 1000)
BERLIN = ZoneInfo("Europe/Berlin")


def offset_h(zone: tzinfo, at_ms: int) -> float:
    offset = datetime.fromtimestamp(at_ms / 1000, zone).utcoffset()
    assert offset is not None
    return offset / timedelta(hours=1)


@pytest.mark.parametrize(
    ("written", "name"),
    [("Europe/Berlin", "Europe/Berlin"), (":Asia/Tokyo", "Asia/Tokyo"), ("Cuba", "Cuba")],
)
def test_the_zone_of_a_process_has_the_name_that_was_set(
    written: str, name: str, here: Callable[[str], None]
) -> None:
    here(written)
    assert name_of(local_zone(SUMMER)) == name


@pytest.mark.parametrize("started_ms", [SUMMER, WINTER])
@pytest.mark.parametrize("written", ["Europe/Berlin", "CET-1CEST,M3.5.0,M10.5.0/3"])
def test_its_clock_is_set_with_the_season_whenever_the_process_was_started(
    written: str, started_ms: int, here: Callable[[str], None]
) -> None:
    here(written)
    zone = local_zone(started_ms)
    assert [offset_h(zone, at_ms) for at_ms in (SUMMER, WINTER)] == [2, 1]


@pytest.mark.parametrize(("written", "hours"), [("Nowhere/At_All", 0), ("XYZ-5:15", 5.25)])
def test_a_zone_without_a_name_is_the_offset_that_the_system_says(
    written: str, hours: float, here: Callable[[str], None]
) -> None:
    here(written)
    assert offset_h(local_zone(SUMMER), WINTER) == hours


@pytest.mark.parametrize(
    ("kept", "zone"),
    [
        ("Europe/Berlin", ZoneInfo("Europe/Paris")),
        ("Europe/Berlin", BERLIN),
        ("Etc/UTC", UTC),
        ("UTC", timezone(timedelta(0), "GMT")),
        ("+0530", ZoneInfo("Asia/Kolkata")),
        ("Asia/Calcutta", timezone(timedelta(hours=5.5))),
    ],
)
def test_zones_of_the_same_rules_are_the_same(kept: str, zone: tzinfo) -> None:
    check_zone(kept, zone, SUMMER)


@pytest.mark.parametrize(
    ("kept", "zone"),
    [
        ("Europe/Berlin", UTC),
        ("Europe/Berlin", timezone(timedelta(hours=2))),
        ("Europe/London", UTC),
        ("America/Havana", ZoneInfo("America/New_York")),
        ("Africa/Casablanca", ZoneInfo("Africa/Lagos")),
    ],
)
@pytest.mark.parametrize("now_ms", [SUMMER, WINTER])
def test_zones_that_differ_for_an_hour_of_the_year_are_not(
    kept: str, zone: tzinfo, now_ms: int
) -> None:
    with pytest.raises(PermanentError, match=f"start it with TZ={kept}, or change the zone"):
        check_zone(kept, zone, now_ms)
