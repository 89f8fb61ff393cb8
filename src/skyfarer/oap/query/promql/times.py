"""Times of the Prometheus API → durations of the query protocol.

There are no steps of one's own: metrics are kept by the minute, the hour and the day, and the
finest of these is taken that has no more points than may be asked for.
"""

from __future__ import annotations

import math
from datetime import datetime, tzinfo

from skyfarer.oap.query.durations import POINTS_MAX, Duration, Step
from skyfarer.oap.query.errors import QueryError

LOOKBACK_S = 120
_LAST_S = 253_000_000_000.0  # in the year 9987
_STEPS = ((Step.MINUTE, 60), (Step.HOUR, 3_600), (Step.DAY, 86_400))


def seconds(text: str, what: str) -> float:
    """Of a Unix timestamp, or of RFC 3339. Clients write the beginning and the end of all times
    by numbers far outside of any year: these are cut."""
    try:
        found = float(text)
    except ValueError:
        found = _rfc3339(text, what)
    if math.isnan(found):
        raise QueryError(f"{what} is {text[:40]!r}, which is no time")
    return min(max(found, 0.0), _LAST_S)


def _rfc3339(text: str, what: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
        return moment.timestamp() if moment.tzinfo is not None else math.nan
    except (ValueError, OverflowError):
        raise QueryError(
            f"{what} is {text[:40]!r}; write seconds since 1970, or 2026-11-15T08:00:00Z"
        ) from None


def between(start_s: float, end_s: float, zone: tzinfo) -> Duration:
    """The buckets that the time touches."""
    if start_s > end_s:
        raise QueryError("start is after end")
    for step, step_s in _STEPS:
        if (end_s - start_s) // step_s + 2 <= POINTS_MAX:
            return Duration(step, _local(start_s, step, zone), _local(end_s, step, zone))
    raise QueryError(f"start and end are more than {POINTS_MAX} days apart; ask for less")


def _local(at_s: float, step: Step, zone: tzinfo) -> datetime:
    moment = datetime.fromtimestamp(at_s, zone).replace(second=0, microsecond=0, tzinfo=None)
    if step is not Step.MINUTE:
        moment = moment.replace(minute=0)
    return moment.replace(hour=0) if step is Step.DAY else moment
