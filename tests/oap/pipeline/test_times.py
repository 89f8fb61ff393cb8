"""Which records are of their time."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from skyfarer.oap.core.expiry import Kept, Retention
from skyfarer.oap.pipeline.times import EXPIRED, FUTURE_MS_MAX, timely, window
from skyfarer.wire.rpc import Kind

NOW = int(datetime(2026, 11, 15, 13, tzinfo=UTC).timestamp() * 1000)
TAKEN = window(NOW, Retention(3, 7), {})
NEWEST = NOW + FUTURE_MS_MAX


def day_ms(day: int, zone: str = "UTC") -> int:
    return int(datetime(2026, 11, day, tzinfo=ZoneInfo(zone)).timestamp() * 1000)


RECORDS, METRICS = day_ms(13), day_ms(9)


def reasons(
    *cases: tuple[int | None, int | None, str | None], kind: Kind = Kind.SEGMENT
) -> list[str | None]:
    """The code of the reason of each, its first and its last time and a reason that it has."""
    columns = [list(column) for column in zip(*cases, strict=True)]
    names = {"start_time": pa.int64(), "last_time": pa.int64(), "reason": pa.string()}
    rows = pa.table(columns, schema=pa.schema(names))
    rows = rows.append_column("kind", pa.array([kind] * len(cases), pa.int32()))
    found, untimely = timely(rows, TAKEN)
    told = found["reason"].to_pylist()
    new = [one for one, (*_, had) in zip(told, cases, strict=True) if one and not had]
    assert untimely["reason"].to_pylist() == new
    return [reason and reason.partition(":")[0] for reason in told]


def test_the_window_is_whole_days_kept_and_what_clocks_differ_by() -> None:
    assert TAKEN.oldest_ms == {Kept.RECORD: RECORDS, Kept.METRICS: METRICS}
    assert TAKEN.newest_ms == NEWEST
    assert FUTURE_MS_MAX == 10 * 60_000


def test_the_days_of_the_window_are_of_the_storages_zone() -> None:
    here = window(NOW, Retention(3, 7, ZoneInfo("Pacific/Auckland")), {})
    assert here.oldest_ms == {
        Kept.RECORD: day_ms(14, "Pacific/Auckland"),
        Kept.METRICS: day_ms(10, "Pacific/Auckland"),
    }


def test_t07_what_was_dropped_already_is_late_whatever_the_clock_says() -> None:
    dropped = window(NOW, Retention(3, 7), {Kept.RECORD: 20261113, Kept.METRICS: 20261101})
    assert dropped.oldest_ms == {Kept.RECORD: day_ms(14), Kept.METRICS: METRICS}


def test_a_segment_is_of_its_time_ahead_of_it_or_expired_to_the_millisecond() -> None:
    assert reasons(
        (NOW, NOW + 5, None),
        (RECORDS, NOW, None),
        (RECORDS - 1, NOW, None),
        (NOW, NEWEST, None),
        (NOW, NEWEST + 1, None),
        (RECORDS - 1, NEWEST + 1, None),
        (0, 0, None),
    ) == [None, None, EXPIRED, None, "future", "future", EXPIRED]


@pytest.mark.parametrize(
    ("kind", "oldest"),
    [
        (Kind.LOG, RECORDS),
        (Kind.OTLP_LOGS, RECORDS),
        (Kind.EVENT, RECORDS),
        (Kind.OTLP_TRACES, RECORDS),
        (Kind.JVM_METRICS, METRICS),
        (Kind.METER_COLLECTION, METRICS),
    ],
)
def test_what_is_made_of_a_record_says_how_late_it_may_come(kind: Kind, oldest: int) -> None:
    cases = ((oldest, oldest, None), (oldest - 1, oldest, None))
    assert reasons(*cases, kind=kind) == [None, EXPIRED]


def test_what_has_a_reason_keeps_it_and_what_is_no_segment_has_none() -> None:
    assert reasons(
        (NEWEST, NEWEST + 1, "implausible: x"), (None, None, None), (None, None, "undecodable")
    ) == ["implausible", None, "undecodable"]


def test_rows_that_are_all_of_their_time_are_left_as_they_are() -> None:
    told = {"start_time": [NOW], "last_time": [NOW], "reason": pa.nulls(1, pa.string())}
    rows = pa.table({**told, "kind": pa.array([Kind.SEGMENT], pa.int32())})
    found, untimely = timely(rows, TAKEN)
    assert found is rows
    assert untimely.num_rows == 0
