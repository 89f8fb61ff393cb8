"""A pipe whose records come from a fetcher, in a whole satellite."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from skyfarer.wire.messages import log, meter
from skyfarer.wire.rpc import Kind

CONFIG = """
data_directory: ${SKYFARER_SATELLITE_DATA_DIR}
telemetry: {prometheus: {address: "127.0.0.1:0"}}
sharing:
  clients: [{plugin_name: grpc-client, server_addr: "${SATELLITE_GRPC_CLIENT}"}]
  servers: [{plugin_name: grpc-server, address: "127.0.0.1:0"}]
pipes:
  - common_config: {pipe_name: files}
    gatherer:
      fetcher: {plugin_name: log-fetcher, paths: "LOGS/*.log", service: SERVICE, interval: 100ms}
    processor:
      filters: [{plugin_name: log-parser, fields: "level"}]
    sender: {client_name: grpc-client, flush_time: 20}
"""


def bodies(upstream: Any) -> list[str]:
    payloads = upstream.payloads(Kind.LOG)
    return [log.LogData.FromString(one).body.text.text for one in payloads]


def test_lines_of_files_arrive_filtered_once_and_on_through_reloads(
    rig: Callable[..., Any], tmp_path: Path
) -> None:
    logs, file = tmp_path / "logs", tmp_path / "mine.yaml"
    logs.mkdir()
    text = CONFIG.replace("LOGS", str(logs))
    file.write_text(text.replace("SERVICE", "order"))
    lines = [f'{{"level": "info", "number": {number}}}' for number in range(20)]

    async def scenario() -> None:
        async with rig(config=file) as r:
            (logs / "a.log").write_text("".join(f"{line}\n" for line in lines[:10]))
            await r.until(lambda: len(bodies(r.upstream)) == 10)
            file.write_text(text.replace("SERVICE", "orders"))
            await r.satellite.reload(r.load())
            with (logs / "a.log").open("a") as more:
                more.writelines(f"{line}\n" for line in lines[10:])
            await r.until(lambda: len(bodies(r.upstream)) >= 20)
            await r.until_empty()
            assert bodies(r.upstream) == lines
            last = log.LogData.FromString(r.upstream.payloads(Kind.LOG)[-1])
            assert last.service == "orders"
            assert [(tag.key, tag.value) for tag in last.tags.data if tag.key == "level"] == [
                ("level", "info")
            ]
            assert r.satellite.ledger().delivered == 20
            _, metrics = await r.get("/metrics")
            assert 'gatherer_fetch_count{pipe="files",status="all"} 20' in metrics

    asyncio.run(scenario())


SCRAPED = """
data_directory: ${SKYFARER_SATELLITE_DATA_DIR}
telemetry: {prometheus: {address: "127.0.0.1:0"}}
sharing:
  clients: [{plugin_name: grpc-client, server_addr: "${SATELLITE_GRPC_CLIENT}"}]
  servers: [{plugin_name: grpc-server, address: "127.0.0.1:0"}]
pipes:
  - common_config: {pipe_name: scraped}
    gatherer:
      fetcher:
        plugin_name: prometheus-fetcher
        targets: 127.0.0.1:PORT
        service: other-satellite
        interval: 500ms
        timeout: 500ms
    sender: {client_name: grpc-client, flush_time: 20}
"""


def test_a_satellite_can_scrape_another(rig: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"

    async def scenario() -> None:
        async with rig() as scraped:
            port = str(scraped.satellite.telemetry.port)
            file.write_text(SCRAPED.replace("PORT", port))
            async with rig(config=file, SKYFARER_SATELLITE_DATA_DIR=str(tmp_path / "b")) as r:
                await r.until(lambda: r.upstream.payloads(Kind.METER_COLLECTION))
                payload = r.upstream.payloads(Kind.METER_COLLECTION)[0]
                found = meter.MeterDataCollection.FromString(payload).meterData
                assert found[0].service == "other-satellite"
                assert "queue_accepted_total" in {one.singleValue.name for one in found}

    asyncio.run(scenario())
