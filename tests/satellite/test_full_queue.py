from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

import grpc
import pytest

from skyfarer.base.units import KIB
from skyfarer.wire.rpc import Kind

SMALL = {
    "SKYFARER_SATELLITE_QUEUE_SEGMENT_BYTES": str(64 * KIB),
    "SKYFARER_SATELLITE_QUEUE_CAPACITY_BYTES": str(256 * KIB),
    "SKYFARER_SATELLITE_QUEUE_RECORD_BYTES_MAX": str(8 * KIB),
}


def noise(count: int) -> list[bytes]:
    return [os.urandom(2 * KIB) for _ in range(count)]


def test_a_full_queue_drops_the_oldest_counts_them_and_delivers_the_rest(
    rig: Callable[..., Any],
) -> None:
    async def scenario() -> None:
        async with rig(up=False, SATELLITE_TRACINGPIPE_SENDER_MAX_BUFFER_SIZE="10", **SMALL) as r:
            sent = noise(400)
            for start in range(0, 400, 20):
                await r.collect(sent[start : start + 20])
                assert r.satellite.ledger().balanced
            ledger = r.satellite.ledger()
            assert ledger.accepted == 400
            assert ledger.dropped["overflow"] > 0
            await r.upstream.start()
            await r.until_empty()
            ledger = r.satellite.ledger()
            arrived = r.upstream.payloads(Kind.SEGMENT)
            assert ledger.balanced
            assert ledger.delivered == len(arrived)
            assert ledger.dropped == {"overflow": 400 - len(arrived)}
            # The sender held one batch in its hands; behind it the newest are all there.
            assert arrived[-90:] == sent[-90:]

    asyncio.run(scenario())


def test_dropped_counts_outlive_a_restart(rig: Callable[..., Any]) -> None:
    async def scenario() -> None:
        async with rig(up=False, **SMALL) as r:
            for _ in range(20):
                await r.collect(noise(20))
            await r.stop_satellite(0.0)
            await r.upstream.start()
            await r.start_satellite()
            await r.until_empty()
            before = r.satellite.ledger()
            assert before.balanced
            assert before.dropped["overflow"] > 0
            assert before.delivered == len(r.upstream.records)
            await r.stop_satellite(1.0)
            await r.start_satellite()
            assert r.satellite.ledger() == before

    asyncio.run(scenario())


def test_a_queue_set_to_reject_tells_agents_to_come_back_and_keeps_what_it_has(
    rig: Callable[..., Any],
) -> None:
    async def scenario() -> None:
        environ = {**SMALL, "SKYFARER_SATELLITE_QUEUE_WHEN_FULL": "reject"}
        async with rig(up=False, **environ) as r:
            kept: list[bytes] = []
            with pytest.raises(grpc.RpcError) as refused:
                for _ in range(100):
                    sent = noise(10)
                    await r.collect(sent)
                    kept += sent
            assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert kept
            await r.upstream.start()
            await r.until_empty()
            arrived = r.upstream.payloads(Kind.SEGMENT)
            assert arrived[: len(kept)] == kept
            assert r.satellite.ledger().dropped == {}
            _, metrics = await r.get("/metrics")
            assert 'queue_rejected_total{reason="full"}' in metrics
            await r.collect(noise(10))

    asyncio.run(scenario())


def test_a_record_too_large_for_the_queue_is_refused_for_good(rig: Callable[..., Any]) -> None:
    async def scenario() -> None:
        async with rig(**SMALL) as r:
            with pytest.raises(grpc.RpcError) as refused:
                await r.collect([os.urandom(9 * KIB)])
            assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert r.satellite.ledger().accepted == 0

    asyncio.run(scenario())


def test_what_a_queue_refuses_for_another_reason_is_not_counted_as_too_large(
    rig: Callable[..., Any],
) -> None:
    async def scenario() -> None:
        async with rig(**SMALL) as r:
            [pipe] = [one for one in r.satellite.pipes if one.name == "native"]
            pipe.backlog.stop(0.0)
            with pytest.raises(grpc.RpcError):
                await r.collect(noise(1))
            pipe.backlog.start()
            _, metrics = await r.get("/metrics")
            assert 'queue_rejected_total{reason="failed"} 1' in metrics
            assert 'reason="too_large"' not in metrics

    asyncio.run(scenario())
