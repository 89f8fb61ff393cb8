"""Several nodes, each with a keeper of its own, over the tables of one storage.

A period is one run of each, in any order, at one moment: shorter than a lease. Before each run
something has expired, so that whoever believes that it is its turn, and is let, deletes. If one
has, all find at their next look that everything is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import count
from random import Random
from typing import Protocol

from skyfarer.oap.core.cluster import Node
from skyfarer.oap.core.expiry import DayTable, Kept, Retention
from skyfarer.oap.ttl.keeper import Keeper, KeeperSettings
from skyfarer.oap.ttl.policy import plan
from skyfarer.oap.ttl.sight import Sight
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.clock import HandClock
from skyfarer.testing.day_tables import MemoryTables

NOW = int(datetime(2026, 11, 15, 12, tzinfo=UTC).timestamp() * 1000)
PERIOD_S = 60.0
DAYS = Retention(3, 7)
EXPIRED = 20261101
LIVE = [DayTable("segment", day, Kept.RECORD) for day in (20261113, 20261114, 20261115)]


class Told:
    """A coordinator that says what it is told to say."""

    def __init__(self, nodes: Sequence[Node] = ()) -> None:
        self.listed = list(nodes)

    def start(self) -> None:
        return

    def stop(self, timeout_s: float) -> None:
        return

    def register(self, node: Node) -> None:
        raise NotImplementedError(node)

    def nodes(self) -> list[Node]:
        return list(self.listed)

    def watch(self, told: Callable[[list[Node]], None]) -> None:
        raise NotImplementedError(told)


class Deleting(Protocol):
    def deletes(self) -> bool:
        """One run; whether it has dropped anything."""

    def looks(self) -> None:
        """That there is nothing left that has expired."""

    def alarmed(self) -> bool:
        """Whether its health says that nothing is deleted."""


class Ours:
    """A node as it is."""

    def __init__(self, name: str, coordinator: Told, tables: MemoryTables) -> None:
        self.registry, self.health = Registry(), Health()
        self.sight = Sight(DAYS, PERIOD_S, self.registry, self.health, tables.clock)
        self.holder = name
        self.keeper = Keeper(
            KeeperSettings(DAYS, PERIOD_S, name),
            *(tables, coordinator, self.sight, self.registry, tables.clock),
        )

    def deletes(self) -> bool:
        return bool(self.keeper.run().dropped)

    def looks(self) -> None:
        self.sight.saw(self.keeper.planned())

    def alarmed(self) -> bool:
        return bool(self.sight.ailment())


class Original:
    """The control: as SkyWalking up to 9.2.0 decides. It takes the list as it comes, and deletes
    when that is empty; there is no lease."""

    def __init__(self, _name: str, coordinator: Told, tables: MemoryTables) -> None:
        self._coordinator, self._tables = coordinator, tables

    def deletes(self) -> bool:
        nodes = self.ordered(self._coordinator.nodes())
        if nodes and not nodes[0].is_self:
            return False
        now_ms = self._tables.now_ms()
        going = plan(self._tables.day_tables(), DAYS, now_ms, now_ms).going
        self._tables.present -= set(going)
        return bool(going)

    def looks(self) -> None:
        return

    def alarmed(self) -> bool:
        return False

    def ordered(self, nodes: list[Node]) -> list[Node]:
        return nodes


class Sorted(Original):
    """The second control: as it decides since 9.3.0."""

    def ordered(self, nodes: list[Node]) -> list[Node]:
        return sorted(nodes, key=lambda node: node.name)


class Cluster:
    def __init__(
        self, size: int, made: Callable[[str, Told, MemoryTables], Deleting], random: Random
    ) -> None:
        self.random = random
        self.clock = HandClock(NOW)
        self.tables = MemoryTables(self.clock, LIVE)
        self.names = [(f"10.0.{random.randint(0, 99)}.{n}", 11800) for n in range(1, size + 1)]
        self.lists = [Told() for _ in self.names]
        self.nodes = [made(f"node-{n}", told, self.tables) for n, told in enumerate(self.lists)]
        self.paused: set[int] = set()
        self.alarms = 0
        self.by_name = sorted(range(size), key=lambda n: Node(*self.names[n]).name)
        self._ran = set(range(size))
        self._numbers = count()

    def seen_by(self, number: int, others: Sequence[int]) -> list[Node]:
        """Those nodes, as that one is told of them, in an order of its own."""
        nodes = [Node(*self.names[n], is_self=n == number) for n in others]
        self.random.shuffle(nodes)
        return nodes

    def tell_all(self) -> None:
        """Each sees all that are not paused; the paused see what they saw."""
        alive = [n for n in range(len(self.names)) if n not in self.paused]
        for number in alive:
            self.lists[number].listed = self.seen_by(number, alive)

    def period(self) -> set[int]:
        """Who has deleted. Alarms are counted where they are worst, right before the runs, of
        nodes that were not paused in the period before."""
        self.clock.seconds += PERIOD_S
        order = [n for n in range(len(self.nodes)) if n not in self.paused]
        self.alarms += sum(self.nodes[n].alarmed() for n in self._ran.intersection(order))
        self._ran = set(order)
        self.random.shuffle(order)
        deleters = {number for number in order if self._deletes(number)}
        if deleters:
            self.tables.present = set(LIVE)
            for number in order:
                self.nodes[number].looks()
        return deleters

    def _deletes(self, number: int) -> bool:
        if self.tables.present == set(LIVE):
            model = f"model_{next(self._numbers)}"
            self.tables.present.add(DayTable(model, EXPIRED, Kept.RECORD))
        return self.nodes[number].deletes()
