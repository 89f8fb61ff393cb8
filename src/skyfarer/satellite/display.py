"""What a satellite shows of itself: the telemetry port, the process's metrics, the meters, the tap.

    GET /metrics       Prometheus; the path is telemetry.prometheus.endpoint
    GET /healthcheck   200 while it can take and keep data
    GET /ready         200 while agents may come: started, not stopping, below its memory limit

An upstream that is away makes none of them say no: that is what the queue is for.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from skyfarer.base.clock import Clock
from skyfarer.base.errors import PermanentError
from skyfarer.satellite.assembly import Assembly
from skyfarer.satellite.config import SatelliteConfig
from skyfarer.satellite.meters import MeterReports, producer
from skyfarer.satellite.notation import address
from skyfarer.satellite.sections import TelemetryConfig
from skyfarer.satellite.tap_socket import TapSocket
from skyfarer.telemetry import table
from skyfarer.telemetry.exposition import CONTENT_TYPE
from skyfarer.telemetry.http import Answer, TelemetryServer
from skyfarer.telemetry.process import ProcessMetrics

if TYPE_CHECKING:
    from skyfarer.satellite.app import Satellite

STOP_S = 0.5
EVERY_INTERFACE = "0.0.0.0"


class Display:
    """Belongs to one satellite, and is started by it in two steps. `stop` is safe unstarted."""

    def __init__(self, satellite: Satellite) -> None:
        around, config = satellite.around, satellite.config
        self._satellite = satellite
        self._server: TelemetryServer | None = None
        self._tap = TapSocket(config.data_directory, around.tap, around.clock)
        self._meters: MeterReports | None = None
        self._observe()

    @property
    def port(self) -> int:
        return self._server.port if self._server is not None else 0

    async def start(self) -> None:
        """The port: it answers while everything else is still starting. PermanentError if not."""
        await self._serve(self._satellite.config.telemetry)

    async def open(self) -> None:
        """The tap and the meters, once the queues are ours."""
        await self._tap.start()
        await self._report(self._satellite.config)

    async def change(self, config: SatelliteConfig) -> None:
        """As the new configuration has it. PermanentError when its port cannot be had."""
        old = self._satellite.config
        if (config.telemetry, config.clients) == (old.telemetry, old.clients):
            return
        try:
            await self._become(config, old.telemetry)
        except PermanentError:
            await self._become(old, config.telemetry)
            raise

    async def _become(self, config: SatelliteConfig, before: TelemetryConfig) -> None:
        new = config.telemetry
        moved = (new.prometheus, new.export_type) != (before.prometheus, before.export_type)
        if moved or self._server is None:
            await self._unserve()
            await self._serve(new)
        await self._report(config)

    async def stop(self) -> None:
        await self._tap.stop()
        await self._unreport()
        await self._unserve()

    async def _serve(self, telemetry: TelemetryConfig) -> None:
        if "prometheus" not in telemetry.export_type:
            return
        host, port = address(telemetry.prometheus.address, EVERY_INTERFACE)
        around = self._satellite.around
        pages = {telemetry.prometheus.endpoint: self._metrics, "/ready": self._ready}
        server = TelemetryServer(host, port, around.registry, around.health, pages=pages)
        await server.start()
        self._server = server

    async def _unserve(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.stop(STOP_S)

    async def _report(self, config: SatelliteConfig) -> None:
        await self._unreport()
        if "metrics_service" not in config.telemetry.export_type:
            return
        around, name = self._satellite.around, producer()
        client = config.telemetry.metrics_service.client_name
        forwarder = Assembly(config, around).forwarder(client, lambda: name, 1)
        self._meters = MeterReports(config.telemetry, forwarder, around.registry, around.clock)
        await self._meters.start()

    async def _unreport(self) -> None:
        meters, self._meters = self._meters, None
        if meters is not None:
            await meters.stop(STOP_S)

    def _metrics(self) -> Answer:
        telemetry = self._satellite.config.telemetry
        names = ("cluster", "service", "instance")
        labels = {name: value for name in names if (value := getattr(telemetry, name))}
        return 200, CONTENT_TYPE, self._satellite.around.registry.render(labels)

    def _ready(self) -> Answer:
        why_not = self._satellite.readiness()
        return (503, "text/plain", f"{why_not}\n") if why_not else (200, "text/plain", "ready\n")

    def _observe(self) -> None:
        satellite, around = self._satellite, self._satellite.around
        observe, process = around.registry.observe_with, ProcessMetrics("satellite")
        process.register(around.registry)
        observe(table.QUEUE_ACCEPTED, lambda: satellite.ledger().accepted)
        observe(table.QUEUE_DELIVERED, lambda: satellite.ledger().delivered)
        observe(table.QUEUE_QUEUED, lambda: satellite.ledger().queued)
        around.registry.observe_split(table.QUEUE_DROPPED, lambda: satellite.ledger().dropped)
        observe(table.SATELLITE_MEMORY, around.memory.own_bytes)
        observe(table.SATELLITE_MEMORY_LIMIT, lambda: around.memory.bytes_max)
        observe(table.SATELLITE_TASKS, lambda: len(asyncio.all_tasks()))
        observe(
            table.GRPC_SERVER_CONNECTIONS,
            lambda: around.registry.value(table.RECEIVER_CONNECTIONS),
        )
        observe(table.GRPC_SERVER_CPU, CpuShare(process, around.clock).percent)


class CpuShare:
    """Of one core, since it was asked before; 0 when it never was."""

    def __init__(self, process: ProcessMetrics, clock: Clock) -> None:
        self._process = process
        self._clock = clock
        self._asked_s: float | None = None
        self._used_s = 0.0

    def percent(self) -> float:
        now_s, used_s = self._clock.monotonic_s(), self._process.cpu_s()
        before_s, self._asked_s = self._asked_s, now_s
        spent_s, self._used_s = used_s - self._used_s, used_s
        if before_s is None or now_s <= before_s:
            return 0.0
        return round(100 * spent_s / (now_s - before_s), 2)
