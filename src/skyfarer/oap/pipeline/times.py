"""What of a batch is of its time: neither from the future nor older than what is kept.

A clock that is wrong by an hour shall spoil no chart: what ends further ahead than clocks differ
is parked, and may be tried again when its time has come. What began before the days that are kept
would only make tables that are dropped again, so it is given up, and counted. Everything between
goes to the bucket of its own time, however late it comes.

The driver judges it, over the small rows that are there already: an expression of Spark's would
hold the time of day, and Spark compiles an expression that it has not seen anew, in every batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

FUTURE_MS_MAX: Final = 600_000
DAY_MS: Final = 86_400_000
FUTURE: Final = f"future: a time more than {FUTURE_MS_MAX // 60_000} minutes ahead of this node's"
EXPIRED: Final = "expired"
"""The one reason for which a record is given up instead of parked."""
_LATE: Final = f"{EXPIRED}: it began before the days that are kept"


@dataclass(frozen=True)
class Window:
    """The times that are taken, in milliseconds of the epoch, both included."""

    oldest_ms: int
    newest_ms: int


def window(now_ms: int, days_kept: int) -> Window:
    return Window(now_ms - days_kept * DAY_MS, now_ms + FUTURE_MS_MAX)


def timely(rows: pa.Table, taken: Window) -> tuple[pa.Table, pa.Table]:
    """The rows, with a `reason` where a segment is out of its time and had none; and only those.

    One span decides: the last that is too new, else the oldest of them.
    """
    ahead = pc.fill_null(pc.greater(rows["last_time"], taken.newest_ms), False)
    late = pc.fill_null(pc.less(rows["start_time"], taken.oldest_ms), False)
    untimely = pc.and_(pc.is_null(rows["reason"]), pc.or_(ahead, late))
    if not pc.any(untimely).as_py():
        return rows, rows.slice(0, 0)
    reasons = pc.if_else(untimely, pc.if_else(ahead, FUTURE, _LATE), rows["reason"])
    rows = rows.set_column(rows.schema.get_field_index("reason"), "reason", reasons)
    return rows, rows.filter(untimely)
