"""A Prometheus fetcher against real servers: our own telemetry port, and some that misbehave."""

from __future__ import annotations

import asyncio
import gzip
import logging
import ssl
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trustme

from satellite.fetchers.log_rig import KIB, settings
from skyfarer.base.clock import SystemClock
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.errors import QueueFull
from skyfarer.queue.reader import Reader
from skyfarer.queue.writer import Writer
from skyfarer.satellite.fetchers.prometheus.config import PrometheusFetcherConfig
from skyfarer.satellite.fetchers.prometheus.fetcher import PrometheusFetcher
from skyfarer.telemetry import table
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.http import TelemetryServer
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.programs import free_port
from skyfarer.wire.generated.meter_pb2 import MeterDataCollection
from skyfarer.wire.rpc import Kind

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%b\r\n"


class Bench:
    def __init__(self, place: Path) -> None:
        self.writer = Writer(settings(place / "queue", record_bytes_max=400 * KIB))
        self.writer.start()
        self.place = place
        self.registry = Registry(table.SATELLITE)
        self.health = Health()

    def fetcher(self, *targets: str, **keys: Any) -> PrometheusFetcher:
        config = PrometheusFetcherConfig(targets, "orders", **keys)
        parts = (self.place, SystemClock(), self.registry, self.health)
        return PrometheusFetcher(config, self.writer, *parts)

    async def scraped(self, target: str, **keys: Any) -> dict[str, float]:
        """The single values that one scrape brought, by name, labels but for `path` left out."""
        fetcher = self.fetcher(target, **keys)
        secure = target.startswith("https")
        one = PrometheusFetcherConfig((target,), "orders", enable_tls=secure).addresses()[0]
        await fetcher.fetch(one)
        return self.values()

    def values(self) -> dict[str, float]:
        return {one.singleValue.name: one.singleValue.value for one in self.meters()}

    def meters(self) -> list[Any]:
        reader = Reader(self.place / "queue")
        reader.start()
        runs = list(reader.runs(0, reader.writing()))
        assert {kind for run in runs for kind in run.kinds()} <= {Kind.METER_COLLECTION}
        found = [bytes(payload) for run in runs for payload in run.payloads() if payload]
        return [one for each in found for one in MeterDataCollection.FromString(each).meterData]

    def outcomes(self) -> set[str]:
        lines = self.registry.render().splitlines()
        rows = [line for line in lines if line.startswith("gatherer_scrapes_total{")]
        return {row.split('outcome="')[1].split('"')[0] for row in rows}


@pytest.fixture
def bench(tmp_path: Path):
    made = Bench(tmp_path)
    yield made
    made.writer.stop(0.0)


@asynccontextmanager
async def serving(handler: Handler, secure: ssl.SSLContext | None = None):
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await handler(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=secure)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def answering(*data: bytes) -> Handler:
    async def handle(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for part in data:
            writer.write(part)
            await writer.drain()

    return handle


def test_a_real_exposition_becomes_meters_with_up_and_duration(bench: Bench, run) -> None:
    async def scenario() -> dict[str, float]:
        theirs = Registry(table.SATELLITE)
        theirs.inc(table.SENDER_BYTES, 123)
        health = Health()
        health.started()
        server = TelemetryServer("127.0.0.1", 0, theirs, health)
        await server.start()
        values = await bench.scraped(f"127.0.0.1:{server.port}", job="shop", labels={"env": "test"})
        await server.stop(1.0)
        return values

    values = run(scenario())
    assert values["sender_bytes_total"] == 123
    assert values["up"] == 1
    assert values["scrape_samples_scraped"] == len(values) - 3
    assert values["scrape_duration_seconds"] > 0
    first = bench.meters()[0]
    labels = {label.name: label.value for label in first.singleValue.labels}
    assert (first.service, first.serviceInstance) == ("orders", labels["instance"])
    assert (labels["job"], labels["env"]) == ("shop", "test")
    assert bench.outcomes() == {"ok"}


def test_a_target_that_is_away_is_down_and_counted(bench: Bench, run, caplog) -> None:
    values = run(bench.scraped(f"127.0.0.1:{free_port()}"))

    assert values["up"] == 0 and values["scrape_samples_scraped"] == 0
    assert bench.outcomes() == {"unreachable"}
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ([b"HTTP/1.1 503 Away\r\nContent-Length: 0\r\n\r\n"], "status"),
        ([b"hello\r\n\r\n"], "malformed"),
        ([b""], "malformed"),
        ([HEAD % (100, b""), b"up 1\n"], "malformed"),
        ([HEAD % (13, b""), b"<html></html>"], "malformed"),
        ([HEAD % (9, b"Content-Encoding: br\r\n"), b"whatever!"], "malformed"),
        ([HEAD % (9, b"Content-Encoding: gzip\r\n"), b"whatever!"], "malformed"),
        ([HEAD % (9000, b""), b"a 1\n" * 2250], "too_large"),
        ([HEAD % (70, b""), b"a 1\nb 1\n" * 8 + b"c 1\nd\n"], "too_large"),
        ([b"HTTP/1.1 200 OK\r\n" + b"X: " + b"x" * 100_000], "malformed"),
    ],
)
def test_a_bad_answer_is_a_failed_scrape(bench: Bench, run, answer, outcome: str) -> None:
    async def scenario() -> dict[str, float]:
        async with serving(answering(*answer)) as target:
            return await bench.scraped(target, max_body_bytes=8 * KIB, max_samples=16)

    values = run(scenario())
    assert values["up"] == 0 and len(values) == 3
    assert bench.outcomes() == {outcome}


def test_a_bomb_is_stopped_at_the_bound(bench: Bench, run) -> None:
    bomb = gzip.compress(b"a 1\n" * 4_000_000)

    async def scenario() -> dict[str, float]:
        head = HEAD % (len(bomb), b"Content-Encoding: gzip\r\n")
        async with serving(answering(head, bomb)) as target:
            return await bench.scraped(target, max_body_bytes=64 * KIB)

    assert run(scenario())["up"] == 0
    assert bench.outcomes() == {"too_large"}


def test_gzip_and_chunks_are_read(bench: Bench, run) -> None:
    body = gzip.compress(b"taken_total 5\nbad line\n")
    chunks = [b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:9], body[9:])]
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"

    async def scenario() -> dict[str, float]:
        async with serving(answering(head, *chunks, b"0\r\n\r\n")) as target:
            return await bench.scraped(target)

    values = run(scenario())
    assert (values["up"], values["taken_total"]) == (1, 5)
    assert 'gatherer_scrape_samples_total{outcome="malformed"} 1' in bench.registry.render()


def test_a_slow_target_is_given_up_in_time(bench: Bench, run) -> None:
    async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD % (1000, b""))
        while True:
            writer.write(b"a")
            await writer.drain()
            await asyncio.sleep(0.02)

    async def scenario() -> dict[str, float]:
        async with serving(drip) as target:
            return await bench.scraped(target, timeout="200ms")

    assert run(scenario())["up"] == 0
    assert bench.outcomes() == {"timeout"}


def test_the_token_is_read_again_for_each_scrape(bench: Bench, run, tmp_path: Path) -> None:
    seen: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(HEAD % (4, b"") + b"a 1\n")
        writer.close()

    async def scenario() -> None:
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        target = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for token in ("one", "two"):
            (tmp_path / "token").write_text(f"{token}\n")
            await bench.scraped(target, bearer_token_file=str(tmp_path / "token"))
        server.close()

    run(scenario())
    assert b"authorization: Bearer one\r\n" in seen[0]
    assert b"authorization: Bearer two\r\n" in seen[1]


def test_a_target_may_speak_tls_and_must_be_who_it_says(bench: Bench, run, tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    secure = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(secure)

    async def scenario() -> None:
        async with serving(answering(HEAD % (4, b"") + b"a 1\n"), secure) as target:
            believed = {"enable_tls": True, "ca_pem_path": tmp_path / "ca.pem"}
            assert (await bench.scraped(f"https://{target}", **believed))["a"] == 1
            await bench.scraped(f"https://{target}", enable_tls=True)

    run(scenario())
    assert bench.outcomes() == {"ok", "unreachable"}


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while True:
            if holds():
                return
            await asyncio.sleep(0.01)


def test_targets_are_asked_time_and_again_and_one_that_is_away_harms_no_other(
    bench: Bench, run, caplog
) -> None:
    caplog.set_level(logging.INFO)

    async def scenario() -> None:
        async with serving(answering(HEAD % (4, b"") + b"a 1\n")) as target:
            away = f"127.0.0.1:{free_port()}"
            fetcher = bench.fetcher(target, away, interval="2s", timeout="2s")
            await fetcher.start()
            await fetcher.start()
            await until(lambda: bench.writer.writing >= 4)
            await fetcher.stop(1.0)
            await fetcher.stop(1.0)

    run(scenario())
    ups = [one.singleValue.value for one in bench.meters() if one.singleValue.name == "up"]
    assert 1.0 in ups and 0.0 in ups
    assert bench.outcomes() == {"ok", "unreachable"}
    assert len([one for one in caplog.records if "prometheus-fetcher" in one.message]) == 1


def test_a_full_queue_is_waited_for(bench: Bench, run) -> None:
    for count in (1000, 1):
        with suppress(QueueFull):
            while True:
                bench.writer.append(Kind.METER_COLLECTION, [b""] * count)
    full_at = bench.writer.writing

    async def scenario() -> None:
        async with serving(answering(HEAD % (4, b"") + b"a 1\n")) as target:
            scraping = asyncio.ensure_future(bench.scraped(target))
            await until(lambda: "gatherer_scrapes_total{" in bench.registry.render())
            done, _ = await asyncio.wait({scraping}, timeout=0.2)
            assert not done and bench.writer.writing == full_at
            consumer = Consumer(bench.place / "queue", "main")
            consumer.start()
            consumer.commit(full_at)
            assert (await scraping)["a"] == 1
            consumer.stop()

    run(scenario())
    assert bench.writer.writing == full_at + 1
