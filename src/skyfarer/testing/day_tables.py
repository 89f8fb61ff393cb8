"""Tables of days in memory, with the lease and its epoch: what a keeper deletes in tests."""

from __future__ import annotations

from collections.abc import Iterable

from skyfarer.base.clock import Clock
from skyfarer.base.errors import PermanentError
from skyfarer.oap.core.expiry import LEASE_S_MAX, DayTable, Lease, LeaseLostError


class MemoryTables:
    """One thread. `present` may be changed by hand; `broken` are models that cannot be dropped."""

    def __init__(self, clock: Clock, tables: Iterable[DayTable] = ()) -> None:
        self.clock = clock
        self.present = set(tables)
        self.broken: set[str] = set()
        self.dropped: list[tuple[str, DayTable]] = []
        """Each with its holder."""
        self._leases: dict[str, Lease] = {}

    def now_ms(self) -> int:
        return self.clock.now_ms()

    def day_tables(self) -> list[DayTable]:
        return sorted(self.present, key=lambda table: (table.model, table.day))

    def take_lease(self, name: str, holder: str, seconds: float) -> Lease | None:
        last, now_ms = self._leases.get(name), self.now_ms()
        until_ms = last.expires_ms if last is not None and last.holder != holder else 0
        if now_ms < until_ms <= now_ms + LEASE_S_MAX * 1000:
            return None
        epoch = 1 if last is None else last.epoch + (last.holder != holder)
        self._leases[name] = Lease(name, holder, epoch, now_ms + int(seconds * 1000))
        return self._leases[name]

    def last_lease(self, name: str) -> Lease | None:
        return self._leases.get(name)

    def drop(self, lease: Lease, table: DayTable) -> bool:
        last = self._leases.get(lease.name)
        if last is None or (last.holder, last.epoch) != (lease.holder, lease.epoch):
            raise LeaseLostError(f"the lease of epoch {lease.epoch} is no longer the newest")
        if last.expires_ms <= self.now_ms():
            raise LeaseLostError(f"the lease of epoch {lease.epoch} has expired")
        if table.model in self.broken:
            raise PermanentError(f"{table.model} is broken")
        there = table in self.present
        self.present.discard(table)
        self.dropped += [(lease.holder, table)] if there else []
        return there
