"""The demo's agents: one plain gRPC connection that reports the shop's traffic to the satellite."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from skyfarer.base.clock import Clock
from skyfarer.base.errors import RetryableError
from skyfarer.testing.traffic import DemoTraffic
from skyfarer.wire.client import ClientSettings, GrpcClient
from skyfarer.wire.rpc import FORWARD, Kind

TICK_S = 0.1
PING_INTERVAL_S = 20.0
RETRY_S = 0.5


class Agents:
    """`records` counts what the satellite has acknowledged, segments and signs of life alike."""

    def __init__(self, host: str, port: int, traffic: DemoTraffic, clock: Clock) -> None:
        self._client = GrpcClient(ClientSettings(host=host, port=port))
        self._traffic = traffic
        self._clock = clock
        self.records = 0
        self.traces = 0

    async def start(self) -> None:
        await self._client.start()
        for one in self._traffic.properties():
            await self._report(Kind.INSTANCE_PROPERTIES, [one.SerializeToString()])

    async def stop(self, timeout_s: float) -> None:
        await self._client.stop(timeout_s)

    async def send(self, rate: float, seconds: float | None, check: Callable[[], None]) -> None:
        """`rate` traces a second, for `seconds` or until cancelled; `check` is called each tick."""
        begun = pinged = self._clock.monotonic_s()
        while True:
            now = self._clock.monotonic_s()
            if seconds is not None and now - begun >= seconds:
                return
            check()
            due = int((now - begun) * rate) - self.traces
            segments = [one for _ in range(due) for one in self._traffic.trace()]
            self.traces += max(0, due)
            if segments:
                await self._report(Kind.SEGMENT, [one.SerializeToString() for one in segments])
            if now - pinged >= PING_INTERVAL_S:
                pinged = now
                for ping in self._traffic.pings():
                    await self._report(Kind.INSTANCE_PING, [ping.SerializeToString()])
            await asyncio.sleep(TICK_S)

    async def _report(self, kind: Kind, messages: Sequence[bytes]) -> None:
        while True:
            try:
                await self._client.send(FORWARD[kind], messages)
            except RetryableError:
                await asyncio.sleep(RETRY_S)
            else:
                self.records += len(messages)
                return
