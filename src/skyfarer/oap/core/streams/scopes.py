"""SkyWalking's numbers of what a stream speaks of; those of inventories are `InventoryScope`."""

from __future__ import annotations

from enum import IntEnum


class Scope(IntEnum):
    ALL = 0  # of nothing in particular
    SERVICE = 1
    SERVICE_INSTANCE = 2
    ENDPOINT = 3
    SERVICE_RELATION = 4
    SERVICE_INSTANCE_RELATION = 5
    ENDPOINT_RELATION = 6
    SEGMENT = 12
    DATABASE_SLOW_STATEMENT = 18
    PROFILE_TASK = 26
    NETWORK_ADDRESS_ALIAS = 31
    UI_TEMPLATE = 32
    LOG = 41
    EVENT = 43
    TAG_AUTOCOMPLETE = 50
    CACHE_SLOW_ACCESS = 56
    SERVICE_DATABASE_SLOW_STATEMENT = 91
