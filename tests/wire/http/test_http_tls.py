from __future__ import annotations

import asyncio
import http.client
import ssl
from pathlib import Path

import pytest
import trustme

from skyfarer.base.errors import ConfigError
from wire.http.rig import HOST, PROTOBUF, Reply, Rig, reply, run


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


def files(directory: Path, authority: trustme.CA) -> tuple[Path, Path]:
    made = authority.issue_cert(HOST)
    certificate, key = directory / "server.pem", directory / "server.key"
    certificate.write_bytes(made.cert_chain_pems[0].bytes())
    key.write_bytes(made.private_key_pem.bytes())
    return certificate, key


def test_it_speaks_tls_and_chooses_http_1_1(tmp_path: Path, authority: trustme.CA) -> None:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    context.set_alpn_protocols(["h2", "http/1.1"])
    certificate, key = files(tmp_path, authority)

    def ask(port: int) -> tuple[Reply, str | None]:
        client = http.client.HTTPSConnection(HOST, port, timeout=30, context=context)
        client.request("POST", "/v1/traces", b"\n\x00", PROTOBUF)
        assert isinstance(client.sock, ssl.SSLSocket)
        chosen = client.sock.selected_alpn_protocol()
        answer = reply(client)
        client.request("GET", "/v1/traces")
        assert reply(client).status == 405
        client.close()
        return answer, chosen

    async def talk(rig: Rig) -> None:
        answer, chosen = await asyncio.to_thread(ask, rig.port)
        assert (answer.status, chosen, len(rig.kept)) == (200, "http/1.1", 1)

    run(Rig(tls=(certificate, key)), talk)


def test_files_that_are_no_certificate_are_an_error_at_start(tmp_path: Path) -> None:
    rig = Rig(tls=(tmp_path / "none.pem", tmp_path / "none.key"))

    with pytest.raises(ConfigError, match=r"none\.pem"):
        asyncio.run(rig.server.start())
