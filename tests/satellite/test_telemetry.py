from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Callable
from typing import Any

from skyfarer.base.units import MIB

NAMES = (
    "gatherer_writing_offset",
    "gatherer_watermark_offset",
    "processor_reading_count",
    "sender_committed_offset",
    "queue_accepted_total",
    "queue_delivered_total",
    "queue_queued_records",
    "queue_capacity_seconds",
    "queue_free_seconds",
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "process_threads",
    "satellite_tasks",
    "satellite_own_memory_bytes",
    "gatherer_receive_count",
    "queue_output_count",
    "sender_output_count",
    "pipeline_queue_total_capacity",
    "pipeline_queue_partition_size",
    "grpc_server_cpu_percent",
    "grpc_server_connection_count",
)


def test_metrics_have_the_names_of_the_design_document_and_the_ledger(
    rig: Callable[..., Any],
) -> None:
    async def scenario() -> None:
        async with rig() as r:
            await r.collect([b"one", b"two", b"three"])
            await r.until_empty()
            status, text = await r.get("/metrics")
            samples = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
            assert status == 200
            for name in NAMES:
                assert any(key.partition("{")[0] == name for key in samples), name
            assert samples["queue_accepted_total"] == "3"
            assert samples["queue_delivered_total"] == "3"
            assert samples['sender_committed_offset{pipe="native"}'] == "3"
            assert samples['sender_records_total{pipe="native"}'] == "3"
            counted = 'pipe="native",status="success",type="TracingType"'
            assert samples[f"sender_output_count{{{counted}}}"] == "3"
            assert samples['queue_output_count{pipe="native",status="success"}'] == "3"
            assert samples["grpc_server_connection_count"] == "1"

    asyncio.run(scenario())


_SECONDS = r'^queue_(?:capacity|free)_seconds{queue="native"} (.+)$'


def test_metrics_say_how_many_seconds_the_queue_lasts_at_the_rate_it_is_written(
    rig: Callable[..., Any],
) -> None:
    async def scenario() -> None:
        async with rig(up=False, SKYFARER_SATELLITE_QUEUE_CAPACITY_BYTES=str(64 * MIB)) as r:

            async def seconds() -> tuple[float, float]:
                text = (await r.get("/metrics"))[1]
                capacity, free = re.findall(_SECONDS, text, re.M)
                return float(capacity), float(free)

            assert await seconds() == (math.inf, math.inf)
            await r.collect([bytes(1024)] * 100)
            async with asyncio.timeout(240):
                while True:
                    capacity_s, free_s = await seconds()
                    if capacity_s < math.inf:
                        break
                    await asyncio.sleep(0.1)
            assert 0 < free_s < capacity_s

    asyncio.run(scenario())


def test_a_satellite_whose_upstream_is_down_is_healthy(rig: Callable[..., Any]) -> None:
    async def scenario() -> None:
        async with rig(up=False) as r:
            await r.collect([b"one"])
            status, body = await r.get("/healthcheck")
            assert (status, json.loads(body)["score"]) == (200, 0)
            serving = await r.unary("/grpc.health.v1.Health/Check", b"")
            assert serving == b"\x08\x01"

    asyncio.run(scenario())


def test_a_queue_in_use_shows_how_much_of_it(rig: Callable[..., Any]) -> None:
    async def scenario() -> None:
        async with rig(up=False) as r:
            await r.collect([b"one"])
            _, text = await r.get("/metrics")
            assert 'pipeline_queue_partition_size{pipeline="native",partition="0"} 4194304' in text
            assert 'pipeline_queue_total_capacity{pipeline="native"} 536870912' in text

    asyncio.run(scenario())


def test_it_is_ready_between_start_and_stop(rig: Callable[..., Any]) -> None:
    async def scenario() -> None:
        async with rig() as r:
            assert await r.get("/ready") == (200, "ready\n")
            assert await r.get("/nothing") == (
                404,
                "there are /metrics and /healthcheck and /ready\n",
            )
            stopped = r.satellite
            await stopped.stop(0.0)
            assert stopped.readiness() == "stopping"

    asyncio.run(scenario())


def test_every_series_has_the_labels_that_the_configuration_gives_it(
    rig: Callable[..., Any],
) -> None:
    environ = {
        "SATELLITE_TELEMETRY_CLUSTER": "here",
        "SATELLITE_TELEMETRY_INSTANCE": "pod-1",
        "SATELLITE_TELEMETRY_PROMETHEUS_ENDPOINT": "/numbers",
    }

    async def scenario() -> None:
        async with rig(**environ) as r:
            _, text = await r.get("/numbers")
            series = [line for line in text.splitlines() if not line.startswith("#")]
            assert all('{cluster="here",instance="pod-1"' in line for line in series)

    asyncio.run(scenario())


def test_nothing_listens_where_nothing_shall_be_exported(rig: Callable[..., Any]) -> None:
    async def scenario() -> None:
        async with rig(SATELLITE_TELEMETRY_EXPORT_TYPE="none") as r:
            assert r.satellite.telemetry.port == 0
            await r.collect([b"one"])
            await r.until_empty()

    asyncio.run(scenario())


def test_the_watermark_follows_what_was_taken_in_and_nobody_has_delivered(
    rig: Callable[..., Any],
) -> None:
    async def scenario() -> None:
        async with rig(up=False, SKYFARER_SATELLITE_QUEUE_FLUSH_PERIOD_MS="10") as r:
            [pipe] = [one for one in r.satellite.pipes if one.name == "native"]
            await r.collect([b"one", b"two", b"three"])
            await r.until(lambda: pipe.backlog.watermark == 3)
            _, text = await r.get("/metrics")
            assert 'gatherer_watermark_offset{pipe="native"} 3' in text
            assert 'sender_committed_offset{pipe="native"} 0' in text

    asyncio.run(scenario())


def test_the_watermark_is_never_below_what_was_delivered(rig: Callable[..., Any]) -> None:
    async def scenario() -> None:
        async with rig(SKYFARER_SATELLITE_QUEUE_FLUSH_PERIOD_MS="0") as r:
            await r.collect([b"one", b"two", b"three"])
            await r.until_empty()
            _, text = await r.get("/metrics")
            assert 'gatherer_watermark_offset{pipe="native"} 3' in text

    asyncio.run(scenario())
