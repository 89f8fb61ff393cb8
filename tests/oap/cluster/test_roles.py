"""core and cluster as modules: who joins, as whom, and how health and metrics speak of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from contracts.coordinator_contract import WAIT_S, A, B
from skyfarer.base.errors import ConfigError
from skyfarer.oap.boot.membership import Joining
from skyfarer.oap.boot.providers.cluster import StandaloneProvider
from skyfarer.oap.boot.providers.cluster_etcd import EtcdProvider
from skyfarer.oap.boot.providers.cluster_zookeeper import ZooKeeperProvider
from skyfarer.oap.boot.providers.core import CoreProvider
from skyfarer.oap.boot.settings import CoreConfig, EtcdConfig, NoKeys, Role, ZooKeeperConfig
from skyfarer.oap.cluster.etcd import EtcdRegistrar, EtcdSettings
from skyfarer.oap.cluster.membership import Membership
from skyfarer.oap.core.cluster import Node, Standing, ailment, in_order
from skyfarer.oap.core.modules import Modules, Provider
from skyfarer.telemetry import table
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.programs import eventually
from third_parties.etcd import EtcdServer
from third_parties.zookeeper import ZooKeeperServer

Start = Callable[..., CoreProvider]


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    server = EtcdServer(tmp_path_factory.mktemp("etcd"))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def onlooker(etcd: EtcdServer) -> Iterator[Membership]:
    one = Membership(EtcdRegistrar(EtcdSettings(etcd.address)))
    one.start()
    yield one
    one.stop(10)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """A node of core and a cluster, and nothing else of an OAP."""
    started: list[Modules] = []

    def make(cluster: Provider, role: Role = "Mixed", host: str = A.host) -> CoreProvider:
        core = CoreProvider(
            CoreConfig(role=role, gRPCHost=host, dataDirectory=tmp_path / str(len(started)))
        )
        started.append(Modules([cluster, core]))
        started[-1].start()
        return core

    yield make
    for modules in started:
        assert modules.stop(10) == []


def of_etcd(etcd: EtcdServer, host: str = "", port: int = -1) -> EtcdProvider:
    return EtcdProvider(EtcdConfig(etcd.address, internalComHost=host, internalComPort=port))


def names(onlooker: Membership) -> list[str]:
    return [node.name for node in in_order(onlooker.nodes())]


@pytest.mark.parametrize("role", ["Mixed", "Aggregator"])
def test_a_node_is_known_by_where_it_listens(
    role: Role, start: Start, etcd: EtcdServer, onlooker: Membership
) -> None:
    core = start(of_etcd(etcd), role)
    eventually(lambda: names(onlooker) == ["10.0.0.1_11800"], WAIT_S, "it is known")
    assert (core.node.health.score(), core.node.health.details()) == (0, "")


def test_a_receiver_is_known_to_nobody_and_well(
    start: Start, etcd: EtcdServer, onlooker: Membership
) -> None:
    mixed, receiver = start(of_etcd(etcd)), start(of_etcd(etcd), "Receiver", "0.0.0.0")
    eventually(lambda: names(onlooker) == ["10.0.0.1_11800"], WAIT_S, "the other is known")
    eventually(lambda: receiver.node.health.score() == 0, WAIT_S, "it is well")
    assert mixed.node.health.score() == 0


def test_the_internal_address_goes_before_the_one_it_listens_at(
    start: Start, etcd: EtcdServer, onlooker: Membership
) -> None:
    start(of_etcd(etcd, "10.0.0.7", 11801), host="0.0.0.0")
    start(of_etcd(etcd, "10.0.0.8", -1), host="10.0.0.9")
    known = ["10.0.0.7_11801", "10.0.0.9_11800"]
    eventually(lambda: names(onlooker) == known, WAIT_S, "they are known")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "*"])
@pytest.mark.parametrize("kind", ["etcd", "zookeeper"])
def test_a_node_that_is_everywhere_is_refused_before_anything_is_asked(
    host: str, kind: str, start: Start
) -> None:
    """Nobody listens at port 1: that would be another sentence."""
    cluster: Provider = EtcdProvider(EtcdConfig("127.0.0.1:1"))
    if kind == "zookeeper":
        cluster = ZooKeeperProvider(ZooKeeperConfig(hostPort="127.0.0.1:1"))
    with pytest.raises(ConfigError, match="internalComHost"):
        start(cluster, host=host)


def test_a_node_that_is_alone_may_be_anywhere(start: Start) -> None:
    core = start(StandaloneProvider(NoKeys()), host="0.0.0.0")
    assert core.node.health.score() == 0
    assert "\ncluster_nodes 1\n" in core.node.registry.render()


def test_one_that_another_machine_cannot_reach_makes_all_unwell(
    start: Start, etcd: EtcdServer
) -> None:
    good = start(of_etcd(etcd))
    assert good.node.health.score() == 0
    local = start(of_etcd(etcd), host="localhost")
    for core in (good, local):
        eventually(lambda core=core: core.node.health.score() == 1, WAIT_S, "it is unwell")
        assert core.node.health.details() == (
            "cluster_etcd: localhost_11800 is registered, which other machines cannot reach:"
            " set internalComHost"
        )


def test_metrics_say_how_many_there_are_and_whether_etcd_answers(
    start: Start, etcd: EtcdServer
) -> None:
    core = start(of_etcd(etcd))
    start(of_etcd(etcd), host=B.host)

    def shown(line: str) -> bool:
        return f"\n{line}\n" in core.node.registry.render()

    eventually(lambda: shown("cluster_nodes 2"), WAIT_S, "both are counted")
    assert shown("cluster_coordinator_reachable 1")
    assert shown("cluster_registrations_renewed_total 0")
    etcd.kill()
    etcd.wipe()
    eventually(lambda: shown("cluster_coordinator_reachable 0"), WAIT_S, "it is missed")
    etcd.start()
    eventually(lambda: shown("cluster_registrations_renewed_total 1"), WAIT_S, "it is told anew")
    eventually(lambda: shown("cluster_nodes 2"), WAIT_S, "both are counted")


def test_a_node_joins_by_zookeeper(start: Start, tmp_path: Path) -> None:
    server = ZooKeeperServer(tmp_path)
    server.start()
    try:
        config = ZooKeeperConfig(hostPort=server.address, namespace="test", enableACL=True)
        first, second = (start(ZooKeeperProvider(config), host=node.host) for node in (A, B))
        for core in (first, second):
            eventually(
                lambda core=core: "\ncluster_nodes 2\n" in core.node.registry.render(),
                *(WAIT_S, "both are known"),
            )
    finally:
        server.kill()


class Changing:
    """A coordinator whose list changes while it is asked for it."""

    def __init__(self, first: list[Node], then: list[Node]) -> None:
        self._listed, self.then = first, then
        self._watchers: list[Callable[[list[Node]], None]] = []

    def start(self) -> None:
        return

    def stop(self, timeout_s: float) -> None:
        return

    def register(self, node: Node) -> None:
        return

    def nodes(self) -> list[Node]:
        asked, self._listed = self._listed, self.then
        for told in self._watchers:
            told(self._listed)
        return asked

    def watch(self, told: Callable[[list[Node]], None]) -> None:
        self._watchers.append(told)

    def standing(self) -> Standing:
        return Standing("changing")


def test_a_list_that_changes_while_a_node_joins_is_judged_by_its_last_state() -> None:
    own, health = Node("10.0.0.1", 1, is_self=True), Health()
    coordinator = Changing([own], [own, Node("10.0.0.1", 1)])
    joining = Joining(coordinator, own, health, Registry(table.OAP))
    joining.start()
    joining.join()
    health.started()
    health.score()
    assert health.details().startswith("cluster_changing: 10.0.0.1_1 is registered by another")
    coordinator.then = [own]
    health.score()
    assert (health.score(), health.details()) == (0, "")


@pytest.mark.parametrize(
    ("nodes", "registers", "wrong"),
    [
        ([], True, "no node is registered"),
        ([], False, "no node is registered"),
        ([A], True, "this node is not, or no longer, registered"),
        ([A], False, ""),
        ([Node("10.0.0.1", 1, is_self=True), B], True, ""),
        (
            [Node("10.0.0.1", 1, is_self=True), Node("10.0.0.1", 1)],
            True,
            "10.0.0.1_1 is registered",
        ),
        ([Node("127.0.0.1", 1, is_self=True)], True, ""),
        ([Node("127.0.0.1", 1, is_self=True), B], True, "127.0.0.1_1 is registered, which other"),
        ([Node("localhost", 1), B], False, "localhost_1 is registered, which other machines"),
    ],
)
def test_what_is_wrong_with_a_list_is_a_sentence(
    nodes: list[Node], registers: bool, wrong: str
) -> None:
    assert ailment(nodes, registers).startswith(wrong) if wrong else not ailment(nodes, registers)
