"""An inventory as a record of the ingest queue."""

from __future__ import annotations

from skyfarer.oap.core.inventory import Inventory
from skyfarer.wire.messages import inventory as messages
from skyfarer.wire.rpc import Kind

KIND = int(Kind.INVENTORY)


def record(inventory: Inventory) -> bytes:
    """Without its id, which only storage gives."""
    return messages.InventorySource(
        scope=int(inventory.scope),
        name=inventory.name,
        serviceId=inventory.service_id,
        uuid=inventory.uuid,
        isAddress=inventory.is_address,
        addressId=inventory.address_id,
        nodeType=inventory.node_type,
        detectPoint=inventory.detect_point,
        properties=inventory.properties,
        mappingServiceId=inventory.mapping_service_id,
        mappingTime=inventory.mapping_time,
        registerTime=inventory.register_time,
        heartbeatTime=inventory.heartbeat_time,
    ).SerializeToString()
