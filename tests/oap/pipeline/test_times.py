"""Which segments are of their time. All cases go through Spark as one table."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import SparkSession

from skyfarer.oap.pipeline.analysis.times import DAY_MS, EXPIRED, FUTURE_MS_MAX, timely, window

NOW = 1_794_744_000_000
TAKEN = window(NOW, days_kept=7)
OLDEST, NEWEST = NOW - 7 * DAY_MS, NOW + FUTURE_MS_MAX

Spans = list[tuple[int, int]]


def reasons(spark: SparkSession, *cases: tuple[Spans | None, str | None]) -> list[str | None]:
    """The code of the reason of each; a case is (start, end) of its spans and a reason it has."""
    span = pa.struct({"startTime": pa.int64(), "endTime": pa.int64()})
    schema = pa.schema(
        {
            "number": pa.int64(),
            "segment": pa.struct({"spans": pa.list_(span)}),
            "reason": pa.string(),
        }
    )
    rows = [
        {"number": number, "segment": _segment(spans), "reason": reason}
        for number, (spans, reason) in enumerate(cases)
    ]
    table = pa.Table.from_pylist(rows, schema=schema)
    found = timely(spark.createDataFrame(table), TAKEN).toArrow().sort_by("number")
    return [reason and reason.partition(":")[0] for reason in found["reason"].to_pylist()]


def _segment(spans: Spans | None) -> dict[str, list[dict[str, int]]] | None:
    if spans is None:
        return None
    return {"spans": [{"startTime": start, "endTime": end} for start, end in spans]}


def test_the_window_is_the_days_kept_and_what_clocks_differ_by() -> None:
    assert (TAKEN.oldest_ms, TAKEN.newest_ms) == (OLDEST, NEWEST)
    assert FUTURE_MS_MAX == 10 * 60_000


def test_a_segment_is_of_its_time_ahead_of_it_or_expired_to_the_millisecond(
    spark: SparkSession,
) -> None:
    now = (NOW, NOW + 5)
    assert reasons(
        spark,
        ([now], None),
        ([(OLDEST, NOW)], None),
        ([(OLDEST - 1, NOW)], None),
        ([(NOW, NEWEST)], None),
        ([(NOW, NEWEST + 1)], None),
        ([(NEWEST + 1, NOW)], None),
        ([now, (NOW, NEWEST + 1)], None),
        ([now, (OLDEST - 1, NOW)], None),
        ([(OLDEST - 1, NOW), (NEWEST + 1, NEWEST + 2)], None),
        ([(NOW, OLDEST - 1)], None),
        ([(0, 0)], None),
    ) == [
        *(None, None, EXPIRED, None, "future", "future", "future", EXPIRED, "future"),
        *(None, EXPIRED),
    ]


def test_what_has_a_reason_keeps_it_and_what_is_no_segment_has_none(spark: SparkSession) -> None:
    ahead: Spans = [(NEWEST + 1, NEWEST + 2)]
    assert reasons(
        spark, (ahead, "implausible: x"), (None, None), (None, "undecodable"), ([], None)
    ) == ["implausible", None, "undecodable", None]
