"""R5: clients that connect and say nothing, or never come to an end."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from h2.config import H2Configuration
from h2.connection import H2Connection

from satellite.faults.agents import COLLECT
from satellite.faults.siege import WAIT_S, besieged
from skyfarer.base.units import KIB, MIB
from skyfarer.satellite.config import DEFAULT_FILE
from skyfarer.testing.programs import eventually
from skyfarer.wire.framing import prefixed

EACH = 60
GROWTH_BYTES_MAX = 16 * MIB
OPENINGS = (b"", b"PRI * HTTP/2.0\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
SIZE_LINE = "      max_recv_msg_size: ${SKYFARER_SATELLITE_GRPC_MAX_RECV_MSG_SIZE:2097152}\n"
GIVEN_UP = f'receiver_calls_total{{rpc="{COLLECT}",status="DEADLINE_EXCEEDED"}}'


def impatient(directory: Path) -> Path:
    """A minute for a message is right, and too long for a test."""
    shipped = DEFAULT_FILE.read_text()
    assert SIZE_LINE in shipped
    file = directory / "satellite.yaml"
    file.write_text(shipped.replace(SIZE_LINE, SIZE_LINE + "      message_timeout: 1s\n"))
    return file


def unfinished_call(peer: socket.socket) -> None:
    """Half of a message; the rest drips, and never all of it."""
    h2 = H2Connection(H2Configuration(client_side=True))
    h2.initiate_connection()
    headers = {":method": "POST", ":scheme": "http", ":path": COLLECT, ":authority": "x"}
    h2.send_headers(1, [*headers.items(), ("content-type", "application/grpc"), ("te", "trailers")])
    h2.send_data(1, prefixed(bytes(20 * KIB))[: 10 * KIB])
    peer.sendall(h2.data_to_send())


@contextmanager
def dripping(peers: list[socket.socket]) -> Iterator[None]:
    ended = threading.Event()

    def drip() -> None:
        while not ended.wait(0.2):
            for peer in peers:
                try:
                    peer.send(b"\x00\x00\x01\x00\x00\x00\x00\x00\x01x", socket.MSG_DONTWAIT)
                except OSError:
                    continue

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(WAIT_S)


def test_clients_that_never_come_to_the_point_are_shown_the_door(tmp_path: Path) -> None:
    with (
        besieged(tmp_path, GROWTH_BYTES_MAX, impatient(tmp_path)) as siege,
        ExitStack() as stack,
    ):
        port, metrics = siege.satellite.grpc_port, siege.satellite.metrics

        def connected() -> socket.socket:
            return stack.enter_context(socket.create_connection(("127.0.0.1", port), WAIT_S))

        # Those first who speak at once: the others may be late, and are.
        slow = list[socket.socket]()
        for _ in range(EACH):
            slow.append(connected())
            unfinished_call(slow[-1])
        for number in range(EACH * len(OPENINGS)):
            connected().sendall(OPENINGS[number % len(OPENINGS)])
        with dripping(slow):
            eventually(lambda: metrics().get(GIVEN_UP, 0) == EACH, WAIT_S, "slow calls to end")
            refused = 'receiver_connections_refused_total{reason="handshake_timeout"}'
            silent = EACH * len(OPENINGS)
            eventually(lambda: metrics().get(refused, 0) == silent, WAIT_S, "silent ones to go")
