"""Keepers over a real file that are paused where they have the lease and are about to drop."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from contracts.expiry_contract import NOON
from contracts.storage_contract import batch, segment
from oap.ttl.cluster_of import DAYS, PERIOD_S, Told
from skyfarer.oap.core.cluster import Node
from skyfarer.oap.core.expiry import DayTable, Lease
from skyfarer.oap.storage.embedded import EmbeddedStorage
from skyfarer.oap.ttl.keeper import LEASE, LEASE_S, Keeper, KeeperSettings
from skyfarer.oap.ttl.sight import Sight
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.clock import HandClock

PAUSES = 1_000
DAY_MS = 86_400_000
OWN = Node("10.0.0.1", 11800, is_self=True)


class PausingStorage(EmbeddedStorage):
    """Time passes before each drop, for the first `pauses` of them; by half of them another node
    has taken the lease, and some of these have let it go again."""

    def __init__(self, clock: HandClock, pauses: int) -> None:
        super().__init__(clock=clock)
        self._hand, self._random = clock, Random(6)
        self.pauses = pauses

    def drop(self, lease: Lease, table: DayTable) -> bool:
        if self.pauses:
            self.pauses -= 1
            self._pause()
        return super().drop(lease, table)

    def _pause(self) -> None:
        self._hand.seconds += self._random.uniform(LEASE_S, 3 * PERIOD_S)
        if self._random.random() < 0.5:
            assert self.take_lease(LEASE, "another", LEASE_S) is not None
            self._hand.seconds += self._random.uniform(0, 2 * LEASE_S)


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[PausingStorage]:
    logging.getLogger("skyfarer.oap.ttl").setLevel(logging.ERROR)
    storage = PausingStorage(HandClock(NOON), PAUSES)
    storage.start(tmp_path / "skyfarer.duckdb", DAYS.zone)
    for first, days_ago in enumerate((9, 8, 1, 0)):
        storage.apply(batch(first, first + 1, [segment(f"s{first}", NOON - days_ago * DAY_MS)]))
    yield storage
    storage.stop()
    logging.getLogger("skyfarer.oap.ttl").setLevel(logging.NOTSET)


def keeper_of(storage: PausingStorage, holder: str) -> Keeper:
    registry, clock = Registry(), storage._hand
    return Keeper(
        KeeperSettings(DAYS, PERIOD_S, holder),
        *(storage, Told([OWN]), Sight(DAYS, PERIOD_S, registry, Health(), clock)),
        *(registry, clock),
    )


def test_c04_of_1000_keepers_paused_between_lease_and_drop_none_drops_anything(
    storage: PausingStorage,
) -> None:
    before, refused = storage.day_tables(), 0
    keepers = [keeper_of(storage, f"node-{number}") for number in range(3)]
    due = keepers[0].planned().going
    while storage.pauses:
        storage._hand.seconds += LEASE_S + 1
        run = keepers[storage.pauses % len(keepers)].run()
        assert (run.outcome, run.dropped, run.failed) == ("waited", (), ())
        refused += "nothing is dropped" in run.why
    assert (refused, storage.day_tables()) == (PAUSES, before)
    storage._hand.seconds += LEASE_S + 1
    assert keepers[0].run().dropped == due, "not paused, it drops"
