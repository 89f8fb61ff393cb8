"""TLS by our client and our server, each against grpcio's other end."""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest
import trustme

from skyfarer.base.errors import ConfigError, RetryableError
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.wire.client import ClientSettings, GrpcClient
from skyfarer.wire.rpc import FORWARD, Kind
from skyfarer.wire.server import GrpcServer, ServerSettings
from skyfarer.wire.tls import (
    ClientTls,
    ClientTlsSettings,
    ServerTls,
    ServerTlsSettings,
    is_configured,
)

COLLECT = FORWARD[Kind.SEGMENT]
TIMEOUT_S = 120.0


class Files:
    """What an operator puts on a disk: an authority, and certificates of it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.authority = trustme.CA()
        self.ca = self._write("ca.pem", self.authority)

    def renew(self) -> None:
        self.authority = trustme.CA()
        self._write("ca.pem", self.authority)

    def issue(self, name: str, *identities: str) -> tuple[Path, Path]:
        """Certificate and key of that name, in place of those before."""
        made = self.authority.issue_cert(*identities)
        certificate, key = self._directory / f"{name}.pem", self._directory / f"{name}.key"
        chain = b"".join(blob.bytes() for blob in made.cert_chain_pems)
        self._replace(key, made.private_key_pem.bytes())
        self._replace(certificate, chain)
        return certificate, key

    def _write(self, name: str, authority: trustme.CA) -> Path:
        path = self._directory / name
        self._replace(path, authority.cert_pem.bytes())
        return path

    def _replace(self, path: Path, content: bytes) -> None:
        fresh = path.with_suffix(".new")
        fresh.write_bytes(content)
        fresh.replace(path)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


class _Collect(grpc.GenericRpcHandler):
    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        return grpc.stream_unary_rpc_method_handler(lambda messages, _: b"%d" % len(list(messages)))


@pytest.fixture
def grpcio() -> Iterator[Callable[..., int]]:
    """`grpcio(certificate, key, ca)` serves TLS, with `ca` only to clients it knows; its port."""
    servers: list[grpc.Server] = []

    def serve(certificate: Path, key: Path, ca: Path | None = None) -> int:
        credentials = grpc.ssl_server_credentials(
            [(key.read_bytes(), certificate.read_bytes())],
            root_certificates=ca.read_bytes() if ca else None,
            require_client_auth=ca is not None,
        )
        servers.append(grpc.server(futures.ThreadPoolExecutor(2), handlers=[_Collect()]))
        port = servers[-1].add_secure_port("127.0.0.1:0", credentials)
        servers[-1].start()
        return port

    yield serve
    for server in servers:
        server.stop(0).wait()


@pytest.fixture
def send(loop_thread: Any) -> Iterator[Callable[..., bytes]]:
    """`send(port, tls)` makes a new connection and sends two messages."""

    def once(port: int, tls: ClientTlsSettings, server_name: str = "") -> bytes:
        settings = ClientSettings("127.0.0.1", port, server_name=server_name)
        client = GrpcClient(settings, tls=ClientTls(tls).context)
        loop_thread.run(client.start())
        try:
            return bytes(loop_thread.run(client.send(COLLECT, [b"a", b"b"])))
        finally:
            loop_thread.run(client.stop(1.0))

    yield once


@pytest.fixture
def served(loop_thread: Any) -> Iterator[Callable[..., int]]:
    """`served(settings)` starts our server with that TLS; its port."""
    servers: list[GrpcServer] = []

    def serve(settings: ServerTlsSettings) -> int:
        doors = {COLLECT.path: lambda kind, payloads: None}
        tls = ServerTls(settings).context()
        server = GrpcServer(ServerSettings("127.0.0.1", 0), doors, None, Registry(), Health(), tls)
        loop_thread.run(server.start())
        servers.append(server)
        return int(server.port)

    yield serve
    for server in servers:
        loop_thread.run(server.stop(0.0))


def call(port: int, ca: bytes, shown: tuple[Path, Path] | None = None) -> bytes:
    """By grpcio's client, with a connection of its own."""
    certificate, key = shown or (None, None)
    credentials = grpc.ssl_channel_credentials(
        ca,
        key.read_bytes() if key else None,
        certificate.read_bytes() if certificate else None,
    )
    options = [("grpc.use_local_subchannel_pool", 1)]
    with grpc.secure_channel(f"127.0.0.1:{port}", credentials, options) as channel:
        return bytes(channel.stream_unary(COLLECT.path)(iter([b"a"]), timeout=TIMEOUT_S))


def test_a_server_of_the_believed_authority_is_sent_to(
    files: Files, grpcio: Callable[..., int], send: Callable[..., bytes]
) -> None:
    port = grpcio(*files.issue("server", "127.0.0.1"))
    assert send(port, ClientTlsSettings(ca_file=files.ca)) == b"2"


def test_a_server_of_another_authority_is_not_sent_to_unless_verifying_is_off(
    files: Files, grpcio: Callable[..., int], send: Callable[..., bytes]
) -> None:
    port = grpcio(*files.issue("server", "127.0.0.1"))
    files.renew()
    with pytest.raises(RetryableError, match="CERTIFICATE_VERIFY_FAILED"):
        send(port, ClientTlsSettings(ca_file=files.ca))
    with pytest.raises(RetryableError, match="CERTIFICATE_VERIFY_FAILED"):
        send(port, ClientTlsSettings())
    assert send(port, ClientTlsSettings(verify=False)) == b"2"


def test_a_certificate_must_be_of_the_name_asked_for(
    files: Files, grpcio: Callable[..., int], send: Callable[..., bytes]
) -> None:
    port = grpcio(*files.issue("server", "oap.example"))
    tls = ClientTlsSettings(ca_file=files.ca)
    with pytest.raises(RetryableError, match="CERTIFICATE_VERIFY_FAILED"):
        send(port, tls)
    assert send(port, tls, server_name="oap.example") == b"2"


def test_a_server_that_wants_to_know_us_is_shown_our_certificate(
    files: Files, grpcio: Callable[..., int], send: Callable[..., bytes]
) -> None:
    port = grpcio(*files.issue("server", "127.0.0.1"), files.ca)
    certificate, key = files.issue("client", "satellite.example")
    with pytest.raises(RetryableError):
        send(port, ClientTlsSettings(ca_file=files.ca))
    assert send(port, ClientTlsSettings(files.ca, certificate, key)) == b"2"


def test_a_client_uses_renewed_files_at_its_next_connection(
    files: Files, grpcio: Callable[..., int], loop_thread: Any
) -> None:
    tls = ClientTls(ClientTlsSettings(ca_file=files.ca))
    first = tls.context()
    assert tls.context() is first
    files.renew()
    assert tls.context() is not first
    port = grpcio(*files.issue("server", "127.0.0.1"))
    client = GrpcClient(ClientSettings("127.0.0.1", port), tls=tls.context)
    loop_thread.run(client.start())
    assert loop_thread.run(client.send(COLLECT, [b"a"])) == b"1"
    loop_thread.run(client.stop(1.0))


def test_our_server_is_believed_by_grpcio(files: Files, served: Callable[..., int]) -> None:
    port = served(ServerTlsSettings(*files.issue("server", "127.0.0.1")))
    assert call(port, files.ca.read_bytes()) == b""


def test_our_server_takes_only_clients_of_its_authority(
    files: Files, served: Callable[..., int]
) -> None:
    settings = ServerTlsSettings(*files.issue("server", "127.0.0.1"), files.ca)
    port, ca = served(settings), files.ca.read_bytes()
    known = files.issue("client", "agent.example")
    assert call(port, ca, known) == b""
    with pytest.raises(grpc.RpcError):
        call(port, ca)
    stranger = Files(files.ca.parent / "..")
    with pytest.raises(grpc.RpcError):
        call(port, ca, stranger.issue("stranger", "agent.example"))


def test_our_server_shows_a_renewed_certificate_without_a_restart_and_keeps_connections(
    files: Files, served: Callable[..., int]
) -> None:
    settings = ServerTlsSettings(*files.issue("server", "127.0.0.1"), files.ca)
    port, old = served(settings), files.ca.read_bytes()
    certificate, key = files.issue("client", "agent.example")
    credentials = grpc.ssl_channel_credentials(old, key.read_bytes(), certificate.read_bytes())
    with grpc.secure_channel(f"127.0.0.1:{port}", credentials) as channel:
        collect = channel.stream_unary(COLLECT.path)
        assert collect(iter([b"a"]), timeout=TIMEOUT_S) == b""
        files.renew()
        files.issue("server", "127.0.0.1")
        new = files.ca.read_bytes()
        with pytest.raises(grpc.RpcError):
            call(port, old, (certificate, key))
        assert call(port, new, files.issue("client", "agent.example")) == b""
        assert collect(iter([b"b"]), timeout=TIMEOUT_S) == b""


def test_in_the_middle_of_a_renewal_the_old_certificate_stays(
    files: Files, served: Callable[..., int], caplog: pytest.LogCaptureFixture
) -> None:
    certificate, key = files.issue("server", "127.0.0.1")
    port, ca = served(ServerTlsSettings(certificate, key)), files.ca.read_bytes()
    whole = key.read_bytes()
    key.write_bytes(trustme.CA().issue_cert("other").private_key_pem.bytes())
    assert call(port, ca) == call(port, ca) == b""
    key.unlink()
    assert call(port, ca) == b""
    assert 1 <= len([one for one in caplog.messages if "keeps its old certificates" in one]) <= 3
    key.write_bytes(whole)
    assert call(port, ca) == b""


def test_old_versions_of_tls_and_plain_text_are_refused(
    files: Files, served: Callable[..., int]
) -> None:
    port = served(ServerTlsSettings(*files.issue("server", "127.0.0.1")))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with (
        pytest.raises(ssl.SSLError),
        socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as plain,
    ):
        context.wrap_socket(plain)
    with (
        pytest.raises(grpc.RpcError),
        grpc.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        channel.stream_unary(COLLECT.path)(iter([b"a"]), timeout=TIMEOUT_S)


def test_a_file_that_is_missing_or_no_good_is_named(files: Files, tmp_path: Path) -> None:
    certificate, key = files.issue("server", "127.0.0.1")
    with pytest.raises(ConfigError, match=r"nowhere\.pem: No such file"):
        ClientTls(ClientTlsSettings(ca_file=tmp_path / "nowhere.pem")).context()
    with pytest.raises(ConfigError, match=r"server\.key"):
        ServerTls(ServerTlsSettings(key, key)).context()
    encrypted = tmp_path / "encrypted.key"
    command = ["openssl", "rsa", "-aes256", "-passout", "pass:secret", "-in", str(key)]
    made = subprocess.run([*command, "-out", str(encrypted)], capture_output=True, check=False)
    if made.returncode == 0:
        with pytest.raises(ConfigError, match="without a password"):
            ServerTls(ServerTlsSettings(certificate, encrypted)).context()


def test_what_a_configuration_says_tells_whether_tls_is_spoken() -> None:
    assert is_configured({"enable_tls": "true"})
    assert is_configured({"enable_tls": True})
    assert is_configured({"tls_cert_file": "server.pem"})
    assert not is_configured({"enable_tls": "false", "client_pem_path": "client.pem"})
    assert not is_configured({"tls_cert_file": "", "address": ":11800"})
    assert not is_configured({})


def test_a_program_that_speaks_plain_text_never_loads_openssl() -> None:
    script = (
        "from skyfarer.satellite.lean import without_ssl; without_ssl()\n"
        "import skyfarer.wire.tls, skyfarer.satellite.senders.grpc\n"
        "import skyfarer.satellite.senders.kafka\n"
        "import sys; print([m for m in ('ssl', '_ssl', 'confluent_kafka', 'google.protobuf')"
        " if m in sys.modules])"
    )
    command = [sys.executable, "-c", script]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIMEOUT_S)
    assert found.stdout == "[]\n"
