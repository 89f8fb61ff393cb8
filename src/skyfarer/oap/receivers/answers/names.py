"""The registry's inventories as the answers see them: in the cache, then in storage.

Only what storage has is ever cached, so an id is never told before it is durable. What storage did
not have is not asked of it again until it changed, or a second has passed: another node may have
changed it. What is cached follows storage: rows that changed lately, whichever node wrote them, are
read every few seconds, and put in the place of those that are here.

A name without an id is claimed by the first who asks for it, and only the one who claims it hands
it to the queue. A claim ends by itself, since the record may have been lost on its way; a second
record of one name is harmless.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from skyfarer.base.clock import Clock
from skyfarer.oap.core.inventory import Inventory, InventoryReader, InventoryScope, row_id
from skyfarer.oap.receivers.answers.lru import Lru

CACHED_MAX: Final[Mapping[InventoryScope, int]] = {
    InventoryScope.SERVICE: 10_000,
    InventoryScope.SERVICE_INSTANCE: 20_000,
    InventoryScope.ENDPOINT: 50_000,
    InventoryScope.NETWORK_ADDRESS: 20_000,
}
WANTED_MAX: Final = 20_000
WANTED_S: Final = 60.0
CLAIMS_MAX: Final = 50_000
CLAIM_S: Final = 10.0
ABSENT_S: Final = 1.0
REFRESH_S: Final = 3.0
RECENT_S: Final = 60.0  # what changed so lately is read again: clocks of nodes may differ
READ_MAX: Final = 1000  # rows asked of storage at once

Key = tuple[InventoryScope, str | int]  # by row id, or by id
T = TypeVar("T")
N = TypeVar("N", str, int)


class Names:
    """Any thread. Blocks on storage, never while it holds the lock."""

    def __init__(self, storage: InventoryReader, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock
        self._lock = threading.Lock()
        self._rows = {scope: Lru[str, Inventory](size) for scope, size in CACHED_MAX.items()}
        self._ids = {scope: Lru[int, str](size) for scope, size in CACHED_MAX.items()}
        self._absent = Lru[Key, tuple[int, float]](WANTED_MAX)
        self._claims = Lru[object, float](CLAIMS_MAX)
        self._wanted = Lru[tuple[InventoryScope, str], float](WANTED_MAX)
        self._changes = 0
        self._refreshed_s = clock.monotonic_s()

    def find(self, scope: InventoryScope, row_ids: Iterable[str]) -> dict[str, Inventory]:
        """Row id → inventory, those that have an id."""
        found, missing = {}, []
        now_s = self._clock.monotonic_s()
        with self._lock:
            changes = self._changes
            for row in dict.fromkeys(row_ids):
                inventory = self._rows[scope].get(row)
                if inventory is not None:
                    found[row] = inventory
                elif not self._is_absent((scope, row), now_s):
                    missing.append(row)
        return found | self._read(scope, missing, changes)

    def read(self, scope: InventoryScope, row_ids: Sequence[str]) -> dict[str, Inventory]:
        """As storage has them now, for what may change of an inventory."""
        return self._read(scope, list(dict.fromkeys(row_ids)), self._changes)

    def find_by_id(self, scope: InventoryScope, ids: Iterable[int]) -> dict[int, Inventory]:
        """Id → inventory, those that exist."""
        found, missing = {}, []
        now_s = self._clock.monotonic_s()
        with self._lock:
            changes = self._changes
            for number in dict.fromkeys(ids):
                row = self._ids[scope].get(number)
                inventory = None if row is None else self._rows[scope].get(row)
                if inventory is not None:
                    found[number] = inventory
                elif number > 0 and not self._is_absent((scope, number), now_s):
                    missing.append(number)
        for some in _parts(missing):
            stored = self._storage.inventories_by_id(scope, some)
            found.update(stored)
            self._remember(scope, some, stored, changes)
        return found

    def wanted(self, inventories: Iterable[Inventory]) -> tuple[Inventory, ...]:
        """Of those without an id, the ones nobody has handed to the queue of late: the caller's to
        hand over. Storage is watched for the ids of all of them."""
        until_s = self._clock.monotonic_s() + WANTED_S
        with self._lock:
            claimed = [one for one in inventories if self._claim((one.scope, row_id(one)), CLAIM_S)]
            for one in claimed:
                self._wanted.put((one.scope, row_id(one)), until_s)
        return tuple(claimed)

    def claim(self, what: object, for_s: float = CLAIM_S) -> bool:
        """True once in so long for the same thing."""
        with self._lock:
            return self._claim(what, for_s)

    def changed(self) -> None:
        """Storage has changed, or may have: looks for the ids of all that was wanted, in few
        reads, and at times for what changed of the rows that are cached."""
        now_s = self._clock.monotonic_s()
        with self._lock:
            self._changes += 1
            changes = self._changes
            for key, until_s in list(self._wanted.items()):
                if until_s <= now_s:
                    self._wanted.drop(key)
            wanted = [key for key, _ in self._wanted.items()]
            refresh = now_s - self._refreshed_s >= REFRESH_S
            self._refreshed_s = now_s if refresh else self._refreshed_s
        for scope in InventoryScope:
            self._read(scope, [row for of, row in wanted if of is scope], changes)
            if refresh:
                self._refresh(scope)

    def forget(self) -> None:
        """Whoever was to hand the claimed names over is gone: they are to be claimed again."""
        with self._lock:
            self._claims.clear()
            self._wanted.clear()

    def _refresh(self, scope: InventoryScope) -> None:
        """Only what is here already: a crowd of new names must not push out what is in use."""
        if not len(self._rows[scope]):
            return
        since_ms = self._clock.now_ms() - int(RECENT_S * 1000)
        recent = self._storage.inventories_since(scope, since_ms, READ_MAX)
        with self._lock:
            for inventory in recent:
                if row_id(inventory) in self._rows[scope]:
                    self._cache(inventory)

    def _read(
        self, scope: InventoryScope, rows: Sequence[str], changes: int
    ) -> dict[str, Inventory]:
        found: dict[str, Inventory] = {}
        for some in _parts(rows):
            stored = self._storage.inventories(scope, some)
            found.update(stored)
            self._remember(scope, some, stored, changes)
        return found

    def _remember(
        self, scope: InventoryScope, asked: Sequence[N], stored: Mapping[N, Inventory], changes: int
    ) -> None:
        now_s = self._clock.monotonic_s()
        with self._lock:
            for each in asked:
                inventory = stored.get(each)
                if inventory is None:
                    self._absent.put((scope, each), (changes, now_s))
                else:
                    self._cache(inventory)

    def _cache(self, inventory: Inventory) -> None:
        """Without its properties, which no answer needs."""
        scope, row = inventory.scope, row_id(inventory)
        self._rows[scope].put(row, replace(inventory, properties=""))
        self._ids[scope].put(inventory.sequence, row)
        self._absent.drop((scope, row))
        self._wanted.drop((scope, row))

    def _is_absent(self, key: Key, now_s: float) -> bool:
        changes, at_s = self._absent.get(key) or (-1, 0.0)
        return changes == self._changes and now_s - at_s < ABSENT_S

    def _claim(self, what: object, for_s: float) -> bool:
        now_s = self._clock.monotonic_s()
        until_s = self._claims.get(what)
        if until_s is not None and now_s < until_s:
            return False
        self._claims.put(what, now_s + for_s)
        return True


def _parts(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    return (rows[start : start + READ_MAX] for start in range(0, len(rows), READ_MAX))
