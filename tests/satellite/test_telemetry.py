from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

NAMES = (
    "gatherer_writing_offset",
    "gatherer_watermark_offset",
    "processor_reading_count",
    "sender_committed_offset",
    "queue_accepted_total",
    "queue_delivered_total",
    "queue_queued_records",
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
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
