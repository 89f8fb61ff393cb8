"""etcd and ZooKeeper by TLS: real servers that ask for certificates, and believe one authority."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from contracts.coordinator_contract import WAIT_S, A, B, sees
from oap.cluster.member import coordinator
from skyfarer.base.errors import ConfigError, PermanentError, RetryableError
from skyfarer.oap.boot.config import load_application
from skyfarer.oap.boot.providers.cluster_etcd import EtcdProvider
from skyfarer.oap.boot.providers.cluster_zookeeper import ZooKeeperProvider
from skyfarer.oap.boot.settings import EtcdConfig, ZooKeeperConfig
from skyfarer.oap.cluster.etcd import endpoints
from skyfarer.oap.cluster.membership import Membership
from skyfarer.oap.cluster.zookeeper.secured import SecuredHandler
from skyfarer.oap.core.cluster import Coordinator
from skyfarer.testing.programs import eventually, free_port
from skyfarer.wire.tls import HTTP_2, ClientTlsSettings, ServerTls, ServerTlsSettings
from third_parties.certificates import Certificates
from third_parties.etcd import SecuredEtcdServer
from third_parties.zookeeper import SecuredZooKeeperServer

ETCD, ZOOKEEPER = "etcd", "zookeeper"


@dataclass
class Place:
    """A server, its authority, and the certificate that a node shows there."""

    kind: str
    server: SecuredEtcdServer | SecuredZooKeeperServer
    files: Certificates
    tls: ClientTlsSettings


@pytest.fixture(scope="module", params=[ETCD, ZOOKEEPER])
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp(request.param)
    files = Certificates(directory / "certificates")
    shown, node = files.issue("server", "127.0.0.1"), files.issue("node", "oap-1")
    server: SecuredEtcdServer | SecuredZooKeeperServer
    if request.param == ETCD:
        server = SecuredEtcdServer(directory, files.ca, shown)
    else:
        server = SecuredZooKeeperServer(directory, files.ca, shown.both)
    server.start()
    protocol = HTTP_2 if request.param == ETCD else ""
    tls = ClientTlsSettings(files.ca, node.certificate, node.key, protocol=protocol)
    yield Place(request.param, server, files, tls)
    server.kill()


@pytest.fixture
def server(place: Place) -> SecuredEtcdServer | SecuredZooKeeperServer:
    return place.server


@pytest.fixture
def kind(place: Place) -> str:
    return place.kind


Join = Callable[..., Membership]


def refusal(one: Membership) -> str:
    with pytest.raises(RetryableError) as refused:
        one.start()
    return str(refused.value)


def test_nodes_that_show_certificates_see_each_other_and_who_leaves(
    join: Join, place: Place
) -> None:
    one, other = join(tls=place.tls), join(tls=place.tls)
    for node, where in ((one, A), (other, B)):
        node.start()
        node.register(where)
    sees(one, A, B)
    sees(other, A, B)
    other.stop(10)
    sees(one, A)


def test_a_password_goes_over_tls_and_a_wrong_one_is_told(join: Join, place: Place) -> None:
    server = place.server
    if isinstance(server, SecuredEtcdServer):
        server.ask_for_passwords("oap", "secret")
        right, wrong = ({"user": "oap", "password": word} for word in ("secret", "guessed"))
    else:
        names = {"namespace": "guarded"}
        right, wrong = ({**names, "expression": f"oap:{word}"} for word in ("secret", "guessed"))
    one, stranger = join(tls=place.tls, **right), join(tls=place.tls, **wrong)
    one.start()
    one.register(A)
    sees(one, A)
    with pytest.raises(PermanentError) as refused:
        stranger.start()
        stranger.register(B)
    assert "guessed" not in str(refused.value)
    for each in (one, stranger):
        each.stop(10)
    server.kill()
    server.wipe()
    server.start()


def test_a_server_of_another_authority_is_not_believed(
    join: Join, place: Place, tmp_path: Path
) -> None:
    others = replace(place.tls, ca_file=Certificates(tmp_path).ca)
    said = refusal(join(tls=others))
    assert "certificate is not believed" in said or "CERTIFICATE_VERIFY_FAILED" in said


def test_a_server_must_have_the_name_that_it_is_called_by(join: Join, place: Place) -> None:
    said = refusal(join(f"localhost:{place.server.port}", tls=place.tls))
    assert "ostname mismatch" in said or "ostname Verification" in said or "peer name" in said


def test_a_node_without_a_certificate_is_told_what_to_set(join: Join, place: Place) -> None:
    bare = replace(place.tls, certificate_file=None, key_file=None)
    assert "set sslCertChainPath and sslKeyPath" in refusal(join(tls=bare))


def test_plain_text_to_a_port_for_tls_is_told_what_to_set(join: Join) -> None:
    assert "wants TLS: set sslEnabled" in refusal(join())


def test_tls_to_a_port_for_plain_text_says_that_tls_failed(join: Join, place: Place) -> None:
    said = refusal(join(place.server.plain, tls=place.tls))
    assert "TLS failed" in said or "so etcd must speak TLS there" in said


def test_a_node_and_a_server_follow_a_new_authority_without_a_restart_of_the_node(
    join: Join, place: Place
) -> None:
    one = join(tls=place.tls)
    one.start()
    one.register(A)
    place.server.stop()
    eventually(lambda: not one.standing().reachable, WAIT_S, "it is missed")
    place.files.renew()
    place.files.issue("server", "127.0.0.1")
    place.files.issue("node", "oap-1")
    place.server.start()
    eventually(lambda: one.standing().reachable, WAIT_S, "it answers")
    sees(one, A)


def test_what_the_configuration_says_is_what_is_spoken(place: Place) -> None:
    paths = {
        "sslEnabled": True,
        "sslTrustedCAsPath": place.tls.ca_file,
        "sslKeyPath": place.tls.key_file,
        "sslCertChainPath": place.tls.certificate_file,
    }
    offered = dict[type, Any]()
    if place.kind == ETCD:
        etcd = EtcdConfig(endpoints=f"https://{place.server.address}", **paths)  # type: ignore[arg-type]
        EtcdProvider(etcd).prepare(offered.__setitem__)  # type: ignore[arg-type]
    else:
        zookeeper = ZooKeeperConfig(hostPort=place.server.address, **paths)  # type: ignore[arg-type]
        ZooKeeperProvider(zookeeper).prepare(offered.__setitem__)  # type: ignore[arg-type]
    one: Coordinator = offered[Coordinator]
    one.start()
    try:
        one.register(A)
        sees(one, A)
    finally:
        one.stop(10)


def test_what_was_decrypted_with_something_else_is_not_waited_for(tmp_path: Path) -> None:
    """Two answers in one record: no socket says so when the first was read."""
    files = Certificates(tmp_path)
    shown = files.issue("server", "127.0.0.1")
    settings = ServerTlsSettings(shown.certificate, shown.key)
    context, handler = ServerTls(settings).context(), SecuredHandler(ClientTlsSettings(files.ca))

    def serve(listener: socket.socket) -> None:
        with context.wrap_socket(listener.accept()[0], server_side=True) as served:
            served.sendall(b"ab")
            served.recv(1)

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        serving = pool.submit(serve, listener)
        with handler.create_connection(listener.getsockname(), "127.0.0.1", WAIT_S) as secured:
            assert secured.recv(1) == b"a"
            assert select.select([secured], [], [], 0)[0] == []
            assert handler.select([secured], [], [], 0)[0] == [secured]
            assert secured.recv(1) == b"b"
            assert handler.select([secured], [], [], 0)[0] == []
            secured.sendall(b".")
        serving.result(WAIT_S)


@pytest.mark.parametrize("wanted", [ETCD, ZOOKEEPER])
def test_a_file_that_is_not_there_is_named_at_the_start(wanted: str, tmp_path: Path) -> None:
    tls = ClientTlsSettings(tmp_path / "gone.pem")
    with pytest.raises(ConfigError, match=r"cannot read .*gone\.pem"):
        coordinator(wanted, f"127.0.0.1:{free_port()}", 2, tls=tls).start()


@pytest.mark.parametrize(
    ("written", "secured"), [("https://etcd:2379", False), ("http://etcd:2379", True)]
)
def test_an_endpoint_whose_scheme_contradicts_is_refused(written: str, secured: bool) -> None:
    with pytest.raises(ConfigError, match=f"sslEnabled is {str(secured).lower()}"):
        endpoints(written, secured)
    assert endpoints("a:1, https://b:2/", secured=True) == ["a:1", "b:2"]


@pytest.mark.parametrize("name", ["ZK", "ETCD"])
@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"ENABLED": "true"}, "sslEnabled needs sslTrustedCAsPath"),
        ({"TRUSTED_CAS_PATH": "ca.pem"}, "need sslEnabled"),
        (
            {"ENABLED": "true", "TRUSTED_CAS_PATH": "ca.pem", "KEY_PATH": "key.pem"},
            "sslKeyPath and sslCertChainPath need each other",
        ),
    ],
)
def test_keys_that_do_not_fit_together_are_refused(
    name: str, given: dict[str, str], complaint: str
) -> None:
    environ = {f"SKYFARER_CLUSTER_{name}_SSL_{key}": value for key, value in given.items()}
    cluster = {"SW_CLUSTER": ZOOKEEPER if name == "ZK" else ETCD}
    with pytest.raises(ConfigError, match=complaint):
        load_application(None, {**cluster, **environ})
