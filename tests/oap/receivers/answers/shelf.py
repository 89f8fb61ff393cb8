"""A registry's storage, as small as it can be: what `InventoryReader` promises, in a dictionary."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

from skyfarer.oap.core.inventory import FIRST_ID, Inventory, InventoryScope, combine, row_id
from skyfarer.wire.messages import inventory as messages


class Shelf:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.rows: dict[tuple[InventoryScope, str], Inventory] = {}
        self.reads = 0

    def store(self, *inventories: Inventory) -> None:
        with self._lock:
            for one in inventories:
                key = one.scope, row_id(one)
                stored = self.rows.get(key)
                if stored is None:
                    taken = sum(scope is one.scope for scope, _ in self.rows)
                    stored = replace(one, sequence=FIRST_ID + taken)
                self.rows[key] = combine(stored, one)

    def inventories(self, scope: InventoryScope, row_ids: Sequence[str]) -> Mapping[str, Inventory]:
        with self._lock:
            self.reads += 1
            return {row: self.rows[scope, row] for row in row_ids if (scope, row) in self.rows}

    def inventories_by_id(
        self, scope: InventoryScope, sequences: Sequence[int]
    ) -> Mapping[int, Inventory]:
        with self._lock:
            self.reads += 1
            rows = [one for one in self.rows.values() if one.scope is scope]
            return {one.sequence: one for one in rows if one.sequence in sequences}

    def inventories_since(
        self, scope: InventoryScope, since_ms: int, limit: int
    ) -> Sequence[Inventory]:
        with self._lock:
            self.reads += 1
            rows = [one for one in self.rows.values() if one.scope is scope]
            return sorted((one for one in rows if _latest(one) >= since_ms), key=_latest)[-limit:]


def _latest(one: Inventory) -> int:
    return max(one.register_time, one.update_time, one.mapping_time)


def inventory_of(payload: bytes) -> Inventory:
    told = messages.InventorySource.FromString(payload)
    return Inventory(
        InventoryScope(told.scope),
        name=told.name,
        service_id=told.serviceId,
        uuid=told.uuid,
        is_address=told.isAddress,
        address_id=told.addressId,
        node_type=told.nodeType,
        detect_point=told.detectPoint,
        properties=told.properties,
        mapping_service_id=told.mappingServiceId,
        mapping_time=told.mappingTime,
        register_time=told.registerTime,
        heartbeat_time=told.heartbeatTime,
    )
