"""The registry's tables: one a scope, made from its declared stream, and the lock of the ids.

    <name>_inventory (id TEXT PRIMARY KEY, sequence INTEGER UNIQUE, …)   one row a thing
    register_lock    (id INTEGER PRIMARY KEY, sequence BIGINT)           the last id of a scope

Whoever registers locks the row of the scope before it looks which names are there: what it reads
then is what all others have committed, and nobody gives out an id until it has. An id is taken, its
row written and the batch's offset moved in one transaction. An id that is seen is stored; one taken
by a batch that was rolled back was never seen, and is given out again.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import pyarrow as pa

from skyfarer.oap.core.inventory import FIRST_ID, Inventory, InventoryScope, combine, row_id
from skyfarer.oap.core.layers import Layer
from skyfarer.oap.core.storage import Heartbeat
from skyfarer.oap.core.streams import INVENTORY_MODELS, SEQUENCE, ColumnType, Model
from skyfarer.oap.core.time_bucket import MINUTE_MS
from skyfarer.oap.storage.postgresql import copying
from skyfarer.oap.storage.postgresql.copying import Cursor, told
from skyfarer.oap.storage.postgresql.schema import TEXT

_SQL_TYPES = {
    ColumnType.BOOLEAN: "BOOLEAN",
    ColumnType.INT: "INTEGER",
    ColumnType.LONG: "BIGINT",
    ColumnType.TEXT: TEXT,
}
_ARROW_TYPES = {
    ColumnType.BOOLEAN: pa.bool_(),
    ColumnType.INT: pa.int32(),
    ColumnType.LONG: pa.int64(),
    ColumnType.TEXT: pa.string(),
}
_LATEST_MS = 253_402_128_000_000  # 9999-12-30: later times have no bucket in every zone
_CHANGES = ("register_time", "update_time", "mapping_time")

Rows = Mapping[str, Inventory]


class Inventories(ABC):
    """InventoryReader. Every call reads one snapshot, beside whatever is being written."""

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Cursor]: ...

    def inventories(self, scope: InventoryScope, row_ids: Sequence[str]) -> Rows:
        with self._reading() as cursor:
            found = _stored(cursor, scope, row_ids)
        return {asked: found[key] for asked in row_ids if (key := told(asked)) in found}

    def inventories_by_id(
        self, scope: InventoryScope, sequences: Sequence[int]
    ) -> Mapping[int, Inventory]:
        with self._reading() as cursor:
            found = _select(cursor, scope, SEQUENCE.name, sequences)
        return {inventory.sequence: inventory for inventory in found}

    def inventories_since(
        self, scope: InventoryScope, since_ms: int, limit: int
    ) -> list[Inventory]:
        model = INVENTORY_MODELS[scope]
        times = [column.name for column in model.columns if column.field in _CHANGES]
        latest = f"greatest({', '.join(times)})"
        query = f"{_query(model)} WHERE {latest} >= %s ORDER BY {latest} DESC LIMIT %s"
        with self._reading() as cursor:
            return _found(cursor, scope, query, [since_ms, limit])


def ddl() -> str:
    """The tables, and the lock of every scope standing at the id before the first."""
    statements = [_table(model) for model in INVENTORY_MODELS.values()]
    statements.append(
        "CREATE TABLE IF NOT EXISTS register_lock (id INTEGER PRIMARY KEY, sequence BIGINT)"
    )
    statements += [
        f"INSERT INTO register_lock VALUES ({scope.value}, {FIRST_ID - 1}) ON CONFLICT DO NOTHING"
        for scope in INVENTORY_MODELS
    ]
    return ";\n".join(statements) + ";"


def register(cursor: Cursor, inventories: Iterable[Inventory]) -> list[Heartbeat]:
    """Combine them with their rows, or give them the next ids, inside the caller's transaction.

    Returns the signs of life of the plain instances among them whose service has a row: they are
    listed as instances of newer agents are.
    """
    alive: Rows = {}
    for scope, rows in _by_scope(inventories).items():
        if rows:
            _lock(cursor, scope)
        stored = _stored(cursor, scope, list(rows))
        known = {key: combine(stored[key], rows[key]) for key in stored}
        _update(
            cursor, scope, {key: row for key, row in known.items() if _differ(row, stored[key])}
        )
        fresh = {key: row for key, row in rows.items() if key not in stored}
        _insert(cursor, scope, fresh)
        if scope is InventoryScope.SERVICE_INSTANCE:
            alive = known | fresh
    return _heartbeats(cursor, alive)


def _table(model: Model) -> str:
    columns = [f"{column.name} {_SQL_TYPES[column.type]} NOT NULL" for column in model.columns]
    return (
        f"CREATE TABLE IF NOT EXISTS {model.name} "
        f"(id {TEXT} PRIMARY KEY, {', '.join(columns)}, UNIQUE ({SEQUENCE.name}))"
    )


def _by_scope(inventories: Iterable[Inventory]) -> Mapping[InventoryScope, dict[str, Inventory]]:
    """Per scope one a row id; services come first, for instances need their names."""
    rows: dict[InventoryScope, dict[str, Inventory]] = {scope: {} for scope in INVENTORY_MODELS}
    for inventory in map(_told, inventories):
        of_scope, key = rows[inventory.scope], row_id(inventory)
        of_scope[key] = combine(of_scope[key], inventory) if key in of_scope else inventory
    return rows


def _told(inventory: Inventory) -> Inventory:
    """As a text of PostgreSQL can say it; its row id too."""
    return replace(
        inventory,
        name=told(inventory.name),
        uuid=told(inventory.uuid),
        properties=told(inventory.properties),
    )


def _stored(cursor: Cursor, scope: InventoryScope, keys: Sequence[str]) -> Rows:
    return {row_id(found): found for found in _select(cursor, scope, "id", keys)}


def _select(cursor: Cursor, scope: InventoryScope, by: str, keys: Sequence[Any]) -> list[Inventory]:
    if not keys:
        return []
    query = f"{_query(INVENTORY_MODELS[scope])} WHERE {by} = ANY(%s)"
    return _found(cursor, scope, query, [list(keys)])


def _query(model: Model) -> str:
    return f"SELECT {', '.join(column.name for column in model.columns)} FROM {model.name}"


def _found(
    cursor: Cursor, scope: InventoryScope, query: str, parameters: Sequence[Any]
) -> list[Inventory]:
    fields = [column.field for column in INVENTORY_MODELS[scope].columns]
    rows = cursor.execute(query, parameters).fetchall()
    return [Inventory(scope, **dict(zip(fields, row, strict=True))) for row in rows]


def _differ(row: Inventory, stored: Inventory) -> bool:
    """In what a row keeps; whatever else was said is said in vain."""
    fields = [column.field for column in INVENTORY_MODELS[row.scope].columns]
    return any(getattr(row, field) != getattr(stored, field) for field in fields)


def _update(cursor: Cursor, scope: InventoryScope, rows: Rows) -> None:
    if not rows:
        return
    model = INVENTORY_MODELS[scope]
    _bring(cursor, model, rows)
    changes = [
        f"{column.name} = registered.{column.name}"
        for column in model.columns
        if column != SEQUENCE
    ]
    cursor.execute(
        f"""UPDATE {model.name} SET {", ".join(changes)}
        FROM pg_temp.registered WHERE {model.name}.id = registered.id""",
        prepare=False,
    )


def _insert(cursor: Cursor, scope: InventoryScope, rows: Rows) -> None:
    if not rows:
        return
    model = INVENTORY_MODELS[scope]
    last = _take(cursor, scope, len(rows))
    _bring(cursor, model, rows, range(last - len(rows) + 1, last + 1))
    columns = ", ".join(("id", *(column.name for column in model.columns)))
    cursor.execute(
        f"INSERT INTO {model.name} ({columns}) SELECT {columns} FROM pg_temp.registered",
        prepare=False,
    )


def _lock(cursor: Cursor, scope: InventoryScope) -> None:
    cursor.execute("SELECT FROM register_lock WHERE id = %s FOR UPDATE", [scope.value])


def _take(cursor: Cursor, scope: InventoryScope, count: int) -> int:
    """The last of so many new ids of the scope."""
    query = "UPDATE register_lock SET sequence = sequence + %s WHERE id = %s RETURNING sequence"
    ((last,),) = cursor.execute(query, [count, scope.value]).fetchall()
    return int(last)


def _bring(
    cursor: Cursor,
    model: Model,
    rows: Rows,
    sequences: Iterable[int] | None = None,
) -> None:
    """As the temporary table `registered`, with these ids or with their own."""
    columns = {"id": pa.array(list(rows), pa.string())}
    for column in model.columns:
        values: Iterable[Any] = [getattr(row, column.field) for row in rows.values()]
        if column == SEQUENCE and sequences is not None:
            values = sequences
        columns[column.name] = pa.array(values, _ARROW_TYPES[column.type])
    copying.bring(cursor, "registered", pa.table(columns))


def _heartbeats(cursor: Cursor, alive: Rows) -> list[Heartbeat]:
    plain = [
        row
        for row in alive.values()
        if not row.is_address and row.name and 0 < row.heartbeat_time < _LATEST_MS
    ]
    owners = list({row.service_id for row in plain})
    found = _select(cursor, InventoryScope.SERVICE, SEQUENCE.name, owners)
    names = {owner.sequence: owner.name for owner in found if not owner.is_address}
    return [
        Heartbeat(
            service=names[row.service_id],
            instance=row.name,
            layer=Layer.GENERAL.name,
            minute=row.heartbeat_time // MINUTE_MS,
            properties=_attributes(row.properties),
        )
        for row in plain
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
