"""The contract of expiring data: tables of days, and the lease under which they are dropped.

retention   how many days are kept; who stores late data and who drops tables count alike
lease       in the storage itself, so that a node that was paused, or cut off from the
            coordinator, is refused by the same transaction that would have dropped something
floor       the last day of a model that was dropped: nothing of it comes back
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, tzinfo
from enum import Enum
from typing import Final, Protocol

from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.oap.core.time_bucket import day_of, days_before, minute_bucket

LEASE_S_MAX: Final = 600.0
DROP_WAITS_S_MAX: Final = 40.0
"""For readers and writers of a table that is to go: a lease must last longer."""


class Kept(Enum):
    """For how long: as `recordDataTTL` or as `metricsDataTTL` says."""

    RECORD = "record"
    METRICS = "metrics"


@dataclass(frozen=True)
class Retention:
    """How many days are kept, today among them; a day is of the zone that buckets are of."""

    record_days: int = 3
    metrics_days: int = 7
    zone: tzinfo = UTC

    def first_day(self, kept: Kept, now_ms: int) -> int:
        """The oldest day that is kept."""
        return self.first_day_on(self.today(now_ms), kept)

    def first_day_on(self, today: int, kept: Kept) -> int:
        days = self.record_days if kept is Kept.RECORD else self.metrics_days
        return days_before(today, days - 1)

    def today(self, now_ms: int) -> int:
        return day_of(minute_bucket(now_ms, self.zone))


@dataclass(frozen=True)
class RetentionOverride:
    """What the configuration of a storage says in place of core's; None: as core says."""

    record_days: int | None = None
    metrics_days: int | None = None

    def over(self, core: Retention) -> Retention:
        return Retention(
            core.record_days if self.record_days is None else self.record_days,
            core.metrics_days if self.metrics_days is None else self.metrics_days,
            core.zone,
        )


@dataclass(frozen=True)
class DayTable:
    """Everything of one model and day: `segment` of 20261115. A day is of the storage's zone."""

    model: str
    day: int
    kept: Kept


@dataclass(frozen=True)
class Lease:
    """`epoch` grows whenever the holder changes; `expires_ms` is of the storage's clock."""

    name: str
    holder: str
    epoch: int
    expires_ms: int


class DroppedDayError(RetryableError):
    """A batch has rows of a day that was dropped meanwhile: analysed again, it leaves them out."""


class LeaseLostError(PermanentError):
    """A drop under a lease that is no longer the newest of its name, or has expired."""


class DayTables(Protocol):
    """Any thread; blocks on the database."""

    def now_ms(self) -> int:
        """By the storage's own clock."""

    def day_tables(self) -> list[DayTable]:
        """All there are, by model and day."""

    def take_lease(self, name: str, holder: str, seconds: float) -> Lease | None:
        """Taken when free or expired, renewed when it is the holder's own; else None.

        Nobody takes one for more than LEASE_S_MAX: a lease that would last longer was written
        before the storage's clock was set back, and counts as expired.
        """

    def last_lease(self, name: str) -> Lease | None:
        """The newest of that name, expired or not; None when nobody has ever taken it."""

    def drop(self, lease: Lease, table: DayTable) -> bool:
        """Drop it, and note that its model begins after that day, in one transaction.

        False when it was gone already. Gives up when others have it for DROP_WAITS_S_MAX. A lease
        that is no longer the newest of its name, or has expired, raises LeaseLostError and drops
        nothing. From then on a batch with rows of that model and day, or of an older one, is not
        applied (`Writer.apply`).
        """
