"""Which segments are of their time."""

from __future__ import annotations

import pyarrow as pa

from skyfarer.oap.pipeline.times import DAY_MS, EXPIRED, FUTURE_MS_MAX, timely, window

NOW = 1_794_744_000_000
TAKEN = window(NOW, days_kept=7)
OLDEST, NEWEST = NOW - 7 * DAY_MS, NOW + FUTURE_MS_MAX


def reasons(*cases: tuple[int | None, int | None, str | None]) -> list[str | None]:
    """The code of the reason of each, its first and its last time and a reason that it has."""
    columns = [list(column) for column in zip(*cases, strict=True)]
    names = {"start_time": pa.int64(), "last_time": pa.int64(), "reason": pa.string()}
    rows = pa.table(columns, schema=pa.schema(names))
    found, untimely = timely(rows, TAKEN)
    told = found["reason"].to_pylist()
    new = [one for one, (*_, had) in zip(told, cases, strict=True) if one and not had]
    assert untimely["reason"].to_pylist() == new
    return [reason and reason.partition(":")[0] for reason in told]


def test_the_window_is_the_days_kept_and_what_clocks_differ_by() -> None:
    assert (TAKEN.oldest_ms, TAKEN.newest_ms) == (OLDEST, NEWEST)
    assert FUTURE_MS_MAX == 10 * 60_000


def test_a_segment_is_of_its_time_ahead_of_it_or_expired_to_the_millisecond() -> None:
    assert reasons(
        (NOW, NOW + 5, None),
        (OLDEST, NOW, None),
        (OLDEST - 1, NOW, None),
        (NOW, NEWEST, None),
        (NOW, NEWEST + 1, None),
        (OLDEST - 1, NEWEST + 1, None),
        (0, 0, None),
    ) == [None, None, EXPIRED, None, "future", "future", EXPIRED]


def test_what_has_a_reason_keeps_it_and_what_is_no_segment_has_none() -> None:
    assert reasons(
        (NEWEST, NEWEST + 1, "implausible: x"), (None, None, None), (None, None, "undecodable")
    ) == ["implausible", None, "undecodable"]


def test_rows_that_are_all_of_their_time_are_left_as_they_are() -> None:
    rows = pa.table({"start_time": [NOW], "last_time": [NOW], "reason": pa.nulls(1, pa.string())})
    found, untimely = timely(rows, TAKEN)
    assert found is rows
    assert untimely.num_rows == 0
