"""Inventories on their way to and from a storage: what every provider does alike."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from skyfarer.oap.core.inventory import Inventory, InventoryScope, combine, row_id
from skyfarer.oap.core.layers import Layer
from skyfarer.oap.core.storage import Heartbeat
from skyfarer.oap.core.streams.declaration import SEQUENCE, ColumnType, Model
from skyfarer.oap.core.streams.inventories import INVENTORY_MODELS
from skyfarer.oap.core.time_bucket import MINUTE_MS

CHANGES: Final = ("register_time", "update_time", "mapping_time")
_ARROW_TYPES: Final = {
    ColumnType.BOOLEAN: pa.bool_(),
    ColumnType.INT: pa.int32(),
    ColumnType.LONG: pa.int64(),
    ColumnType.TEXT: pa.string(),
}
_LATEST_MS: Final = 253_402_128_000_000  # 9999-12-30: later times have no bucket in every zone

Rows = Mapping[str, Inventory]


def by_scope(inventories: Iterable[Inventory]) -> Mapping[InventoryScope, dict[str, Inventory]]:
    """Per scope one a row id; services come first, for instances need their names."""
    rows: dict[InventoryScope, dict[str, Inventory]] = {scope: {} for scope in INVENTORY_MODELS}
    for inventory in inventories:
        of_scope, key = rows[inventory.scope], row_id(inventory)
        of_scope[key] = combine(of_scope[key], inventory) if key in of_scope else inventory
    return rows


def differ(row: Inventory, stored: Inventory) -> bool:
    """In what a row keeps; whatever else was said is said in vain."""
    fields = [column.attribute for column in INVENTORY_MODELS[row.scope].columns]
    return any(getattr(row, field) != getattr(stored, field) for field in fields)


def query(model: Model) -> str:
    return f"SELECT {', '.join(column.name for column in model.columns)} FROM {model.name}"


def read(scope: InventoryScope, rows: Iterable[Sequence[Any]]) -> list[Inventory]:
    """Of rows that `query` has asked for."""
    fields = [column.attribute for column in INVENTORY_MODELS[scope].columns]
    return [Inventory(scope, **dict(zip(fields, row, strict=True))) for row in rows]


def as_table(model: Model, rows: Rows, sequences: Iterable[int] | None = None) -> pa.Table:
    """With these ids, or with their own."""
    columns = {"id": pa.array(list(rows), pa.string())}
    for column in model.columns:
        values: Iterable[Any] = [getattr(row, column.attribute) for row in rows.values()]
        if column == SEQUENCE and sequences is not None:
            values = sequences
        columns[column.name] = pa.array(values, _ARROW_TYPES[column.type])
    return pa.table(columns)


def plain(alive: Rows) -> list[Inventory]:
    """The instances that newer agents would list too."""
    return [
        row
        for row in alive.values()
        if not row.is_address and row.name and 0 < row.heartbeat_time < _LATEST_MS
    ]


def heartbeats(instances: Iterable[Inventory], owners: Iterable[Inventory]) -> list[Heartbeat]:
    """Of instances whose service is among the owners."""
    names = {owner.sequence: owner.name for owner in owners if not owner.is_address}
    return [
        Heartbeat(
            service=names[row.service_id],
            instance=row.name,
            layer=Layer.GENERAL.name,
            minute=row.heartbeat_time // MINUTE_MS,
            properties=_attributes(row.properties),
        )
        for row in instances
        if row.service_id in names
    ]


def _attributes(properties: str) -> dict[str, str] | None:
    """The properties as texts. What is no JSON object has none to show, and must not stop the
    batch: it stays in its row as it was told."""
    try:
        pairs = json.loads(properties)
    except (ValueError, RecursionError):
        return None
    if not isinstance(pairs, dict):
        return None
    return {key: text if isinstance(text, str) else json.dumps(text) for key, text in pairs.items()}
