"""The contract of expiring data: tables of days, and the lease under which they are dropped.

The lease lies in the storage itself, so that a node that was paused, or cut off from the
coordinator, is refused by the same transaction that would have dropped something.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol


class Kept(Enum):
    """For how long: as `recordDataTTL` or as `metricsDataTTL` says."""

    RECORD = "record"
    METRICS = "metrics"


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


class DayTables(Protocol):
    """Any thread; blocks on the database."""

    def now_ms(self) -> int:
        """By the storage's own clock."""

    def day_tables(self) -> list[DayTable]:
        """All there are, by model and day."""

    def take_lease(self, name: str, holder: str, seconds: float) -> Lease | None:
        """Taken when free or expired, renewed when it is the holder's own; else None."""

    def drop(self, lease: Lease, table: DayTable) -> bool:
        """Drop it, and note that its model begins after that day, in one transaction.

        False when it was gone already. A lease that is no longer the newest of its name, or has
        expired, raises PermanentError and drops nothing. From then on a batch with rows of that
        model and day, or of an older one, is not applied.
        """
