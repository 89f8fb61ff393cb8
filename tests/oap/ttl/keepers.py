"""A keeper alone: the only node that is listed, with a clock that is moved by hand."""

from __future__ import annotations

from oap.ttl.cluster_of import PERIOD_S, Told
from skyfarer.oap.core.cluster import Node
from skyfarer.oap.core.expiry import DayTables, Retention
from skyfarer.oap.ttl.keeper import Keeper, KeeperSettings
from skyfarer.oap.ttl.sight import Sight
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.clock import HandClock

OWN = Node("10.0.0.1", 11800, is_self=True)


def keeper_of(tables: DayTables, clock: HandClock, retention: Retention, holder: str) -> Keeper:
    registry = Registry()
    return Keeper(
        KeeperSettings(retention, PERIOD_S, holder),
        *(tables, Told([OWN]), Sight(retention, PERIOD_S, registry, Health(), clock)),
        *(registry, clock),
    )
