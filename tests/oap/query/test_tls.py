"""Queries over TLS: renewed certificates need no restart, as on every other port."""

from __future__ import annotations

import ssl
from pathlib import Path

import httpx
import pytest
import trustme

from skyfarer.wire.tls import HTTP_1, ServerTls, ServerTlsSettings

HOST = "127.0.0.1"


def issue(authority: trustme.CA, certificate: Path, key: Path) -> ssl.SSLContext:
    """Writes the server's files; what a client needs to believe them."""
    made = authority.issue_cert(HOST)
    made.private_key_pem.write_to_path(key)
    made.cert_chain_pems[0].write_to_path(certificate)
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def version(port: int, context: ssl.SSLContext) -> str:
    with httpx.Client(verify=context, trust_env=False, timeout=30) as http:
        answer = http.post(f"https://{HOST}:{port}/graphql", json={"query": "{ version }"})
        return answer.json()["data"]["version"]


def test_queries_are_answered_over_tls_and_in_no_other_way(oap, tmp_path: Path):
    certificate, key = tmp_path / "server.pem", tmp_path / "server.key"
    believed = issue(trustme.CA(), certificate, key)
    tls = ServerTls(ServerTlsSettings(certificate, key, protocol=HTTP_1))
    server = oap.another(oap.health, tls.context)
    server.start()
    try:
        assert version(server.port, believed)
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://{HOST}:{server.port}/healthcheck", trust_env=False, timeout=30)
        renewed = issue(trustme.CA(), certificate, key)
        assert version(server.port, renewed)
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            version(server.port, believed)
    finally:
        server.stop(5)
