"""A sender on a real queue, with a forwarder that does as the test says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from random import Random
from typing import Any

from skyfarer.base.backoff import Backoff, BackoffSettings
from skyfarer.base.clock import Clock, SystemClock
from skyfarer.base.units import KIB, MIB
from skyfarer.queue.settings import QueueSettings
from skyfarer.satellite.attempts import RetrySettings
from skyfarer.satellite.backlog import CONSUMER, Backlog, BatchBounds
from skyfarer.satellite.contracts import Batch, Filter
from skyfarer.satellite.dead_letters import DeadLetters, read
from skyfarer.satellite.processors.chain import Chain
from skyfarer.satellite.sender import Sender
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry

SEGMENT, PING = 1, 3
WAIT_S = 120.0


class Script:
    """A forwarder: `outcome` is called with each batch, and refuses it by raising."""

    address = ("127.0.0.1", 1)

    def __init__(self, outcome: Callable[[Batch], None] = lambda batch: None) -> None:
        self.outcome = outcome
        self.tried: list[Batch] = []
        self.taken: list[tuple[int, int, list[bytes]]] = []

    async def start(self) -> None: ...

    async def stop(self, timeout_s: float) -> None: ...

    def batch_max(self, kind: int) -> int:
        return 1 if kind == PING else 1000

    async def send(self, batch: Batch) -> None:
        self.tried.append(batch)
        await asyncio.sleep(0)
        self.outcome(batch)
        self.taken.append((batch.first, batch.kind, [bytes(one) for one in batch.payloads]))

    def payloads(self) -> list[bytes]:
        return [one for _, _, payloads in self.taken for one in payloads]


class Bench:
    def __init__(
        self,
        directory: Path,
        forwarder: Script,
        filters: Sequence[tuple[str, Filter]] = (),
        retry: RetrySettings | None = None,
        clock: Clock | None = None,
        **bounds: Any,
    ) -> None:
        settings = QueueSettings(
            directory / "queue",
            segment_bytes=64 * KIB,
            capacity_bytes=1 * MIB,
            record_bytes_max=16 * KIB,
            when_full="drop_oldest",
            consumers=(CONSUMER,),
        )
        batch = {"records_max": 100, "bytes_max": 1 * MIB, "age_max_s": 0.0, **bounds}
        self.clock = clock or SystemClock()
        self.backlog = Backlog(settings, BatchBounds(**batch), SystemClock())
        self.health = Health()
        self.health.started()
        self.registry = Registry()
        self.dead_letters = DeadLetters(directory / "dead", SystemClock())
        self.sender = Sender(
            "test",
            self.backlog,
            forwarder,
            self.dead_letters,
            Backoff(BackoffSettings(0.0005, 0.002), Random(1)),
            self.registry,
            self.health,
            processor=Chain("test", filters, self.clock, self.registry) if filters else None,
            retry=retry,
            clock=self.clock,
        )

    def parked(self) -> list[tuple[int, bytes]]:
        return [(letter.sequence, letter.payload) for letter in read(self.dead_letters.path)]

    def metric(self, name: str) -> float:
        """The sum of all its series."""
        lines = [line for line in self.registry.render().splitlines() if line.startswith(name)]
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines)

    async def settled(self, end: int) -> None:
        await self.until(lambda: self.backlog.committed >= end)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_S):
            while True:
                if holds():
                    return
                await asyncio.sleep(0.001)


def run(bench: Bench, work: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
    async def scenario() -> None:
        bench.backlog.start()
        await bench.sender.start()
        try:
            await work(bench)
        finally:
            await bench.sender.stop(0.0)
            bench.backlog.stop(0.0)

    asyncio.run(scenario())
