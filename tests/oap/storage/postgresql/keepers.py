"""Keepers over a real PostgreSQL, whose clock is the machine's."""

from __future__ import annotations

from contracts.storage_contract import batch, segment
from skyfarer.base.clock import SystemClock
from skyfarer.oap.core.cluster import Coordinator
from skyfarer.oap.core.expiry import DayTables, Retention
from skyfarer.oap.storage.postgresql import PostgresStorage
from skyfarer.oap.ttl.keeper import LEASE_S, Keeper, KeeperSettings
from skyfarer.oap.ttl.sight import Sight
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry

DAY_MS = 86_400_000
DAYS = Retention(3, 3)
PERIOD_S = 3600.0


def fill(storage: PostgresStorage, *days_ago: int) -> None:
    """A segment of each of these days; its tags are another model."""
    now_ms = SystemClock().now_ms()
    for first, ago in enumerate(days_ago):
        storage.apply(batch(first, first + 1, [segment(f"s{first}", now_ms - ago * DAY_MS)]))


def keeper_of(
    tables: DayTables, coordinator: Coordinator, holder: str, lease_s: float = LEASE_S
) -> Keeper:
    clock, registry = SystemClock(), Registry()
    return Keeper(
        KeeperSettings(DAYS, PERIOD_S, holder, lease_s=lease_s),
        *(tables, coordinator, Sight(DAYS, PERIOD_S, registry, Health(), clock)),
        *(registry, clock),
    )
