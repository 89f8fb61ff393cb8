"""Our client against servers that answer as grpcio would not."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from concurrent import futures
from contextlib import suppress

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import RequestReceived
from h2.exceptions import ProtocolError

from skyfarer.base.errors import RetryableError
from skyfarer.base.units import KIB
from skyfarer.wire.framing import prefixed
from skyfarer.wire.rpc import FORWARD, Kind

COLLECT = FORWARD[Kind.SEGMENT]
KEEP_ALIVE = FORWARD[Kind.INSTANCE_PING]
TIMEOUT_S = 120.0

Clients = Callable[..., Callable[..., bytes]]


class Scripted:
    """An HTTP/2 server by hand: takes connections one by one and leaves each to the next script."""

    def __init__(self, *scripts: Callable[[H2Connection, int], None]) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.thread = threading.Thread(target=self._serve, args=(scripts,), daemon=True)
        self.thread.start()

    def _serve(self, scripts: tuple[Callable[[H2Connection, int], None], ...]) -> None:
        for script in scripts:
            peer, _ = self._listener.accept()
            # After its own GOAWAY h2 takes no more frames; the connection is over then.
            with peer, suppress(ProtocolError):
                self._converse(peer, script)
        self._listener.close()

    def _converse(self, peer: socket.socket, script: Callable[[H2Connection, int], None]) -> None:
        h2 = H2Connection(H2Configuration(client_side=False))
        h2.initiate_connection()
        peer.sendall(h2.data_to_send())
        while data := peer.recv(64 * KIB):
            for event in h2.receive_data(data):
                if isinstance(event, RequestReceived):
                    script(h2, event.stream_id)
            peer.sendall(h2.data_to_send())


def answer(h2: H2Connection, stream: int) -> None:
    h2.send_headers(stream, [(":status", "200"), ("content-type", "application/grpc")])
    h2.send_data(stream, prefixed(b"scripted"))
    h2.send_headers(stream, [("grpc-status", "0")], end_stream=True)


def go_away(h2: H2Connection, stream: int) -> None:
    h2.close_connection(last_stream_id=0)


def gateway_error(h2: H2Connection, stream: int) -> None:
    h2.send_headers(stream, [(":status", "503"), ("content-type", "text/html")], end_stream=True)


def not_found(h2: H2Connection, stream: int) -> None:
    h2.send_headers(stream, [(":status", "404")], end_stream=True)


def no_status(h2: H2Connection, stream: int) -> None:
    h2.send_headers(stream, [(":status", "200")], end_stream=True)


def refuse(h2: H2Connection, stream: int) -> None:
    h2.reset_stream(stream, ErrorCodes.REFUSED_STREAM)


def huge_answer(h2: H2Connection, stream: int) -> None:
    h2.send_headers(stream, [(":status", "200"), ("content-type", "application/grpc")])
    h2.send_data(stream, b"\x00\xff\xff\xff\xff")


def test_a_call_that_the_server_did_not_begin_before_going_away_is_retryable(
    client: Clients,
) -> None:
    server = Scripted(go_away, answer)
    send = client(server.port)
    with pytest.raises(RetryableError, match="going away"):
        send(COLLECT, [b"x"])
    assert send(COLLECT, [b"x"]) == b"scripted"


@pytest.mark.parametrize(
    ("script", "error", "text"),
    [
        (gateway_error, RetryableError, "UNAVAILABLE: HTTP status 503"),
        (not_found, RetryableError, "UNAVAILABLE: HTTP status 404"),
        (no_status, RetryableError, "UNKNOWN"),
        (refuse, RetryableError, "UNAVAILABLE"),
        (huge_answer, RetryableError, "RESOURCE_EXHAUSTED"),
    ],
)
def test_an_answer_that_is_not_quite_grpc_is_an_error_and_the_connection_goes_on(
    client: Clients, script: Callable[[H2Connection, int], None], error: type, text: str
) -> None:
    def first_only(h2: H2Connection, stream: int) -> None:
        (script if stream == 1 else answer)(h2, stream)

    send = client(Scripted(first_only).port)
    with pytest.raises(error, match=text):
        send(KEEP_ALIVE, [b"x"])
    assert send(KEEP_ALIVE, [b"x"]) == b"scripted"


def test_a_server_that_speaks_no_http2_is_retryable(client: Clients) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        send = client(listener.getsockname()[1], connect_timeout_s=0.3)
        with pytest.raises(RetryableError, match="no connection within"):
            send(COLLECT, [b"x"])
        peer, _ = listener.accept()
        peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" + bytes(100))
        with futures.ThreadPoolExecutor(1) as pool:
            call = pool.submit(send, COLLECT, [b"x"])
            peer, _ = listener.accept()
            peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" + bytes(100))
            with pytest.raises(RetryableError):
                call.result(TIMEOUT_S)
