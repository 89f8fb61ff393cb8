"""What of a batch is of its time: neither from the future nor older than what is kept.

A clock that is wrong by an hour shall spoil no chart: what ends further ahead than clocks differ
is parked, and may be tried again when its time has come. What began before the days that are kept
would only make tables that are dropped again, so it is given up, and counted. Everything between
goes to the bucket of its own time, however late it comes.

The days that are kept are whole ones, the same that the TTL keeper counts, and none that it has
dropped already. Logs and events are records, measurements are metrics. A segment is both: past the
shorter of the two it is given up whole, for the ids that tell a resend are gone with the records,
and a resend would be counted in metrics once more.

The driver judges it, over the small rows that are there already: an expression of Spark's would
hold the time of day, and Spark compiles an expression that it has not seen anew, in every batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.expiry import Kept, Retention
from skyfarer.oap.core.time_bucket import begins_ms, days_before
from skyfarer.oap.pipeline.sources.reports import REPORTS
from skyfarer.wire.rpc import Kind

FUTURE_MS_MAX: Final = 600_000
DAY_MS: Final = 86_400_000
FUTURE: Final = f"future: a time more than {FUTURE_MS_MAX // 60_000} minutes ahead of this node's"
EXPIRED: Final = "expired"
"""The one reason for which a record is given up instead of parked."""
_LATE: Final = f"{EXPIRED}: it began before the days that are kept"
_MEASURED: Final = pa.array(sorted(REPORTS), pa.int32())
_RECORDED: Final = pa.array(sorted((Kind.LOG, Kind.OTLP_LOGS, Kind.EVENT)), pa.int32())


@dataclass(frozen=True)
class Window:
    """The times that are taken, in milliseconds of the epoch, both included; the oldest by how long
    that is kept which it is stored as."""

    oldest_ms: Mapping[Kept, int]
    newest_ms: int


def window(now_ms: int, retention: Retention, expired: Mapping[Kept, int]) -> Window:
    """`expired` are the last days that were dropped."""
    days = {kept: retention.first_day(kept, now_ms) for kept in Kept}
    days |= {kept: max(days[kept], days_before(last, -1)) for kept, last in expired.items()}
    oldest_ms = {kept: begins_ms(day, retention.zone) for kept, day in days.items()}
    return Window(oldest_ms, now_ms + FUTURE_MS_MAX)


def timely(rows: pa.Table, taken: Window) -> tuple[pa.Table, pa.Table]:
    """The rows, with a `reason` where one is out of its time and had none; and only those.

    One span decides: the last that is too new, else the oldest of them.
    """
    ahead = pc.fill_null(pc.greater(rows["last_time"], taken.newest_ms), False)
    late = pc.fill_null(pc.less(rows["start_time"], _oldest_ms(rows["kind"], taken)), False)
    untimely = pc.and_(pc.is_null(rows["reason"]), pc.or_(ahead, late))
    if not pc.any(untimely).as_py():
        return rows, rows.slice(0, 0)
    reasons = pc.if_else(untimely, pc.if_else(ahead, FUTURE, _LATE), rows["reason"])
    rows = rows.set_column(rows.schema.get_field_index("reason"), "reason", reasons)
    return rows, rows.filter(untimely)


def _oldest_ms(kinds: pa.ChunkedArray, taken: Window) -> pa.ChunkedArray:
    """Of each row."""
    record_ms, metrics_ms = (taken.oldest_ms[kept] for kept in (Kept.RECORD, Kept.METRICS))
    told = pc.if_else(pc.is_in(kinds, _RECORDED), record_ms, max(record_ms, metrics_ms))
    return pc.if_else(pc.is_in(kinds, _MEASURED), metrics_ms, told)
