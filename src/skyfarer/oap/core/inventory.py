"""The registry of the v2 protocol: names that were given ids.

An inventory is one thing of one scope: a service, an instance, an endpoint, a network address. It
is told apart from others of its scope by its row id, and known to agents by its `sequence`, the
number it was given when it was first stored.

Rows, row ids and equality are those of SkyWalking 6.2.0. Its `combine` is not: it lets the record
that came last have its way, however old it is, and calls every row changed. Here the order and the
repetition of records do not matter (see `combine`), and a row that says the same is not written
again. For that a row also keeps, as 7.0 does, when its node type and properties were told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

FIRST_ID = 2
"""The first id of a scope: 0 says none, and 1 is the user's."""
AT_HEARTBEAT = -1


class InventoryScope(IntEnum):
    NETWORK_ADDRESS = 7
    SERVICE = 14
    SERVICE_INSTANCE = 15
    ENDPOINT = 16


@dataclass(frozen=True)
class Inventory:
    """`sequence` is its id, 0 while it has none. Times are epoch milliseconds.

    One with neither properties nor node type says nothing of them: a mere sign of life. What it
    does say was told at its heartbeat, unless `update_time` says when; 0 where it says nothing.
    """

    scope: InventoryScope
    name: str = ""
    service_id: int = 0
    uuid: str = ""  # of an instance
    is_address: bool = False
    address_id: int = 0
    node_type: int = 0
    detect_point: int = 0  # of an endpoint
    properties: str = ""  # JSON; empty says nothing of them
    mapping_service_id: int = 0  # whose address it turned out to be
    mapping_time: int = 0
    register_time: int = 0
    heartbeat_time: int = 0
    update_time: int = AT_HEARTBEAT  # when node type and properties were told
    sequence: int = 0

    def __post_init__(self) -> None:
        if self.update_time == AT_HEARTBEAT:
            told = max(self.heartbeat_time, 0) if _says(self) else 0
            object.__setattr__(self, "update_time", told)


IDENTITY: Mapping[InventoryScope, tuple[str, ...]] = {
    InventoryScope.NETWORK_ADDRESS: ("name",),
    InventoryScope.SERVICE: ("name", "is_address", "address_id"),
    InventoryScope.SERVICE_INSTANCE: ("service_id", "uuid", "is_address", "address_id"),
    InventoryScope.ENDPOINT: ("service_id", "name", "detect_point"),
}
"""The fields that make two inventories of a scope equal."""


def identity(inventory: Inventory) -> tuple[object, ...]:
    """Its scope and what it is equal by. Equal ones have one row id; so do two that differ only in
    what their row id leaves out (the name of an address's service, the address id of what is none).
    """
    return inventory.scope, *(getattr(inventory, name) for name in IDENTITY[inventory.scope])


def row_id(inventory: Inventory) -> str:
    """The key of its row, among those of its scope; a plain one never has the key of an address."""
    if inventory.scope is InventoryScope.NETWORK_ADDRESS:
        return inventory.name
    if inventory.scope is InventoryScope.ENDPOINT:
        return f"{inventory.service_id}_{inventory.name}_{inventory.detect_point}"
    service = inventory.scope is InventoryScope.SERVICE
    owner = "" if service else f"{inventory.service_id}_"
    if inventory.is_address:
        return f"{owner}1_{inventory.address_id}"
    return f"{owner}{inventory.name if service else inventory.uuid}_0_0"


def combine(stored: Inventory, new: Inventory) -> Inventory:
    """What both say of one row. It has changed when the result is not equal to `stored`.

    Commutative, associative and idempotent for any inventories of one row id, which is then the
    row id of the result too; of different rows the result means nothing. In the field:

        heartbeat_time            the latest
        register_time             the earliest that is told (0 is not)
        node_type, properties     told together: those of the latest update_time that says any;
                                  where times are equal, the greater properties, then type
        mapping_service_id, _time the latest mapping that names a service, then the greater id
        sequence and all others   the greater; equal ones of one identity stay as they are
    """
    told = max(stored, new, key=_told)
    mapped = max(stored, new, key=_mapped)
    registered = [at for at in (stored.register_time, new.register_time) if at]
    return Inventory(
        scope=stored.scope,
        name=max(stored.name, new.name),
        service_id=max(stored.service_id, new.service_id),
        uuid=max(stored.uuid, new.uuid),
        is_address=stored.is_address or new.is_address,
        address_id=max(stored.address_id, new.address_id),
        node_type=told.node_type,
        detect_point=max(stored.detect_point, new.detect_point),
        properties=told.properties,
        mapping_service_id=mapped.mapping_service_id,
        mapping_time=mapped.mapping_time,
        register_time=min(registered, default=0),
        heartbeat_time=max(stored.heartbeat_time, new.heartbeat_time),
        update_time=told.update_time,
        sequence=max(stored.sequence, new.sequence),
    )


def _says(inventory: Inventory) -> bool:
    return inventory.properties != "" or inventory.node_type != 0


def _told(inventory: Inventory) -> tuple[bool, int, str, int]:
    said = inventory.properties, inventory.node_type
    return _says(inventory), inventory.update_time, *said


def _mapped(inventory: Inventory) -> tuple[bool, int, int]:
    mapping = inventory.mapping_service_id
    return mapping != 0, inventory.mapping_time, mapping


class InventoryReader(Protocol):
    """Any thread; blocks on storage. What it returns is durable."""

    def inventories(self, scope: InventoryScope, row_ids: Sequence[str]) -> Mapping[str, Inventory]:
        """Row id → inventory, those that have an id."""

    def inventories_by_id(
        self, scope: InventoryScope, sequences: Sequence[int]
    ) -> Mapping[int, Inventory]:
        """Id → inventory, those that exist."""

    def inventories_since(
        self, scope: InventoryScope, since_ms: int, limit: int
    ) -> Sequence[Inventory]:
        """Registered, told or mapped at that time or later, the latest of them."""

    def inventories_found(
        self, scope: InventoryScope, keyword: str, offset: int, limit: int
    ) -> Sequence[Inventory]:
        """Those whose name contains the keyword, in any case, by id. An empty one is in all."""
