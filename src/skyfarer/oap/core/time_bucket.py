"""Time buckets: local-time integers in the server's zone (minute 202611150817, day 20261115).

Precision is the number of digits. Storage keeps minute buckets; hour and day follow by division.
"""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo

MINUTE_MS = 60_000


def minute_bucket(epoch_ms: int, zone: tzinfo) -> int:
    at = datetime.fromtimestamp(epoch_ms // 1000, zone)
    return ((at.year * 100 + at.month) * 100 + at.day) * 10_000 + at.hour * 100 + at.minute


def hour_of(minute: int) -> int:
    return minute // 100


def day_of(minute: int) -> int:
    return minute // 10_000


def start_of(minute: int, zone: tzinfo) -> datetime:
    """The moment a minute bucket begins; where the clock was set back, its first occurrence."""
    date, clock = divmod(minute, 10_000)
    return datetime(
        date // 10_000, date // 100 % 100, date % 100, clock // 100, clock % 100, tzinfo=zone
    )


def epoch_ms(minute: int, zone: tzinfo) -> int:
    return int(start_of(minute, zone).timestamp() * 1000)


def days_before(day: int, count: int) -> int:
    """The day bucket so many days earlier; a negative count is later."""
    date = datetime(day // 10_000, day // 100 % 100, day % 100) - timedelta(days=count)
    return (date.year * 100 + date.month) * 100 + date.day


def begins_ms(day: int, zone: tzinfo) -> int:
    """The moment from which on no minute bucket is of an older day.

    Where midnight comes twice it is the second one, and where a leap of the clock goes over it, it
    may be a little later.
    """
    midnight = start_of(day * 10_000, zone)
    return max(int(one.timestamp()) * 1000 for one in (midnight, midnight.replace(fold=1)))


def days_between(first_day: int, last_day: int) -> list[int]:
    """Every day bucket from first to last, both included."""

    def date(day: int) -> datetime:
        return datetime(day // 10_000, day // 100 % 100, day % 100)

    count = (date(last_day) - date(first_day)).days + 1
    days = (date(first_day) + timedelta(days=n) for n in range(max(0, count)))
    return [(d.year * 100 + d.month) * 100 + d.day for d in days]


PRECISIONS = (1, 100, 10_000)
"""What a minute bucket is divided by to give its minute, its hour and its day."""
_DIGITS = (12, 10, 8)


def days_of(start_bucket: int, end_bucket: int) -> list[int]:
    """The days of a range of minutes, hours or days; ValueError when its ends differ in that."""
    digits = len(str(start_bucket))
    if digits not in _DIGITS or len(str(end_bucket)) != digits:
        raise ValueError(f"{start_bucket} and {end_bucket} are not two buckets of one precision")
    to_day: int = 10 ** (digits - 8)
    return days_between(start_bucket // to_day, end_bucket // to_day)
