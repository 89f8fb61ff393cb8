"""What a careless or hostile client cannot do."""

from __future__ import annotations

import asyncio
import gzip
import socket
import tracemalloc
import zlib

import pytest

from skyfarer.base.units import KIB, MIB
from skyfarer.wire.http import exchange
from skyfarer.wire.http.exchange import HEADER_BYTES_MAX
from skyfarer.wire.http.server import HttpSettings
from skyfarer.wire.rpc import Kind
from wire.http.rig import HOST, WAIT_S, Rig, read_all, run

LOG = b"\n\x04shop"  # a protobuf message of one field


def message(size: int) -> bytes:
    """Well-formed protobuf of that many bytes, from 131 to 16 KiB."""
    length = size - 3
    return b"\n" + bytes([length & 0x7F | 0x80, length >> 7]) + b"x" * length


def head(more: str) -> bytes:
    return f"POST /logging HTTP/1.1\r\nHost: x\r\n{more}\r\n\r\n".encode()


def test_a_body_is_taken_up_to_its_bound_and_not_beyond() -> None:
    async def talk(rig: Rig) -> None:
        assert (await rig.post("/logging", message(KIB))).status == 200
        answer = await rig.post("/logging", message(KIB + 1))
        assert answer.status == 413
        assert "more than 1024 bytes" in answer.text
        assert [len(one) for _, one in rig.kept] == [KIB]

    run(Rig(body_bytes_max=KIB), talk)


def test_a_body_announced_too_large_is_refused_before_it_is_sent() -> None:
    async def talk(rig: Rig) -> None:
        reader, writer = await rig.open()
        writer.write(head(f"Expect: 100-continue\r\nContent-Length: {KIB + 1}"))
        assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 413 ")
        writer.close()

    run(Rig(body_bytes_max=KIB), talk)


def test_a_client_that_sends_far_too_much_still_reads_its_refusal() -> None:
    async def talk(rig: Rig) -> None:
        answer = await rig.post("/logging", b"x" * 4 * MIB)

        assert answer.status == 413
        assert answer.headers["connection"] == "close"

    run(Rig(), talk)


def test_chunks_without_an_announced_size_are_bounded_as_well() -> None:
    async def talk(rig: Rig) -> None:
        chunk = b"100\r\n" + b"x" * 256 + b"\r\n"

        heard = await rig.say(head("Transfer-Encoding: chunked") + chunk * 5)

        assert heard.startswith(b"HTTP/1.1 413")

    run(Rig(body_bytes_max=KIB), talk)


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_bomb_is_cut_off_at_the_bound_while_it_is_inflated(encoding: str) -> None:
    compress = gzip.compress if encoding == "gzip" else zlib.compress
    bomb = compress(bytes(50 * MIB), 1)

    async def talk(rig: Rig) -> None:
        tracemalloc.start()
        answer = await rig.post("/logging", bomb, {"Content-Encoding": encoding})
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()

        assert answer.status == 413
        assert "inflates to more than" in answer.text
        assert peak_bytes < 10 * MIB
        assert rig.server.held.bytes == 0

    run(Rig(), talk)


def test_an_inflated_body_may_be_exactly_as_large_as_the_bound() -> None:
    async def talk(rig: Rig) -> None:
        body = message(KIB)
        answer = await rig.post("/logging", gzip.compress(body), {"Content-Encoding": "gzip"})

        assert answer.status == 200
        assert rig.kept == [(Kind.LOG, body)]

    run(Rig(body_bytes_max=KIB), talk)


def test_bodies_that_arrive_at_once_are_bounded_together() -> None:
    async def talk(rig: Rig) -> None:
        size = 2 * MIB
        halves = []
        for _ in range(HttpSettings.held_bytes_max // size):
            reader, writer = await rig.open()
            writer.write(head(f"Content-Length: {size}") + b"x" * (size - 1))
            halves.append((reader, writer))
        await rig.until(lambda: rig.server.held.bytes >= HttpSettings.held_bytes_max - KIB)

        answer = await rig.post("/logging", message(2 * KIB))
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")

        for _, writer in halves:
            writer.transport.abort()
        await rig.until(lambda: rig.server.held.bytes == 0)
        assert (await rig.post("/logging", message(2 * KIB))).status == 200

    run(Rig(), talk)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"400"),
        (b"POST /logging HTTP/1.1\r\n\r\n", b"400"),
        (b"POST /logging HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 2 * HEADER_BYTES_MAX, b"431"),
        (head("Content-Length: 5\r\nContent-Length: 6") + LOG, b"400"),
        (head("Content-Length: -1"), b"400"),
        (head("Content-Length: " + "9" * 30), b"400"),
        (head("Transfer-Encoding: chunked") + b"zz\r\n", b"400"),
        (head("Transfer-Encoding: gzip") + LOG, b"501"),
    ],
)
def test_what_is_no_http_is_refused_and_the_connection_closed(data: bytes, status: bytes) -> None:
    async def talk(rig: Rig) -> None:
        heard = await rig.say(data)

        assert heard.split(b" ", 2)[1] == status
        assert rig.metric('receiver_connections_refused_total{reason="protocol_error"}') == 1
        assert not rig.kept
        assert (await rig.post("/logging", LOG)).status == 200

    run(Rig(), talk)


def test_a_header_that_drips_is_cut_off_however_busy_it_looks() -> None:
    async def talk(rig: Rig) -> None:
        reader, writer = await rig.open()
        writer.write(b"POST /logging HTTP/1.1\r\nHost: x\r\n")
        reading = asyncio.create_task(read_all(reader))
        while not reading.done():
            writer.write(b"X: y\r\n")
            await asyncio.sleep(0.01)
        assert await reading == b""
        assert rig.metric('receiver_connections_refused_total{reason="handshake_timeout"}') == 1

    run(Rig(header_timeout_s=0.1), talk)


def test_a_body_that_drips_is_answered_408() -> None:
    async def talk(rig: Rig) -> None:
        reader, writer = await rig.open()
        writer.write(head("Content-Length: 100000"))
        reading = asyncio.create_task(reader.readuntil(b"\r\n"))
        while not reading.done():
            writer.write(b"x")
            await asyncio.sleep(0.01)
        assert await reading == b"HTTP/1.1 408 Request Timeout\r\n"
        writer.close()

    run(Rig(body_timeout_s=0.1), talk)


def test_a_connection_without_a_request_is_closed_before_and_after_its_first() -> None:
    async def talk(rig: Rig) -> None:
        assert await rig.say(b"") == b""
        heard = await rig.say(head(f"Content-Length: {len(LOG)}") + LOG)

        assert heard.startswith(b"HTTP/1.1 200")
        assert rig.metric('receiver_connections_refused_total{reason="idle"}') == 2

    run(Rig(idle_timeout_s=0.1), talk)


def test_connections_are_bounded_in_all_and_from_one_address() -> None:
    async def talk(rig: Rig) -> None:
        pairs = [await rig.open() for _ in range(2)]
        await rig.until(lambda: rig.metric("receiver_connections ") == 2)
        assert await rig.say(head(f"Content-Length: {len(LOG)}") + LOG) == b""
        assert rig.metric('receiver_connections_refused_total{reason="too_many_from_source"}') == 1

        elsewhere = await asyncio.open_connection(HOST, rig.port, local_addr=("127.0.0.2", 0))
        await rig.until(lambda: rig.metric("receiver_connections ") == 3)
        last = await asyncio.open_connection(HOST, rig.port, local_addr=("127.0.0.3", 0))
        assert await read_all(last[0]) == b""
        assert rig.metric('receiver_connections_refused_total{reason="too_many"}') == 1

        for _, writer in (*pairs, elsewhere, last):
            writer.close()
        await rig.until(lambda: rig.metric("receiver_connections ") == 0)
        assert (await rig.post("/logging", LOG)).status == 200

    run(Rig(connections_max=3, connections_per_source_max=2), talk)


def test_a_client_that_never_reads_its_answers_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "OUTPUT_STALL_S", 0.1)

    async def talk(rig: Rig) -> None:
        body = b"nonsense" * 100
        request = b"POST /v3/segment HTTP/1.1\r\nHost: x\r\nContent-Length: 800\r\n\r\n" + body
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * KIB)
        client.connect((HOST, rig.port))
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(2 * WAIT_S):
            with pytest.raises(ConnectionError):
                while True:
                    await loop.sock_sendall(client, request * 10)
        refused = 'receiver_connections_refused_total{reason="output_stalled"}'
        await rig.until(lambda: rig.metric(refused) == 1)
        client.close()

    run(Rig(), talk)


def test_a_stop_lets_a_request_end_and_closes_who_has_none() -> None:
    async def talk(rig: Rig) -> None:
        idle_reader, idle_writer = await rig.open()
        reader, writer = await rig.open()
        writer.write(head("Content-Length: 6") + LOG[:3])
        await rig.until(lambda: rig.server.held.bytes == 3)

        stopping = asyncio.create_task(rig.server.stop(WAIT_S))
        assert await read_all(idle_reader) == b""
        writer.write(LOG[3:])
        heard = await read_all(reader)
        await stopping

        assert heard.startswith(b"HTTP/1.1 200")
        assert b"connection: close" in heard.lower()
        assert len(rig.kept) == 1
        with pytest.raises(ConnectionRefusedError):
            await rig.open()
        idle_writer.close()
        writer.close()

    run(Rig(), talk)


def test_a_stop_cuts_off_who_takes_too_long() -> None:
    async def talk(rig: Rig) -> None:
        reader, writer = await rig.open()
        writer.write(head("Content-Length: 6") + LOG[:3])
        await rig.until(lambda: rig.server.held.bytes == 3)

        await rig.server.stop(0.05)

        assert await read_all(reader) == b""
        assert rig.metric("receiver_connections ") == 0
        assert rig.server.held.bytes == 0
        writer.close()

    run(Rig(), talk)


def test_a_server_that_never_started_can_be_stopped() -> None:
    asyncio.run(Rig().server.stop(1.0))
