"""`skyfarer oap nodes`, of which tests/e2e/test_cluster.py has what it prints."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from skyfarer.cli.main import main
from skyfarer.testing.programs import free_port


def test_it_says_when_there_is_no_oap(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    monkeypatch.setenv("SW_CORE_REST_PORT", str(port))
    assert main(["oap", "nodes"]) == 1
    said = capsys.readouterr().err
    assert f"no OAP shows its nodes at http://127.0.0.1:{port}/status/cluster/nodes" in said


class Anything(BaseHTTPRequestHandler):
    answer = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.answer)

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture
def stranger() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Anything) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.parametrize("answer", [b"", b"<html>", b"[]", b'{"nodes":[5]}', b'{"nodes":[{}]}'])
def test_a_server_that_is_no_oap_is_said_to_be_none(
    answer: bytes, stranger: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Anything.answer = answer
    assert main(["oap", "nodes", "--url", stranger]) == 1
    assert f"no OAP shows its nodes at {stranger}status/cluster/nodes" in capsys.readouterr().err
