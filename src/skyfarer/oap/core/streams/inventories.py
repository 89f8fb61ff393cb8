"""Inventories: what agents of the v2 protocol have registered (`oap.core.inventory`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from skyfarer.oap.core.inventory import InventoryScope
from skyfarer.oap.core.streams.declaration import (
    Column,
    ColumnType,
    Model,
    Processor,
    Stream,
    model,
)

_NAME: Final = Column("name", ColumnType.TEXT)
_SERVICE_ID: Final = Column("service_id", ColumnType.INT)
_IS_ADDRESS: Final = Column("is_address", ColumnType.BOOLEAN)
_ADDRESS_ID: Final = Column("address_id", ColumnType.INT)
_NODE_TYPE: Final = Column("node_type", ColumnType.INT)
_PROPERTIES: Final = Column("properties", ColumnType.TEXT)


def _inventory(name: str, scope: InventoryScope, *columns: Column) -> Stream:
    return Stream(name, scope, Processor.INVENTORY, columns=columns)


INVENTORIES: Final = (
    _inventory(
        "service_inventory",
        InventoryScope.SERVICE,
        *(_NAME, _IS_ADDRESS, _ADDRESS_ID, _NODE_TYPE),
        Column("mapping_service_id", ColumnType.INT),
        Column("mapping_last_update_time", ColumnType.LONG, field="mapping_time"),
        _PROPERTIES,
    ),
    _inventory(
        "service_instance_inventory",
        InventoryScope.SERVICE_INSTANCE,
        Column("instance_uuid", ColumnType.TEXT, field="uuid"),
        *(_NAME, _SERVICE_ID, _IS_ADDRESS, _ADDRESS_ID, _PROPERTIES),
    ),
    _inventory(
        "endpoint_inventory",
        InventoryScope.ENDPOINT,
        *(_SERVICE_ID, _NAME, Column("detect_point", ColumnType.INT)),
    ),
    _inventory("network_address_inventory", InventoryScope.NETWORK_ADDRESS, _NAME, _NODE_TYPE),
)

INVENTORY_MODELS: Final[Mapping[InventoryScope, Model]] = {
    InventoryScope(stream.scope): model(stream) for stream in INVENTORIES
}
