"""Streams: every kind of thing that is stored, declared in one table.

SkyWalking finds its streams by scanning classes for `@Stream(name, scope, builder, processor)` and
`@Column`. Here both are rows of `STREAMS`, which nothing fills at import time, so a Spark worker
sees the same table as the program. A storage provider makes its tables from `model(stream)` and
spells types its own way; it needs to know no stream by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from skyfarer.oap.core.inventory import Inventory, InventoryScope
from skyfarer.oap.core.slow import Slow

TEXT_CHARS_MAX = 200
ROW_ID_CHARS_MAX = 512
JSON_CHARS_MAX = 50_000
SEGMENT: Final = "segment"
LOG: Final = "log"
EVENT: Final = "event"
RECORDS: Final = frozenset({SEGMENT, LOG, EVENT, *(slow.value for slow in Slow)})
"""The streams beside metrics that can be left out: nothing is stored of them, and all else is made
as ever."""


class Processor(Enum):
    """What becomes of a stream's records on their way to storage."""

    INVENTORY = "inventory"  # distinct, combined with its row, given an id
    METRICS = "metrics"  # added up per time bucket
    RECORD = "record"  # kept whole
    TOP_N = "top_n"  # the slowest of a while


class ColumnType(Enum):
    BOOLEAN = "boolean"
    INT = "int"  # 32 bits
    LONG = "long"  # 64 bits
    TEXT = "text"


@dataclass(frozen=True)
class Column:
    """`field` is the builder's name of it; `length` bounds a text, in characters, for a provider
    that must declare it: whoever makes the records cuts them, for a row id cut later would no
    longer be found."""

    name: str
    type: ColumnType
    field: str
    length: int = TEXT_CHARS_MAX


@dataclass(frozen=True)
class Stream:
    """`name` is that of its table. `builder` is what a row becomes in the program."""

    name: str
    scope: int
    builder: type
    processor: Processor
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Model:
    """A table: a row id, and the columns beside it in order."""

    name: str
    columns: tuple[Column, ...]


SEQUENCE = Column("sequence", ColumnType.INT, "sequence")
_NAME = Column("name", ColumnType.TEXT, "name")
_SERVICE_ID = Column("service_id", ColumnType.INT, "service_id")
_IS_ADDRESS = Column("is_address", ColumnType.BOOLEAN, "is_address")
_ADDRESS_ID = Column("address_id", ColumnType.INT, "address_id")
_NODE_TYPE = Column("node_type", ColumnType.INT, "node_type")
_PROPERTIES = Column("properties", ColumnType.TEXT, "properties", JSON_CHARS_MAX)

_COLUMNS_OF_ALL: Mapping[Processor, tuple[Column, ...]] = {
    Processor.INVENTORY: (
        SEQUENCE,
        Column("register_time", ColumnType.LONG, "register_time"),
        Column("heartbeat_time", ColumnType.LONG, "heartbeat_time"),
        Column("last_update_time", ColumnType.LONG, "update_time"),
    ),
}


def _inventory(name: str, scope: InventoryScope, *columns: Column) -> Stream:
    return Stream(name, scope, Inventory, Processor.INVENTORY, columns)


STREAMS: tuple[Stream, ...] = (
    _inventory(
        "service_inventory",
        InventoryScope.SERVICE,
        *(_NAME, _IS_ADDRESS, _ADDRESS_ID, _NODE_TYPE),
        Column("mapping_service_id", ColumnType.INT, "mapping_service_id"),
        Column("mapping_last_update_time", ColumnType.LONG, "mapping_time"),
        _PROPERTIES,
    ),
    _inventory(
        "service_instance_inventory",
        InventoryScope.SERVICE_INSTANCE,
        Column("instance_uuid", ColumnType.TEXT, "uuid"),
        *(_NAME, _SERVICE_ID, _IS_ADDRESS, _ADDRESS_ID, _PROPERTIES),
    ),
    _inventory(
        "endpoint_inventory",
        InventoryScope.ENDPOINT,
        *(_SERVICE_ID, _NAME, Column("detect_point", ColumnType.INT, "detect_point")),
    ),
    _inventory("network_address_inventory", InventoryScope.NETWORK_ADDRESS, _NAME, _NODE_TYPE),
)


def model(stream: Stream) -> Model:
    """Its own columns, and before them those of all streams of its processor."""
    return Model(stream.name, (*_COLUMNS_OF_ALL.get(stream.processor, ()), *stream.columns))


INVENTORY_MODELS: Mapping[InventoryScope, Model] = {
    InventoryScope(stream.scope): model(stream)
    for stream in STREAMS
    if stream.processor is Processor.INVENTORY
}
