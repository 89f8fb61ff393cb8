"""Certificates and tokens of a receiver that is a real child, on ports of its own."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import grpc
import httpx
import pytest
import trustme

from oap.receivers.posting import HOST, TIMEOUT_S, Receiving, receiving
from skyfarer.base.errors import ConfigError
from skyfarer.oap.receivers.access import AccessSettings, TlsFiles
from skyfarer.testing.programs import eventually
from wire.http.posts import POSTS

COLLECT = "/skywalking.v3.TraceSegmentReportService/collect"
SEGMENT = next(post for post in POSTS if post.path == "/v3/segment")


class Files:
    """What an operator puts on a disk."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.authority, self.clients = trustme.CA(), trustme.CA()
        self.clients.cert_pem.write_to_path(directory / "clients.pem")
        self.tokens = directory / "tokens"
        self.tokens.write_text("old\n")
        self.issue()

    def issue(self) -> None:
        made = self.authority.issue_cert(HOST)
        made.private_key_pem.write_to_path(self.directory / "server.key")
        made.cert_chain_pems[0].write_to_path(self.directory / "server.pem")

    def renew(self) -> None:
        self.authority = trustme.CA()
        self.issue()

    def tls(self) -> TlsFiles:
        names = ("server.pem", "server.key", "clients.pem")
        return TlsFiles(*(str(self.directory / name) for name in names))

    def context(self, client: trustme.CA | None) -> ssl.SSLContext:
        context = ssl.create_default_context()
        self.authority.configure_trust(context)
        if client is not None:
            client.issue_cert("agent@example.org").configure_cert(context)
        return context

    def credentials(self, client: trustme.CA | None) -> grpc.ChannelCredentials:
        trusted = self.authority.cert_pem.bytes()
        if client is None:
            return grpc.ssl_channel_credentials(trusted)
        shown = client.issue_cert("agent@example.org")
        return grpc.ssl_channel_credentials(
            trusted, shown.private_key_pem.bytes(), shown.cert_chain_pems[0].bytes()
        )


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
def receiver(tmp_path: Path, files: Files) -> Iterator[Receiving]:
    access = AccessSettings(files.tls(), files.tls(), token_file=str(files.tokens))
    with receiving(tmp_path, "own port", access) as made:
        yield made


def collect(
    receiver: Receiving, credentials: grpc.ChannelCredentials | None, token: str = "old"
) -> grpc.StatusCode:
    address = f"{HOST}:{receiver.supervisor.port}"
    if credentials is None:
        channel = grpc.insecure_channel(address)
    else:
        channel = grpc.secure_channel(address, credentials)
    with channel:
        try:
            send = channel.stream_unary(COLLECT)
            send(iter([b"x"]), timeout=TIMEOUT_S, metadata=[("authentication", token)])
        except grpc.RpcError as error:
            return error.code()
    return grpc.StatusCode.OK


def post(receiver: Receiving, context: ssl.SSLContext | None, token: str = "old") -> int:
    """0 when no connection could be made."""
    scheme = "http" if context is None else "https"
    try:
        with httpx.Client(verify=context or True, trust_env=False, timeout=TIMEOUT_S) as http:
            return http.post(
                f"{scheme}://{HOST}:{receiver.http_port}/v3/segment",
                content=SEGMENT.body,
                headers={"Authentication": token},
            ).status_code
    except httpx.TransportError:
        return 0


def test_only_who_has_the_right_certificate_and_token_is_let_in(
    receiver: Receiving, files: Files
) -> None:
    stranger, unavailable = trustme.CA(), grpc.StatusCode.UNAVAILABLE

    assert collect(receiver, None) is unavailable
    assert collect(receiver, files.credentials(None)) is unavailable
    assert collect(receiver, files.credentials(stranger)) is unavailable
    assert post(receiver, None) == 0
    assert post(receiver, files.context(None)) == 0
    assert post(receiver, files.context(stranger)) == 0
    shown = files.credentials(files.clients)
    assert collect(receiver, shown, "wrong") is grpc.StatusCode.PERMISSION_DENIED
    assert post(receiver, files.context(files.clients), "wrong") == 401
    assert receiver.kept() == []
    assert collect(receiver, shown) is grpc.StatusCode.OK
    assert post(receiver, files.context(files.clients)) == 200
    assert len(receiver.kept()) == 2


def test_a_client_that_does_not_believe_the_receiver_sends_nothing(
    receiver: Receiving, files: Files
) -> None:
    files.authority = trustme.CA()  # in the client's eyes; the receiver's files are the same

    assert collect(receiver, files.credentials(files.clients)) is grpc.StatusCode.UNAVAILABLE
    assert post(receiver, files.context(files.clients)) == 0
    assert receiver.kept() == []


def test_renewed_certificates_and_tokens_are_used_without_a_restart(
    receiver: Receiving, files: Files
) -> None:
    process = receiver.supervisor._process
    assert process is not None
    before = process.pid
    files.renew()
    files.tokens.write_text("new\n")

    assert collect(receiver, files.credentials(files.clients), "new") is grpc.StatusCode.OK
    assert post(receiver, files.context(files.clients), "new") == 200
    assert post(receiver, files.context(files.clients), "old") == 401
    eventually(
        lambda: 'receiver_calls_denied_total{reason="wrong_token"} 1' in receiver.registry.render(),
        TIMEOUT_S,
        "the count has reached the parent",
    )
    assert receiver.supervisor._process is process
    assert process.pid == before


def test_what_is_no_handshake_is_closed(receiver: Receiving) -> None:
    for port in (receiver.supervisor.port, receiver.http_port):
        with socket.create_connection((HOST, port), TIMEOUT_S) as client:
            client.sendall(b"POST /v3/segment HTTP/1.1\r\nHost: x\r\n\r\n")
            assert not client.recv(100).startswith(b"HTTP")


@pytest.mark.parametrize("spoil", ["server.key", "server.pem", "clients.pem", "tokens"])
def test_a_file_that_cannot_be_used_is_named_before_anything_starts(
    files: Files, spoil: str
) -> None:
    (files.directory / spoil).unlink()
    access = AccessSettings(files.tls(), TlsFiles(), token_file=str(files.tokens))

    with pytest.raises(ConfigError, match=spoil):
        access.check()


def test_settings_travel_as_they_are(files: Files) -> None:
    from dataclasses import asdict

    access = AccessSettings(files.tls(), TlsFiles("a", "b"), "token", "file")

    assert AccessSettings.of(asdict(access)) == access
    assert "token" not in repr(access).replace("token_file", "")
