"""The registry of the v2 protocol: names that were given ids.

An inventory is one thing of one scope: a service, an instance, an endpoint, a network address. It
is told apart from others of its scope by its row id, and known to agents by its `sequence`, the
number it was given when it was first stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol


class InventoryScope(IntEnum):
    NETWORK_ADDRESS = 7
    SERVICE = 14
    SERVICE_INSTANCE = 15
    ENDPOINT = 16


@dataclass(frozen=True)
class Inventory:
    """`sequence` is its id, 0 while it has none. Times are epoch milliseconds."""

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
    sequence: int = 0


class InventoryReader(Protocol):
    """Any thread; blocks on storage. What it returns is durable."""

    def inventories(self, scope: InventoryScope, row_ids: Sequence[str]) -> Mapping[str, Inventory]:
        """Row id → inventory, those that have an id."""

    def inventories_by_id(
        self, scope: InventoryScope, sequences: Sequence[int]
    ) -> Mapping[int, Inventory]:
        """Id → inventory, those that exist."""
