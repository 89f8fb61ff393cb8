"""The demo's agents: one plain gRPC connection that reports the shop's traffic, its logs and its
runtimes to the satellite."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Protocol

from skyfarer.base.clock import Clock
from skyfarer.base.errors import RetryableError
from skyfarer.testing import reports
from skyfarer.testing.traffic import INSTANCES, DemoTraffic
from skyfarer.wire.client import ClientSettings, GrpcClient
from skyfarer.wire.rpc import FORWARD, Kind

TICK_S = 0.1
PING_INTERVAL_S = 20.0
RUNTIME_INTERVAL_S = 10.0
RETRY_S = 0.5


class Message(Protocol):
    def SerializeToString(self) -> bytes: ...  # noqa: N802  # protobuf's own name


class Agents:
    """`records` counts what the satellite has acknowledged, of every kind; `logs` the lines of log
    among them."""

    def __init__(self, host: str, port: int, traffic: DemoTraffic, clock: Clock) -> None:
        self._client = GrpcClient(ClientSettings(host=host, port=port))
        self._traffic = traffic
        self._clock = clock
        self._random = Random(0)
        self.records = 0
        self.traces = 0
        self.logs = 0

    async def start(self) -> None:
        await self._client.start()
        for one in self._traffic.properties():
            await self._report(Kind.INSTANCE_PROPERTIES, [one])

    async def stop(self, timeout_s: float) -> None:
        await self._client.stop(timeout_s)

    async def send(self, rate: float, seconds: float | None, check: Callable[[], None]) -> None:
        """`rate` traces a second, for `seconds` or until cancelled; `check` is called each tick."""
        begun = self._clock.monotonic_s()
        ping_s, runtime_s = begun + PING_INTERVAL_S, begun
        while True:
            now = self._clock.monotonic_s()
            if seconds is not None and now - begun >= seconds:
                return
            check()
            await self._requests(int((now - begun) * rate) - self.traces)
            if now >= ping_s:
                ping_s = now + PING_INTERVAL_S
                for ping in self._traffic.pings():
                    await self._report(Kind.INSTANCE_PING, [ping])
            if now >= runtime_s:
                runtime_s = now + RUNTIME_INTERVAL_S
                gauges = reports.runtime(self._random, INSTANCES, self._clock.now_ms())
                await self._report(Kind.METER_COLLECTION, gauges)
            await asyncio.sleep(TICK_S)

    async def _requests(self, due: int) -> None:
        traces = [self._traffic.trace() for _ in range(due)]
        lines = [line for trace in traces for line in reports.logs(trace)]
        await self._report(Kind.SEGMENT, [segment for trace in traces for segment in trace])
        await self._report(Kind.LOG, lines)
        self.traces += len(traces)
        self.logs += len(lines)

    async def _report(self, kind: Kind, messages: Sequence[Message]) -> None:
        texts = [one.SerializeToString() for one in messages]
        while texts:
            try:
                await self._client.send(FORWARD[kind], texts)
            except RetryableError:
                await asyncio.sleep(RETRY_S)
            else:
                self.records += len(texts)
                return
