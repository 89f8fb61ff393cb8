"""The node that deletes is cut off from the coordinator, and not from the storage.

Two keepers over one PostgreSQL know each other by etcd. The way there of the one that begins falls
silent while it is in the middle of its run.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.coordinator_contract import TIMEOUT_S, WAIT_S, A, B, sees
from oap.cluster.member import coordinator
from oap.storage.postgresql.keepers import fill, keeper_of
from skyfarer.oap.cluster.membership import Membership
from skyfarer.oap.core.cluster import Coordinator
from skyfarer.oap.core.expiry import DayTable, Lease
from skyfarer.oap.storage.postgresql import PostgresStorage
from skyfarer.oap.ttl.keeper import Keeper, Run
from skyfarer.testing.line import Line
from skyfarer.testing.programs import eventually
from third_parties.etcd import EtcdServer

LEASE_S = 3.0


class Halting:
    """DayTables that stand still before, or after, their drops with a number, until they are told
    to go on."""

    def __init__(self, storage: PostgresStorage, before: int = 0, after: int = 0) -> None:
        self._storage, self._before, self._after = storage, before, after
        self.halts, self.goes_on = threading.Event(), threading.Event()
        self.now_ms, self.day_tables = storage.now_ms, storage.day_tables
        self.take_lease, self.last_lease = storage.take_lease, storage.last_lease
        self.drops = 0

    def drop(self, lease: Lease, table: DayTable) -> bool:
        self.drops += 1
        self._halt(self._before)
        dropped = self._storage.drop(lease, table)
        self._halt(self._after)
        return dropped

    def _halt(self, at: int) -> None:
        if self.drops == at:
            self.halts.set()
            assert self.goes_on.wait(WAIT_S)


class Going:
    """A run on a thread of its own."""

    def __init__(self, tables: Halting, known_by: Coordinator) -> None:
        self._tables = tables
        self._keeper = keeper_of(tables, known_by, "node-a", LEASE_S)
        self._runs: list[Run] = []
        self._thread = threading.Thread(target=lambda: self._runs.append(self._keeper.run()))
        self._thread.start()
        assert tables.halts.wait(WAIT_S)

    def end(self) -> Run:
        self._tables.goes_on.set()
        self._thread.join(WAIT_S)
        return self._runs[0]


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    server = EtcdServer(tmp_path_factory.mktemp("etcd"))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def line(etcd: EtcdServer) -> Iterator[Line]:
    with Line(etcd.port) as line:
        yield line


@pytest.fixture
def nodes(etcd: EtcdServer, line: Line, tmp_path: Path) -> Iterator[tuple[Membership, Membership]]:
    """The first to delete, whose way can be cut, and the second."""
    first = coordinator("etcd", line.address, TIMEOUT_S, namespace=f"/{tmp_path.name}")
    second = coordinator("etcd", etcd.address, TIMEOUT_S, namespace=f"/{tmp_path.name}")
    for one, node in ((first, A), (second, B)):
        one.start()
        one.register(node)
    sees(first, A, B)
    sees(second, A, B)
    yield first, second
    for one in (first, second):
        one.stop(10)


def finishes(keeper: Keeper) -> tuple[DayTable, ...]:
    runs: list[Run] = []

    def finished() -> bool:
        runs.append(keeper.run())
        return not runs[-1].left

    eventually(finished, WAIT_S, "the other node ends it")
    return tuple(one for run in runs for one in run.dropped)


def test_c05_one_that_is_cut_off_between_two_drops_deletes_nothing_further(
    storage: PostgresStorage, nodes: tuple[Membership, Membership], line: Line
) -> None:
    """The lease would still be its own."""
    first, _ = nodes
    fill(storage, 6, 5, 1, 0)
    going = Going(Halting(storage, after=1), first)
    due = keeper_of(storage, first, "onlooker").planned().going
    line.mute = True
    eventually(lambda: not any(one.is_self for one in first.nodes()), WAIT_S, "it is cut off")
    run = going.end()
    assert (run.outcome, len(run.dropped), run.left) == ("waited", 1, len(due))
    assert "this node is not among" in run.why or "the list of nodes is empty" in run.why
    assert set(due) <= set(storage.day_tables())


def test_c05_one_that_is_cut_off_right_before_a_drop_is_refused_by_the_storage(
    storage: PostgresStorage,
    other: PostgresStorage,
    nodes: tuple[Membership, Membership],
    line: Line,
) -> None:
    """It has looked at the list and holds the lease, and another node has it by now."""
    first, second = nodes
    fill(storage, 6, 5, 1, 0)
    due = keeper_of(storage, first, "onlooker").planned().going
    going = Going(Halting(storage, before=2), first)
    line.mute = True
    sees(second, B)
    by_other = finishes(keeper_of(other, second, "node-b", LEASE_S))
    there = storage.day_tables()
    run = going.end()
    assert (run.dropped, by_other) == (due[:1], due[1:])
    assert (run.outcome, run.failed) == ("waited", ())
    assert "the lease ttl of epoch 1 is node-b's, at epoch 2: nothing is dropped" in run.why
    assert storage.day_tables() == there
