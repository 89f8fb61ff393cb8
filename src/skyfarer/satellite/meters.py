"""The satellite's own metrics as meters to an OAP, by the names its original gave them.

The OAP draws its page about satellites from `sw_stl_…`: one collection of single values every
interval, of one service and instance. A report that cannot be delivered is left out, not kept: the
next one has newer values, and counters lose nothing by it.
"""

from __future__ import annotations

import asyncio
import logging
import math
import socket
import uuid
from collections.abc import Iterable
from contextlib import suppress

from skyfarer.base.clock import Clock
from skyfarer.base.errors import SkyfarerError
from skyfarer.satellite.contracts import Batch, Forwarder
from skyfarer.satellite.sections import TelemetryConfig
from skyfarer.telemetry import table
from skyfarer.telemetry.exposition import Snapshot
from skyfarer.telemetry.metrics import Registry
from skyfarer.wire import protobuf
from skyfarer.wire.rpc import Kind

log = logging.getLogger(__name__)

DEFAULT_SERVICE = "satellite-service"
ORIGINAL_NAMES = {table.GRPC_SERVER_CPU.name: "grpc_server_cpu_gauge"}
"""Where `promtool` would not have the name in an exposition."""


def producer() -> str:
    """A name for the reports of one process: their sequence begins anew with each."""
    return f"meters-{uuid.uuid4().hex}"


def collection(families: Iterable[Snapshot], telemetry: TelemetryConfig, time_ms: int) -> bytes:
    """A MeterDataCollection of every value there is."""
    prefix = telemetry.metrics_service.metric_prefix
    about = (
        protobuf.text(3, telemetry.service or DEFAULT_SERVICE)
        + protobuf.text(4, telemetry.instance or socket.gethostname())
        + protobuf.number(5, time_ms)
    )
    data = [
        _single_value(prefix + name, family["labels"], values, number) + about
        for family in families
        for name in [ORIGINAL_NAMES.get(family["name"], family["name"])]
        for values, number in family["series"]
        if math.isfinite(number)
    ]
    return b"".join(protobuf.delimited(1, one) for one in data)


def _single_value(name: str, labels: list[str], values: list[str], number: float) -> bytes:
    pairs = zip(labels, values, strict=True)
    written = b"".join(
        protobuf.delimited(2, protobuf.text(1, label) + protobuf.text(2, value))
        for label, value in pairs
    )
    return protobuf.delimited(1, protobuf.text(1, name) + written + protobuf.double(3, number))


class MeterReports:
    """Sends a report each interval between `start` and `stop`."""

    def __init__(
        self,
        telemetry: TelemetryConfig,
        forwarder: Forwarder,
        registry: Registry,
        clock: Clock,
    ) -> None:
        self._telemetry = telemetry
        self._forwarder = forwarder
        self._registry = registry
        self._clock = clock
        self._task: asyncio.Task[None] | None = None
        self._sequence = 0
        self._failing = False

    async def start(self) -> None:
        await self._forwarder.start()
        self._task = asyncio.create_task(self._run(), name="meters")

    async def stop(self, timeout_s: float) -> None:
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await self._forwarder.stop(timeout_s)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._telemetry.metrics_service.interval)
            await self.report()

    async def report(self) -> None:
        """Once, now; a failure is said when it begins, and when it is over."""
        payload = collection(self._registry.snapshot(), self._telemetry, self._clock.now_ms())
        batch = Batch(self._sequence, Kind.METER_COLLECTION, (payload,))
        self._sequence += 1
        try:
            await self._forwarder.send(batch)
        except SkyfarerError as failure:
            if not self._failing:
                log.warning("own metrics cannot be reported, trying again: %s", failure)
            self._failing = True
        else:
            if self._failing:
                log.info("own metrics are reported again")
            self._failing = False
