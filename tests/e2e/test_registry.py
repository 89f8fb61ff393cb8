"""How long an old agent waits for an id."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from e2e.registering import Fire, Registry
from skyfarer.testing.programs import Oap, eventually

pytestmark = pytest.mark.e2e

BATCHES_MAX = 3


def test_an_id_is_there_within_three_micro_batches(oap: Oap) -> None:
    async def register() -> dict[str, int]:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{oap.grpc_port}") as channel:
            return await Fire(oap.grpc_port).insist(Registry(channel).services, ["in-a-hurry"])

    eventually(lambda: oap.ledger()["queued"] == 0, 240, "nothing else is on its way")
    before = batches(oap)
    told = asyncio.run(register())
    assert batches(oap) - before <= BATCHES_MAX
    [row] = oap.status("registry?keyword=IN-A-HURRY")["rows"]
    assert {row["name"]: row["id"]} == told


def batches(oap: Oap) -> int:
    [line] = [line for line in oap.metrics().splitlines() if line.startswith("pipeline_batches")]
    return int(float(line.split()[-1]))
