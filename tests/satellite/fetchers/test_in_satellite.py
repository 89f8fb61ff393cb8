"""Fetchers in a whole satellite: files and targets on one side, an upstream on the other."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

from skyfarer.base.clock import SystemClock
from skyfarer.satellite.app import Satellite
from skyfarer.satellite.config import load
from skyfarer.testing.upstream import Upstream
from skyfarer.wire.generated.log_pb2 import LogData
from skyfarer.wire.generated.meter_pb2 import MeterDataCollection
from skyfarer.wire.rpc import Kind

CONFIG = """
data_directory: {place}/data
memory_limit: 0
telemetry: {{prometheus: {{address: "127.0.0.1:0"}}}}
sharing:
  clients: [{{plugin_name: grpc-client, server_addr: "{upstream}"}}]
  servers: [{{plugin_name: grpc-server, address: "127.0.0.1:0"}}]
pipes:
  - common_config: {{pipe_name: logs}}
    gatherer:
      fetcher:
        plugin_name: log-fetcher
        paths: ["{place}/*.log"]
        service: orders
        interval: 50ms
        multiline: {{first_line: "[A-Z]", timeout: 200ms}}
      queue: {{plugin_name: mmap-queue, segment_bytes: 1048576, capacity_bytes: 2097152,
               record_bytes_max: 900000}}
    sender: {{client_name: grpc-client, flush_time: 20}}
  - common_config: {{pipe_name: metrics}}
    gatherer:
      fetcher: {{plugin_name: prometheus-fetcher, targets: ["{target}"], service: orders,
                 interval: 200ms, timeout: 200ms}}
    sender: {{client_name: grpc-client, flush_time: 20}}
"""


def logs(upstream: Upstream) -> list[str]:
    return [LogData.FromString(one).body.text.text for one in upstream.payloads(Kind.LOG)]


def meters(upstream: Upstream) -> set[str]:
    found = map(MeterDataCollection.FromString, upstream.payloads(Kind.METER_COLLECTION))
    return {one.singleValue.name for each in found for one in each.meterData}


def satellite(place: Path, upstream: Upstream, target: str) -> Satellite:
    text = CONFIG.format(place=place, upstream=upstream.address, target=target)
    (place / "satellite.yaml").write_text(text)
    return Satellite(load(place / "satellite.yaml", {}), SystemClock(), Random(1))


async def until(holds) -> None:
    async with asyncio.timeout(240):
        while True:
            if holds():
                return
            await asyncio.sleep(0.01)


def test_lines_and_meters_reach_the_upstream_once_across_a_restart_and_an_outage(
    tmp_path: Path, run
) -> None:
    """More than the queue holds: what it cannot take stays in the file, and nothing is dropped."""
    events = [f"Event {number}\n at {'x' * 400}" for number in range(20_000)]

    async def scenario() -> None:
        upstream = Upstream()
        await upstream.start()
        first = satellite(tmp_path, upstream, "127.0.0.1:1")
        await first.start()
        target = f"127.0.0.1:{first.telemetry.port}"
        with (tmp_path / "app.log").open("w") as file:
            file.write("".join(f"{event}\n" for event in events[:100]))
        await until(lambda: len(logs(upstream)) == 100)
        await upstream.stop()
        with (tmp_path / "app.log").open("a") as file:
            file.write("".join(f"{event}\n" for event in events[100:]))
        await until(lambda: first.ledger().queued > 1000)
        await first.stop(0.2)
        await upstream.start()
        second = satellite(tmp_path, upstream, target)
        await second.start()
        await until(lambda: len(logs(upstream)) >= len(events))
        await until(lambda: "up" in meters(upstream))
        assert set(logs(upstream)) == set(events)
        assert not second.ledger().dropped
        await second.stop(5.0)
        await upstream.stop()

    run(scenario())


def test_the_books_show_what_was_fetched(tmp_path: Path, run) -> None:
    async def scenario() -> None:
        upstream = Upstream()
        await upstream.start()
        one = satellite(tmp_path, upstream, "127.0.0.1:1")
        await one.start()
        (tmp_path / "app.log").write_text("One\n at\nTwo\n")
        await until(lambda: logs(upstream) == ["One\n at", "Two"])
        ledger = one.ledger()
        assert ledger.accepted == ledger.delivered + ledger.queued
        await one.stop(5.0)
        await upstream.stop()

    run(scenario())
