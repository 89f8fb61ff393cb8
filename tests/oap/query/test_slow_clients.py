"""Clients that do nothing, or next to nothing, are sent away; the others never notice."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Callable

import pytest

from skyfarer.oap.query import limits

TIMEOUT_S = 120.0
HALF_A_HEADER = b"POST /graphql HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Has it wait for a header next to not at all, from the call on. A client that is to be
    heard is connected and has been answered before: how long a busy machine takes to see a new
    connection's first bytes is nobody's promise."""
    return lambda: monkeypatch.setattr(limits, "HEADER_TIMEOUT_S", 0.2)


def connect(oap) -> socket.socket:
    return socket.create_connection(("127.0.0.1", oap.http.base_url.port), TIMEOUT_S)


def is_sent_away(client: socket.socket) -> bool:
    try:
        while client.recv(65536):
            pass
    except ConnectionError:
        return True
    return True


@pytest.mark.parametrize("said", [b"", b"P", HALF_A_HEADER])
def test_a_connection_without_a_whole_header_is_closed(oap, impatient, said):
    impatient()
    with connect(oap) as client:
        client.sendall(said)
        assert is_sent_away(client)


def test_a_header_that_drips_is_cut_off_however_busy_it_looks(oap, impatient):
    impatient()
    with connect(oap) as client:
        client.sendall(HALF_A_HEADER)
        done = threading.Event()

        def drip() -> None:
            while not done.wait(0.02):
                try:
                    client.sendall(b"X: y\r\n")
                except OSError:
                    return

        dripping = threading.Thread(target=drip)
        dripping.start()
        assert is_sent_away(client)
        done.set()
        dripping.join()


def test_a_body_that_was_refused_and_does_not_end_is_cut_off(oap, impatient):
    size = limits.BODY_BYTES_MAX + 65536
    with connect(oap) as client:
        client.sendall(
            b"POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (2 * size)
        )
        impatient()
        client.sendall(b"x" * size)
        assert client.recv(65536).startswith(b"HTTP/1.1 413")
        client.sendall(b"x")
        assert is_sent_away(client)


def test_a_client_keeps_its_connection_as_long_as_what_it_begins_is_a_request(oap, impatient):
    client = http.client.HTTPConnection("127.0.0.1", oap.http.base_url.port, timeout=TIMEOUT_S)
    client.connect()
    connection = client.sock
    for _ in range(3):
        client.request("GET", "/healthcheck")
        answer = client.getresponse()
        assert (answer.status, bool(answer.read())) == (200, True)
        impatient()
        threading.Event().wait(2 * limits.HEADER_TIMEOUT_S)
    assert client.sock is connection

    connection.sendall(HALF_A_HEADER)
    assert is_sent_away(connection)
    client.close()


def test_a_slow_answer_is_waited_for(oap, impatient):
    assert oap.http.get("/healthcheck").status_code == 200
    impatient()
    oap.reader.gate.clear()
    timer = threading.Timer(2 * limits.HEADER_TIMEOUT_S, oap.reader.gate.set)
    timer.start()

    assert oap.ask("{ listServices { name } }") == {"listServices": []}
    timer.join()
