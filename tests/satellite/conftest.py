"""A satellite between grpcio clients and a real upstream, all on the test's own event loop."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any

import grpc
import pytest

from skyfarer.base.clock import SystemClock
from skyfarer.satellite.app import Satellite
from skyfarer.satellite.config import SatelliteConfig, load
from skyfarer.testing.programs import SATELLITE_ANYWHERE
from skyfarer.testing.upstream import Upstream

TRACES = "/skywalking.v3.TraceSegmentReportService"
MANAGEMENT = "/skywalking.v3.ManagementService"
WAIT_S = 120.0


class Rig:
    """`async with` starts the upstream (unless `up` is False) and the satellite."""

    def __init__(
        self,
        directory: Path,
        upstream: Upstream | None = None,
        up: bool = True,
        config: Path | None = None,
        **environ: str,
    ) -> None:
        self.directory = directory
        self.config = config
        self.upstream = upstream or Upstream()
        self._up = up
        self._environ = environ
        self.satellite: Satellite
        self._channel: grpc.Channel

    async def __aenter__(self) -> Rig:
        await self.upstream.start()
        if not self._up:
            await self.upstream.stop()
        await self.start_satellite()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self.stop_satellite(0.0)
        await self.upstream.stop()

    def load(self) -> SatelliteConfig:
        environ = {
            **SATELLITE_ANYWHERE,
            "SKYFARER_SATELLITE_DATA_DIR": str(self.directory),
            "SATELLITE_GRPC_CLIENT": self.upstream.address,
            "SATELLITE_TRACINGPIPE_SENDER_FLUSH_TIME": "20",
            # It would count the test's own memory.
            "SKYFARER_SATELLITE_MEMORY_LIMIT": "0",
            "SKYFARER_SATELLITE_SENDER_RETRY_INITIAL": "10ms",
            "SKYFARER_SATELLITE_SENDER_RETRY_MAXIMUM": "100ms",
            **self._environ,
        }
        return load(self.config, environ)

    async def start_satellite(self) -> None:
        self.satellite = Satellite(self.load(), SystemClock(), Random(1))
        await self.satellite.start()
        host, port = self.satellite.address("grpc-server")
        self._channel = grpc.insecure_channel(f"{host}:{port}")

    async def stop_satellite(self, timeout_s: float) -> None:
        self._channel.close()
        await self.satellite.stop(timeout_s)

    async def collect(self, messages: Sequence[bytes], path: str = f"{TRACES}/collect") -> bytes:
        """By grpcio's blocking client, as agents do: its asyncio one now and then reports INTERNAL
        for a call that was refused while it was still writing."""
        call = self._channel.stream_unary(path)
        return bytes(await asyncio.to_thread(lambda: call(iter(messages), timeout=WAIT_S)))

    async def unary(self, path: str, message: bytes) -> bytes:
        call = self._channel.unary_unary(path)
        return bytes(await asyncio.to_thread(lambda: call(message, timeout=WAIT_S)))

    async def until(self, holds: Callable[[], Any]) -> None:
        async with asyncio.timeout(WAIT_S):
            while True:
                if holds():
                    return
                await asyncio.sleep(0.01)

    async def until_accepted(self, records: int) -> None:
        await self.until(lambda: self.satellite.ledger().accepted >= records)

    async def until_empty(self) -> None:
        await self.until(lambda: self.satellite.ledger().queued == 0)

    async def get(self, path: str) -> tuple[int, str]:
        """Status and text, whatever the status."""
        url = f"http://127.0.0.1:{self.satellite.telemetry.port}{path}"

        def read() -> tuple[int, str]:
            try:
                with urllib.request.urlopen(url, timeout=WAIT_S) as response:
                    return response.status, response.read().decode()
            except urllib.error.HTTPError as refused:
                return refused.code, refused.read().decode()

        return await asyncio.to_thread(read)


@pytest.fixture
def rig(tmp_path: Path) -> Callable[..., Rig]:
    def make(
        upstream: Upstream | None = None,
        up: bool = True,
        config: Path | None = None,
        **environ: str,
    ) -> Rig:
        return Rig(tmp_path, upstream, up, config, **environ)

    return make
