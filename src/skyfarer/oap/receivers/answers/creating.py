"""Get or create: what every call of the registry does with a name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from skyfarer.base.clock import Clock
from skyfarer.oap.core.inventory import Inventory, InventoryScope, row_id
from skyfarer.oap.receivers.answers.names import Names

K = TypeVar("K")

Kept = tuple[Inventory, ...]


def new(scope: InventoryScope, at_ms: int, **fields: Any) -> Inventory:
    """One that was never seen before."""
    return Inventory(scope, register_time=at_ms, heartbeat_time=at_ms, **fields)


def bare(inventory: Inventory, **fields: Any) -> Inventory:
    """The same one, and nothing said of it but `fields`: whatever else changed meanwhile, stays."""
    return Inventory(
        inventory.scope,
        name=inventory.name,
        service_id=inventory.service_id,
        uuid=inventory.uuid,
        is_address=inventory.is_address,
        address_id=inventory.address_id,
        detect_point=inventory.detect_point,
        **fields,
    )


def ids(names: Names, wanted: Mapping[K, Inventory]) -> tuple[dict[K, int], Kept]:
    """The ids of those that have one, and of the others those that must be handed to the queue.

    `wanted` are all of one scope.
    """
    if not wanted:
        return {}, ()
    rows = {key: row_id(inventory) for key, inventory in wanted.items()}
    found = names.find(next(iter(wanted.values())).scope, rows.values())
    known = {key: found[row].sequence for key, row in rows.items() if row in found}
    return known, names.wanted(one for key, one in wanted.items() if key not in known)


def moment_ms(told_ms: int, clock: Clock) -> int:
    """When an agent says it was; now, if that is no time or yet to come: the latest heartbeat
    counts, and one of the next century would be the last."""
    now_ms = clock.now_ms()
    return told_ms if 0 < told_ms <= now_ms else now_ms
