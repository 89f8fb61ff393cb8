"""The registry: one table a scope, which its stream declares, and the lock of the ids.

    <name>_inventory (id TEXT PRIMARY KEY, sequence INTEGER UNIQUE, …)   one row a thing
    register_lock    (id INTEGER PRIMARY KEY, sequence BIGINT)           the last id of a scope

Whoever registers locks the row of the scope before it looks which names are there: what it reads
then is what all others have committed, and nobody gives out an id until it has. An id is taken, its
row written and the batch's offset moved in one transaction. An id that is seen is stored; one taken
by a batch that was rolled back was never seen, and is given out again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Final

from skyfarer.oap.core.inventory import FIRST_ID, Inventory, InventoryScope, combine, row_id
from skyfarer.oap.core.storage import Heartbeat
from skyfarer.oap.core.streams.declaration import SEQUENCE
from skyfarer.oap.core.streams.inventories import INVENTORY_MODELS
from skyfarer.oap.storage import registry
from skyfarer.oap.storage.postgresql import copying
from skyfarer.oap.storage.postgresql.copying import Cursor, told
from skyfarer.oap.storage.registry import Rows

_LOCKS: Final = ", ".join(f"({scope.value}, {FIRST_ID - 1})" for scope in INVENTORY_MODELS)
DDL: Final = f"""
CREATE TABLE IF NOT EXISTS register_lock (id INTEGER PRIMARY KEY, sequence BIGINT);
INSERT INTO register_lock VALUES {_LOCKS} ON CONFLICT DO NOTHING;
"""
"""The lock of every scope, standing at the id before the first."""


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
        times = [column.name for column in model.columns if column.attribute in registry.CHANGES]
        latest = f"greatest({', '.join(times)})"
        query = f"{registry.query(model)} WHERE {latest} >= %s ORDER BY {latest} DESC LIMIT %s"
        with self._reading() as cursor:
            return _found(cursor, scope, query, [since_ms, limit])

    def inventories_found(
        self, scope: InventoryScope, keyword: str, offset: int, limit: int
    ) -> list[Inventory]:
        query = (
            f"{registry.query(INVENTORY_MODELS[scope])} WHERE strpos(lower(name), lower(%s)) > 0"
            f" ORDER BY {SEQUENCE.name} LIMIT %s OFFSET %s"
        )
        with self._reading() as cursor:
            return _found(cursor, scope, query, [told(keyword), limit, offset])


def register(cursor: Cursor, inventories: Iterable[Inventory]) -> list[Heartbeat]:
    """Combine them with their rows, or give them the next ids, inside the caller's transaction.

    Returns the signs of life of the plain instances among them whose service has a row: they are
    listed as instances of newer agents are.
    """
    alive: Rows = {}
    for scope, rows in registry.by_scope(map(_told, inventories)).items():
        if rows:
            _lock(cursor, scope)
        stored = _stored(cursor, scope, list(rows))
        known = {key: combine(stored[key], rows[key]) for key in stored}
        _update(
            cursor,
            scope,
            {key: row for key, row in known.items() if registry.differ(row, stored[key])},
        )
        fresh = {key: row for key, row in rows.items() if key not in stored}
        _insert(cursor, scope, fresh)
        if scope is InventoryScope.SERVICE_INSTANCE:
            alive = known | fresh
    instances = registry.plain(alive)
    owners = list({row.service_id for row in instances})
    services = _select(cursor, InventoryScope.SERVICE, SEQUENCE.name, owners)
    return registry.heartbeats(instances, services)


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
    query = f"{registry.query(INVENTORY_MODELS[scope])} WHERE {by} = ANY(%s)"
    return _found(cursor, scope, query, [list(keys)])


def _found(
    cursor: Cursor, scope: InventoryScope, query: str, parameters: Sequence[Any]
) -> list[Inventory]:
    return registry.read(scope, cursor.execute(query, parameters).fetchall())


def _update(cursor: Cursor, scope: InventoryScope, rows: Rows) -> None:
    if not rows:
        return
    model = INVENTORY_MODELS[scope]
    copying.bring(cursor, "registered", registry.as_table(model, rows))
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
    sequences = range(last - len(rows) + 1, last + 1)
    copying.bring(cursor, "registered", registry.as_table(model, rows, sequences))
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
