from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from contracts.coordinator_contract import WAIT_S, A, B, SharedCoordinatorContract, sees
from skyfarer.base.errors import ConfigError, PermanentError, RetryableError
from skyfarer.oap.cluster.etcd import EtcdRegistrar, EtcdSettings, endpoints, layout
from skyfarer.oap.cluster.etcd.client import Etcd
from skyfarer.oap.cluster.membership import Membership
from skyfarer.testing.clock import HandClock
from skyfarer.testing.programs import eventually, free_port
from third_parties.etcd import EtcdServer

PREFIX = b"/skywalking/SkyWalking_OAP_Cluster/"
ORIGINAL = b'{"serviceName":"SkyWalking_OAP_Cluster/","host":"10.0.0.2","port":11800}'


@pytest.fixture
def kind() -> str:
    return "etcd"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    server = EtcdServer(tmp_path_factory.mktemp("etcd"))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def server(shared: EtcdServer) -> Iterator[EtcdServer]:
    """Running, and empty since whoever registered is stopped; a test may stop it."""
    yield shared
    shared.resume()
    if not shared.runs:
        shared.start()


@pytest.fixture
def guarded(server: EtcdServer) -> Iterator[EtcdServer]:
    """That asks for passwords."""
    server.ask_for_passwords("oap", "secret")
    yield server
    server.kill()
    server.wipe()
    server.start()


@pytest.fixture
def operator(shared: EtcdServer) -> Iterator[Etcd]:
    """Whoever has a client of his own."""
    client = Etcd([shared.address])
    yield client
    client.close()


@pytest.fixture
def forget(shared: EtcdServer) -> Callable[[], None]:
    return lambda: shared.delete(PREFIX, layout.after(PREFIX))


def pairs(client: Etcd) -> dict[bytes, bytes]:
    return {pair.key: pair.value for pair in client.range(b"\0", b"\xff", 100).kvs}


class TestEtcd(SharedCoordinatorContract):
    pass


def test_a_registration_is_what_the_original_reads(
    join: Callable[..., Membership], operator: Etcd
) -> None:
    one = join()
    one.start()
    one.register(A)
    ((key, value),) = pairs(operator).items()
    assert key.startswith(PREFIX + b"10.0.0.1_")
    assert json.loads(value) == {
        "serviceName": "SkyWalking_OAP_Cluster/",
        "host": A.host,
        "port": A.port,
    }


def test_a_node_of_the_original_is_seen_and_what_is_none_is_not(
    join: Callable[..., Membership], operator: Etcd
) -> None:
    one, lease = join(), operator.grant(60)
    one.start()
    one.register(A)
    operator.put(PREFIX + b"nothing", b"\xff", lease)
    operator.put(PREFIX + b"10.0.0.2_811", ORIGINAL, lease)
    operator.put(b"/skywalking/SkyWalking_OAP_Cluster0", ORIGINAL, lease)
    operator.put(b"/skywalking/Other/10.0.0.3_1", ORIGINAL, lease)
    sees(one, A, B)
    operator.revoke(lease, 5)
    sees(one, A)


@pytest.mark.parametrize(
    "value",
    [
        *(b"", b"5", b"[]", b"{}", b'{"host":"x"}', b'{"host":5,"port":1}', b"[" * 100_000),
        *(b'{"host":"","port":1}', b'{"host":"x","port":0}', b'{"host":"x","port":"1"}'),
    ],
)
def test_what_is_no_registration_is_none(value: bytes) -> None:
    assert layout.read(value) is None


def test_clusters_of_other_names_do_not_see_each_other(join: Callable[..., Membership]) -> None:
    first, second = join(service_name="east"), join(service_name="east/west")
    third = join(namespace="/other", service_name="east")
    for one, node in ((first, A), (second, B), (third, B)):
        one.start()
        one.register(node)
    sees(second, B)
    sees(third, B)


def test_an_endpoint_that_is_away_is_passed_over(
    join: Callable[..., Membership], server: EtcdServer
) -> None:
    one = join(f"127.0.0.1:{free_port()}, http://{server.address}")
    one.start()
    one.register(A)
    sees(one, A)


def cost() -> int:
    return threading.active_count() + len([*Path("/proc/self/fd").iterdir()])


def test_an_outage_costs_neither_threads_nor_files() -> None:
    registrar, costs = EtcdRegistrar(EtcdSettings(f"127.0.0.1:{free_port()}")), list[int]()
    registrar.open(lambda: None)
    for _ in range(20):
        with pytest.raises(RetryableError, match="does not answer"):
            registrar.round(A)
        costs.append(cost())
    grown = len(costs) / 2
    eventually(lambda: cost() - costs[0] < grown, WAIT_S, f"all it took is given back, of {costs}")


@pytest.mark.parametrize("written", ["", " , ", "https://etcd:2379", "unix:///run/etcd"])
def test_endpoints_that_are_none_are_refused(written: str) -> None:
    with pytest.raises(ConfigError, match="endpoints"):
        endpoints(written)


def test_endpoints_may_be_several() -> None:
    assert endpoints("a:1, http://b:2/,ip:///c:3") == ["a:1", "b:2", "c:3"]


def test_a_wrong_password_is_told_at_the_start_and_never_shown(
    join: Callable[..., Membership], guarded: EtcdServer
) -> None:
    with pytest.raises(PermanentError, match="invalid user ID or password") as refused:
        join(user="oap", password="guessed").start()
    assert "guessed" not in str(refused.value)
    with pytest.raises(PermanentError, match="user name is empty"):
        join().start()


def test_a_token_that_etcd_no_longer_takes_is_asked_for_anew(
    join: Callable[..., Membership], guarded: EtcdServer
) -> None:
    """A restart forgets tokens; a change of users makes them old."""
    one, other = (join(user="oap", password="secret") for _ in range(2))
    one.start()
    one.register(A)
    guarded.add_user("more", "x", guarded.token("root", "secret"))
    other.start()
    other.register(B)
    sees(one, A, B)
    guarded.stop()
    eventually(lambda: not one.standing().reachable, WAIT_S, "it is missed")
    guarded.start()
    sees(one, A, B)
    eventually(lambda: one.standing().reachable, WAIT_S, "it answers")


def test_a_user_without_a_password_is_told_when_etcd_asks_for_none(
    join: Callable[..., Membership],
) -> None:
    with pytest.raises(PermanentError, match="authentication is not enabled"):
        join(user="oap", password="secret").start()


def test_a_registration_is_believed_for_no_longer_than_its_lease(server: EtcdServer) -> None:
    clock = HandClock()
    one = Membership(EtcdRegistrar(EtcdSettings(server.address, lease_s=30)), clock=clock)
    one.start()
    try:
        one.register(A)
        clock.seconds = 29.9
        assert [node.is_self for node in one.nodes()] == [True]
        clock.seconds = 30.0
        assert one.nodes() == []
    finally:
        one.stop(10)


def test_it_does_not_show_the_password() -> None:
    assert "secret" not in repr(EtcdSettings(user="oap", password="secret"))
