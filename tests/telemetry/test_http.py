from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable

import pytest

from skyfarer.base.errors import PermanentError
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.http import (
    BODY_BYTES_MAX,
    CONNECTIONS_MAX,
    HEADER_BYTES_MAX,
    TelemetryServer,
)
from skyfarer.telemetry.metrics import Kind, Metric, Registry
from telemetry.prometheus_text import parse

COUNT = Metric("count_total", Kind.COUNTER, "A count.")
HOST = "127.0.0.1"
PATIENT_S = 60.0


def serve(
    talk: Callable[[TelemetryServer, Health], Awaitable[None]], idle_timeout_s: float = PATIENT_S
) -> None:
    """Runs `talk` against a server of its own, of a program that has started, one counter at 3."""

    async def run() -> None:
        registry, health = Registry(), Health()
        registry.inc(COUNT, 3)
        health.started()
        server = TelemetryServer(HOST, 0, registry, health, idle_timeout_s=idle_timeout_s)
        await server.start()
        try:
            await talk(server, health)
        finally:
            await server.stop(1)
            await server.stop(1)

    asyncio.run(run())


async def ask(port: int, request: bytes) -> bytes:
    """Everything the server says to these bytes until it closes."""
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(request)
    try:
        return await asyncio.wait_for(reader.read(), 10)
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


def line(method: str, path: str, headers: str = "") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n".encode()


def test_metrics_are_shown_as_prometheus_text() -> None:
    async def talk(server: TelemetryServer, health: Health) -> None:
        head, _, body = (await ask(server.port, line("GET", "/metrics"))).partition(b"\r\n\r\n")

        assert head.startswith(b"HTTP/1.1 200")
        assert b"content-type: text/plain; version=0.0.4; charset=utf-8" in head.lower()
        assert parse(body.decode())["count_total"].samples == {(): 3}

    serve(talk)


async def answer(port: int, path: str) -> tuple[bytes, str]:
    head, _, body = (await ask(port, line("GET", path))).partition(b"\r\n\r\n")
    return head.split()[1], body.decode()


def test_health_answers_503_when_a_part_is_unwell() -> None:
    async def talk(server: TelemetryServer, health: Health) -> None:
        status, body = await answer(server.port, "/healthcheck")
        assert (status, json.loads(body)) == (b"200", {"score": 0, "details": ""})
        health.set("storage", False, "disk full")
        status, body = await answer(server.port, "/healthcheck")
        assert (status, json.loads(body)) == (b"503", {"score": 1, "details": "storage: disk full"})

    serve(talk)


def test_a_program_that_is_starting_answers_503_and_shows_no_counts() -> None:
    async def run() -> None:
        registry, health = Registry(), Health()
        registry.inc(COUNT, 3)
        listener = socket.create_server((HOST, 0))
        server = TelemetryServer(HOST, 0, registry, health, listener=listener)
        await server.start()
        status, body = await answer(server.port, "/healthcheck")
        assert (status, json.loads(body)) == (b"503", {"score": -1, "details": ""})
        assert await answer(server.port, "/metrics") == (
            b"503",
            "starting; there are no counts yet\n",
        )
        health.started()
        assert (await answer(server.port, "/metrics"))[0] == b"200"
        await server.stop(1)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (line("GET", "/"), b"404"),
        (line("GET", "/metrics/"), b"404"),
        (line("GET", "/metrics?name=x"), b"200"),
        (line("POST", "/metrics", "Content-Length: 3\r\n") + b"abc", b"405"),
        (line("DELETE", "/healthcheck"), b"405"),
        (line("HEAD", "/metrics"), b"200"),
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET /metrics HTTP/1.1\r\n\r\n", b"400"),
        (b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 2 * HEADER_BYTES_MAX, b"431"),
    ],
)
def test_every_request_gets_its_status(request_bytes: bytes, status: bytes) -> None:
    async def talk(server: TelemetryServer, health: Health) -> None:
        answer = await ask(server.port, request_bytes)

        assert answer.split(b" ", 2)[1] == status

    serve(talk)


def test_a_refused_method_is_told_the_allowed_ones_and_head_has_no_body() -> None:
    async def talk(server: TelemetryServer, health: Health) -> None:
        assert b"allow: GET, HEAD" in await ask(server.port, line("PUT", "/metrics"))
        assert (await ask(server.port, line("HEAD", "/metrics"))).endswith(b"\r\n\r\n")

    serve(talk)


def test_one_connection_serves_one_request_after_another() -> None:
    async def talk(server: TelemetryServer, health: Health) -> None:
        request = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
        answers = await ask(server.port, request + request + line("GET", "/metrics"))

        assert answers.count(b"HTTP/1.1 200") == 3

    serve(talk)


def test_an_endless_body_is_cut_off() -> None:
    async def talk(server: TelemetryServer, health: Health) -> None:
        body = b"x" * (4 * BODY_BYTES_MAX)
        headers = f"Content-Length: {len(body)}\r\n"

        assert b"200" not in await ask(server.port, line("POST", "/metrics", headers) + body)

    serve(talk)


@pytest.mark.parametrize("sent", [b"", b"GET /met", b"GET /metrics HTTP/1.1\r\nHost: x\r\n"])
def test_a_silent_client_is_let_go(sent: bytes) -> None:
    async def talk(server: TelemetryServer, health: Health) -> None:
        assert await ask(server.port, sent) == b""

    serve(talk, idle_timeout_s=0.05)


def test_connections_beyond_the_bound_are_refused_and_the_others_served() -> None:
    async def talk(server: TelemetryServer, health: Health) -> None:
        held = [await asyncio.open_connection(HOST, server.port) for _ in range(CONNECTIONS_MAX)]
        assert await ask(server.port, line("GET", "/metrics")) == b""

        reader, writer = held[0]
        writer.write(line("GET", "/metrics"))
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
        for _, writer in held:
            writer.close()

    serve(talk)


def test_a_stop_does_not_wait_for_a_connection_without_a_request() -> None:
    async def run() -> None:
        server = TelemetryServer(HOST, 0, Registry(), Health(), idle_timeout_s=3600)
        await server.start()
        reader, writer = await asyncio.open_connection(HOST, server.port)
        writer.write(b"GET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")

        await server.stop(3600)

        await reader.read()
        with pytest.raises(OSError):
            await asyncio.open_connection(HOST, server.port)
        writer.close()

    asyncio.run(run())


def test_a_taken_port_is_one_sentence() -> None:
    async def talk(server: TelemetryServer, health: Health) -> None:
        second = TelemetryServer(HOST, server.port, Registry(), Health())
        with pytest.raises(PermanentError, match=f"telemetry cannot listen on {HOST}:"):
            await second.start()
        await second.stop(1)

    serve(talk)
