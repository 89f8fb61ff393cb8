from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from contracts.coordinator_contract import TIMEOUT_S, WAIT_S, A, B, SharedCoordinatorContract, sees
from skyfarer.base.errors import PermanentError, RetryableError
from skyfarer.oap.cluster.membership import Membership
from skyfarer.oap.cluster.zookeeper import ZooKeeper, ZooKeeperSettings, layout
from skyfarer.testing.clock import HandClock
from skyfarer.testing.programs import eventually, free_port
from third_parties.zookeeper import TICK_MS, ZooKeeperServer

PATH = "/skywalking/remote"
# As the original's Gson writes it, what is null left out.
ORIGINAL = (
    '{"name":"remote","id":"6f1c","address":"10.0.0.2","port":11800,"payload":{"address":'
    '{"host":"10.0.0.2","port":11800,"isSelf":true}},"registrationTimeUTC":1763208000000,'
    '"serviceType":"DYNAMIC","enabled":true}'
)


@pytest.fixture
def kind() -> str:
    return "zookeeper"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    server = ZooKeeperServer(tmp_path_factory.mktemp("zookeeper"))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def operator(shared: ZooKeeperServer) -> Iterator[KazooClient]:
    """Whoever has a client of his own."""
    client = KazooClient(shared.address, timeout=TIMEOUT_S)
    client.start()
    yield client
    client.stop()
    client.close()


@pytest.fixture
def server(shared: ZooKeeperServer) -> Iterator[ZooKeeperServer]:
    """Running, and empty since whoever registered is stopped; a test may stop it."""
    yield shared
    shared.resume()
    if not shared.runs:
        shared.start()


@pytest.fixture
def forget(operator: KazooClient) -> Callable[[], None]:
    """At once, and their parent, too: whoever was deleted first would be back before the last."""

    def delete() -> None:
        transaction = operator.transaction()
        for name in operator.get_children(PATH):
            transaction.delete(f"{PATH}/{name}")
        transaction.delete(PATH)
        assert transaction.commit()[-1] is True

    return delete


class TestZooKeeper(SharedCoordinatorContract):
    pass


def test_a_registration_is_what_the_original_reads(
    join: Callable[..., Membership], operator: KazooClient
) -> None:
    one = join()
    one.start()
    one.register(A)
    (name,) = operator.get_children(PATH)
    data, stat = operator.get(f"{PATH}/{name}")
    written = json.loads(data)

    assert stat.ephemeralOwner != 0
    assert written.pop("registrationTimeUTC") > 0
    assert written == {
        "name": "remote",
        "id": name,
        "address": A.host,
        "port": A.port,
        "payload": {"address": {"host": A.host, "port": A.port, "isSelf": True}},
        "serviceType": "DYNAMIC",
        "enabled": True,
    }


def test_a_node_of_the_original_is_seen_and_what_is_none_is_not(
    join: Callable[..., Membership], operator: KazooClient
) -> None:
    one = join()
    one.start()
    one.register(A)
    operator.create(f"{PATH}/nothing", b"\xff", ephemeral=True)
    operator.create(f"{PATH}/6f1c", ORIGINAL.encode(), ephemeral=True)
    sees(one, A, B)


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"5", b"[]", b"{}", b'{"payload":null}', b'{"payload":{"address":{"host":"x"}}}'),
        b'{"payload":{"address":{"host":5,"port":1}}}',
        b'{"payload":{"address":{"host":"","port":1}}}',
        b'{"payload":{"address":{"host":"x","port":true}}}',
        b'{"payload":{"address":{"host":"x","port":65536}}}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_registration_is_none(data: bytes) -> None:
    assert layout.read(data) is None


def test_namespaces_do_not_see_each_other(
    join: Callable[..., Membership], operator: KazooClient
) -> None:
    first, second = join(namespace="east"), join(namespace="/west/")
    for one, node in ((first, A), (second, B)):
        one.start()
        one.register(node)
    assert {"east", "west"} <= set(operator.get_children("/skywalking"))
    sees(first, A)
    sees(second, B)


def test_with_an_acl_others_may_read_and_only_the_user_may_write(
    join: Callable[..., Membership], operator: KazooClient
) -> None:
    path = "/skywalking/guarded/remote"
    one, other, stranger = (
        join(namespace="guarded", expression=f"oap:{password}")
        for password in ("secret", "secret", "guessed")
    )
    one.start()
    one.register(A)
    (name,) = operator.get_children(path)
    assert operator.get(f"{path}/{name}")[0]
    for forbidden in (
        lambda: operator.set(f"{path}/{name}", b""),
        lambda: operator.create(f"{path}/more"),
        lambda: operator.delete(f"{path}/{name}"),
    ):
        with pytest.raises(NoAuthError):
            forbidden()

    other.start()
    other.register(B)
    sees(one, A, B)
    stranger.start()
    with pytest.raises(PermanentError, match="SW_ZK_EXPRESSION") as refused:
        stranger.register(B)
    assert "guessed" not in str(refused.value)


def test_servers_that_are_none_are_refused_in_a_sentence(join: Callable[..., Membership]) -> None:
    with pytest.raises(PermanentError, match="hostPort is 'zk:port'"):
        join("zk:port").start()


def cost() -> int:
    return threading.active_count() + len([*Path("/proc/self/fd").iterdir()])


def test_an_outage_costs_neither_threads_nor_files() -> None:
    registrar = ZooKeeper(ZooKeeperSettings(f"127.0.0.1:{free_port()}", session_timeout_s=0.1))
    costs: list[int] = []
    for _ in range(12):
        with pytest.raises(RetryableError, match="cannot be reached"):
            registrar.open(lambda: None)
        costs.append(cost())
    grown = len(costs) / 2
    eventually(lambda: cost() - costs[0] < grown, WAIT_S, f"all it took is given back, of {costs}")


def test_a_session_that_somebody_ends_is_replaced(
    join: Callable[..., Membership], server: ZooKeeperServer
) -> None:
    """A second client under the same session and its password may end it, as an expiry would."""
    one = join()
    one.start()
    one.register(A)
    session = one._registrar._client.client_id  # type: ignore[attr-defined]
    twin = KazooClient(server.address, client_id=session)
    twin.start()
    twin.stop()
    twin.close()
    eventually(lambda: one.standing().renewals > 0, WAIT_S, "it is registered anew")
    sees(one, A)


class Interrupted(ZooKeeper):
    """Something happens after it has listed the names and before it reads what is below them."""

    def meanwhile(self) -> None:
        return

    def _names(self, client: KazooClient) -> Sequence[str]:
        names = super()._names(client)
        self.meanwhile()
        return names


def test_one_that_was_away_for_a_moment_is_seen_again(
    server: ZooKeeperServer, operator: KazooClient
) -> None:
    """Whoever registers anew after a lost session takes the name that it had."""
    path = f"{PATH}/6f1c"
    operator.ensure_path(PATH)
    registrar = Interrupted(ZooKeeperSettings(server.address, session_timeout_s=TIMEOUT_S))
    registrar.open(lambda: None)
    try:
        operator.create(path, ORIGINAL.encode(), ephemeral=True)
        registrar.meanwhile = lambda: operator.delete(path)  # type: ignore[method-assign]
        assert registrar.round(None).nodes == ()
        operator.create(path, ORIGINAL.encode(), ephemeral=True)
        registrar.meanwhile = lambda: None  # type: ignore[method-assign]
        assert registrar.round(None).nodes == (B,)
    finally:
        registrar.close(10)
        operator.delete(path)


def test_a_server_that_keeps_sessions_for_less_is_believed_for_less(
    server: ZooKeeperServer,
) -> None:
    clock, asked_s, kept_s = HandClock(), 60.0, 20 * TICK_MS / 1000
    registrar = ZooKeeper(ZooKeeperSettings(server.address, session_timeout_s=asked_s))
    one = Membership(registrar, clock=clock)
    one.start()
    try:
        one.register(A)
        assert registrar.timeout_s == kept_s
        server.pause()
        clock.seconds += kept_s
        assert one.nodes() == [], "the server may have forgotten it"
    finally:
        server.resume()
        one.stop(10)


def test_a_server_that_does_not_answer_holds_up_no_stop_and_costs_nothing(
    server: ZooKeeperServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    registrar = ZooKeeper(ZooKeeperSettings(server.address, session_timeout_s=TIMEOUT_S))
    before = cost()
    registrar.open(lambda: None)
    registrar.round(A)
    server.pause()
    try:
        registrar.close(0)
        assert "the session ends by itself" in caplog.text
    finally:
        server.resume()
    eventually(lambda: cost() <= before, WAIT_S, "its threads and files are given back")
