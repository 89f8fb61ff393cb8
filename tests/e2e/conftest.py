"""An OAP takes half a minute of processor time to start, so tests that only use one share it.

Each test of the shared one has its own service names and compares the books with what they were
before. A test that kills an OAP has its own; one that fills it with rubbish takes `oap_to_fill` and
comes after the others, one that stops it `oap_to_end`, and comes last.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from skyfarer.testing.programs import Oap, eventually
from third_parties.etcd import EtcdServer

HERE = Path(__file__).parent
QUIET_WITHIN_S = 300.0
LAST = ("oap_to_fill", "oap_to_end", "own_oap")
PATIENT = {"SKYFARER_REGISTRATION_HOLD_BACK_MS": "60000"}
"""The real old agent asks for the ids of its pages until it is answered without one, then never
again: on a machine that is busy with other tests, an id may take more than the usual moment."""


@pytest.fixture(scope="session")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    """Where the shared OAP is registered."""
    server = EtcdServer(tmp_path_factory.mktemp("etcd"))
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="session")
def shared_oap(tmp_path_factory: pytest.TempPathFactory, etcd: EtcdServer) -> Iterator[Oap]:
    """A cluster of one."""
    cluster = {"SW_CLUSTER": "etcd", "SW_CLUSTER_ETCD_ENDPOINTS": etcd.address}
    oap = Oap(tmp_path_factory.mktemp("shared"), **PATIENT, **cluster)
    oap.start()
    yield oap
    oap.kill()


@pytest.fixture
def oap(shared_oap: Oap) -> Oap:
    """Shared, and quiet: nobody is connected any more and all that was sent is applied."""
    return quieted(shared_oap)


@pytest.fixture(scope="module")
def oap_for_many(shared_oap: Oap) -> Oap:
    """Shared, and quiet when it is taken: for tests of one file whose clients all stay."""
    return quieted(shared_oap)


@pytest.fixture
def oap_to_fill(oap: Oap) -> Oap:
    """The shared one, for a test that leaves more behind than others care to see."""
    return oap


@pytest.fixture
def oap_to_end(oap: Oap) -> Oap:
    """The shared one, for a test that stops it."""
    return oap


@pytest.fixture
def own_oap(tmp_path: Path) -> Iterator[Oap]:
    oap = Oap(tmp_path)
    oap.start()
    yield oap
    oap.kill()


def quieted(oap: Oap) -> Oap:
    if oap.has_ended():
        oap.start()
    eventually(lambda: quiet(oap), QUIET_WITHIN_S, "the earlier tests' agents are gone")
    return oap


def quiet(oap: Oap) -> bool:
    lines = oap.metrics().splitlines()
    connections = [line for line in lines if line.startswith("receiver_connections ")]
    return connections in ([], ["receiver_connections 0"]) and oap.ledger()["queued"] == 0


def turn(item: pytest.Item) -> int:
    asked = getattr(item, "fixturenames", ())
    for number, fixture in enumerate(LAST, start=2):
        if fixture in asked:
            return number
    return 1 if item.get_closest_marker("bounded") else 0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Users of the shared OAP, the bounded ones when it is warm; who fills and who ends it; then
    the others: no two OAPs for longer than needed."""
    here = [item for item in items if item.path.is_relative_to(HERE)]
    if here:
        first = items.index(here[0])
        items[first : first + len(here)] = sorted(here, key=turn)
