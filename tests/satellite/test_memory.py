from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from skyfarer.base.clock import SystemClock
from skyfarer.base.errors import RetryableError
from skyfarer.base.units import KIB, MIB
from skyfarer.satellite.memory import CLEAN_EVERY_S, MEASURE_EVERY_S, MemoryLimit
from skyfarer.testing.clock import HandClock
from skyfarer.wire.rpc import Kind

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
LIMIT = 50 * MIB


class Process:
    """A /proc/self/statm that says what the test wants: resident, and how much of it is files."""

    def __init__(self, directory: Path) -> None:
        self.file = directory / "statm"
        self.clock = HandClock()
        self.limit = MemoryLimit(LIMIT, self.clock, self.file)
        self.holds(20 * MIB, 10 * MIB)

    def holds(self, own: int, of_files: int = 0) -> None:
        resident = (own + of_files) // PAGE_BYTES
        self.file.write_text(f"99999 {resident} {of_files // PAGE_BYTES} 1 0 2 0\n")

    def admits(self, payload_bytes: int) -> bool:
        try:
            self.limit.admit(payload_bytes)
        except RetryableError:
            return False
        return True


def test_below_the_limit_everything_is_admitted(tmp_path: Path) -> None:
    process = Process(tmp_path)

    assert all(process.admits(3 * MIB) for _ in range(100))


def test_above_the_limit_nothing_is_admitted_until_memory_is_back(tmp_path: Path) -> None:
    process = Process(tmp_path)

    process.holds(LIMIT + MIB)
    assert not process.admits(1 * MIB)
    assert not process.admits(1)
    process.holds(LIMIT - MIB)
    process.clock.seconds += MEASURE_EVERY_S
    assert process.admits(1)


def test_pages_of_files_do_not_count(tmp_path: Path) -> None:
    process = Process(tmp_path)

    process.holds(20 * MIB, of_files=500 * MIB)

    assert process.admits(5 * MIB)


def test_it_is_not_measured_for_every_record(tmp_path: Path) -> None:
    process = Process(tmp_path)
    assert process.admits(1 * MIB)

    process.file.unlink()

    assert all(process.admits(1 * KIB) for _ in range(1000))
    with pytest.raises(FileNotFoundError):
        process.limit.admit(1 * MIB)


def test_while_it_is_reached_it_is_measured_only_now_and_then(tmp_path: Path) -> None:
    process = Process(tmp_path)
    process.holds(LIMIT + MIB)
    assert not process.admits(1 * MIB)

    process.holds(LIMIT - MIB)

    assert not process.admits(1)
    process.clock.seconds += MEASURE_EVERY_S
    assert process.limit.still_exceeded() is False


def test_near_the_limit_it_is_measured_as_soon_as_it_might_be_reached(tmp_path: Path) -> None:
    process = Process(tmp_path)
    process.holds(LIMIT - 10 * KIB)
    assert process.admits(1 * MIB)

    process.holds(LIMIT + MIB)

    assert process.admits(5 * KIB)
    assert not process.admits(20 * KIB)


def test_a_limit_of_0_is_none(tmp_path: Path) -> None:
    limit = MemoryLimit(0, HandClock(), tmp_path / "never read")

    limit.admit(100 * MIB)


def test_what_is_over_the_limit_is_answered_resource_exhausted_and_counted(
    rig: Callable[..., Any],
) -> None:
    async def scenario() -> None:
        # The satellite's parts live in the test's own process here, which holds far more.
        limit = MemoryLimit(0, SystemClock()).own_bytes() + 32 * MIB
        async with rig(SKYFARER_SATELLITE_MEMORY_LIMIT=str(limit)) as r:
            memory = r.satellite.around.memory
            await r.collect([b"before"])
            ballast = b"x" * (64 * MIB)
            with pytest.raises(grpc.RpcError) as refused:
                await r.collect([os.urandom(1500 * KIB)])
            assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert f"its limit is {limit}" in refused.value.details()
            status, _ = await r.get("/ready")
            assert (status, memory.exceeded) == (503, True)
            assert (await r.get("/healthcheck"))[0] == 200
            del ballast
            await r.until(lambda: not memory.still_exceeded())
            await r.collect([b"after"])
            await r.until_empty()
            assert r.upstream.payloads(Kind.SEGMENT) == [b"before", b"after"]
            assert (await r.get("/ready")) == (200, "ready\n")
            _, metrics = await r.get("/metrics")
            assert 'queue_rejected_total{reason="memory"} 1' in metrics
            assert 'gatherer_receive_count{pipe="native",status="abandoned"} 1' in metrics

    asyncio.run(scenario())


def test_the_time_between_two_clean_ups_is_longer_than_between_two_looks() -> None:
    assert CLEAN_EVERY_S > MEASURE_EVERY_S
