"""Time buckets of whole columns."""

from __future__ import annotations

from datetime import tzinfo
from typing import Final

import numpy as np
import pyarrow as pa

from skyfarer.oap.core.time_bucket import MINUTE_MS, PRECISIONS, minute_bucket
from skyfarer.oap.storage.merging import Numbers

_SECONDS: Final = 10**6  # a second bucket is a day and six digits
_LAST_SECOND: Final = 23_59_59


def minute_buckets(rows: pa.Table, zone: tzinfo) -> Numbers:
    """The minute bucket of each row, from its `minute`."""
    minutes, places = np.unique(rows["minute"].to_numpy(), return_inverse=True)
    buckets = [minute_bucket(int(minute) * MINUTE_MS, zone) for minute in minutes]
    return np.array(buckets, np.int64)[places]


def has_day(between: tuple[int, int], day: int) -> bool:
    """Whether a range of second buckets has all of that day."""
    first, last = between
    return first <= day * _SECONDS and day * _SECONDS + _LAST_SECOND <= last


def days_in(buckets: Numbers) -> list[int]:
    """The days of minute buckets, in order."""
    days: list[int] = np.unique(buckets // PRECISIONS[-1]).tolist()
    return days
