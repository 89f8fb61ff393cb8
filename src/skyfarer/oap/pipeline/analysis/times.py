"""What of a batch is of its time: neither from the future nor older than what is kept.

A clock that is wrong by an hour shall spoil no chart: what ends further ahead than clocks differ
is parked, and may be tried again when its time has come. What began before the days that are kept
would only make tables that are dropped again, so it is given up, and counted. Everything between
goes to the bucket of its own time, however late it comes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

FUTURE_MS_MAX: Final = 600_000
DAY_MS: Final = 86_400_000
FUTURE: Final = f"future: a time more than {FUTURE_MS_MAX // 60_000} minutes ahead of this node's"
EXPIRED: Final = "expired"
"""The one reason for which a record is given up instead of parked."""


@dataclass(frozen=True)
class Window:
    """The times that are taken, in milliseconds of the epoch, both included."""

    oldest_ms: int
    newest_ms: int


def window(now_ms: int, days_kept: int) -> Window:
    return Window(now_ms - days_kept * DAY_MS, now_ms + FUTURE_MS_MAX)


def timely(rows: DataFrame, taken: Window) -> DataFrame:
    """The rows, with a `reason` where a segment is out of its time and had none."""
    return rows.withColumn("reason", F.coalesce("reason", _reason(taken)))


def _reason(taken: Window) -> Column:
    """One span decides: the first that is too new, else the oldest of them."""
    spans = F.col("segment.spans")
    ahead = F.exists(
        spans, lambda s: F.greatest(s["startTime"], s["endTime"]) > F.lit(taken.newest_ms)
    )
    began = F.array_min(F.transform(spans, lambda s: s["startTime"]))
    late = F.lit(f"{EXPIRED}: it began before the days that are kept")
    return F.when(ahead, F.lit(FUTURE)).when(began < F.lit(taken.oldest_ms), late)
