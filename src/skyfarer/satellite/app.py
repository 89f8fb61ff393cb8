"""The satellite as a program: its parts, the order they start and stop in, signals, last words."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Mapping
from pathlib import Path
from random import Random

from skyfarer.base.clock import Clock, SystemClock
from skyfarer.base.plugins import Catalog
from skyfarer.satellite.catalog import catalog as built_in
from skyfarer.satellite.config import SatelliteConfig, load
from skyfarer.satellite.notation import address
from skyfarer.satellite.pipe import Assembly, Pipe
from skyfarer.telemetry import logs, table
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.http import TelemetryServer
from skyfarer.telemetry.ledger import Ledger
from skyfarer.telemetry.metrics import Registry
from skyfarer.telemetry.process import ProcessMetrics

log = logging.getLogger(__name__)

TELEMETRY_STOP_S = 0.5


class Satellite:
    """All pipes and the telemetry port of one process, on one event loop.

    `start` raises ConfigError or PermanentError and leaves nothing running. `stop` takes no new
    calls, hands over what it can within `timeout_s` and says in one line what it left; it is safe
    twice and unstarted.
    """

    def __init__(
        self,
        config: SatelliteConfig,
        clock: Clock,
        random: Random,
        plugins: Catalog | None = None,
    ) -> None:
        self._config = config
        self._registry = Registry()
        self._health = Health()
        assembly = Assembly(
            config, plugins or built_in(), clock, random, self._registry, self._health
        )
        self.pipes: tuple[Pipe, ...] = tuple(assembly.pipe(pipe) for pipe in config.pipes)
        host, port = address(config.telemetry.prometheus.address, "0.0.0.0")
        self.telemetry_host = host
        self.telemetry = TelemetryServer(host, port, self._registry, self._health)
        self._observe(self._registry)

    async def start(self) -> None:
        try:
            await self.telemetry.start()
            for pipe in self.pipes:
                await pipe.start()
        except BaseException:
            await self.stop(0.0)
            raise
        self._health.started()

    async def stop(self, timeout_s: float) -> None:
        await asyncio.gather(*(pipe.stop(timeout_s) for pipe in self.pipes))
        await self.telemetry.stop(TELEMETRY_STOP_S)

    def ledger(self) -> Ledger:
        """The books of all pipes together."""
        ledgers = [pipe.backlog.ledger() for pipe in self.pipes]
        dropped: dict[str, int] = {}
        for one in ledgers:
            for reason, count in one.dropped.items():
                dropped[reason] = dropped.get(reason, 0) + count
        return Ledger(
            sum(one.accepted for one in ledgers),
            sum(one.delivered for one in ledgers),
            sum(one.queued for one in ledgers),
            dropped,
        )

    def _observe(self, registry: Registry) -> None:
        for pipe in self.pipes:
            pipe.observe(registry)
        registry.observe_with(table.QUEUE_ACCEPTED, lambda: self.ledger().accepted)
        registry.observe_with(table.QUEUE_DELIVERED, lambda: self.ledger().delivered)
        registry.observe_with(table.QUEUE_QUEUED, lambda: self.ledger().queued)
        registry.observe_split(table.QUEUE_DROPPED, lambda: self.ledger().dropped)
        ProcessMetrics("satellite").register(registry)

    def ready_line(self) -> str:
        pipes = ", ".join(
            f"agents at {_shown(pipe.gatherer.address)} (gRPC), sends to"
            f" {_shown(pipe.forwarder.address)}"
            for pipe in self.pipes
        )
        metrics = _shown((self.telemetry_host, self.telemetry.port))
        return (
            f"skyfarer satellite is ready: {pipes}; metrics at http://{metrics}/metrics,"
            f" data in {self._config.data_directory}"
        )


def _shown(address: tuple[str, int]) -> str:
    return f"{address[0]}:{address[1]}"


async def serve(config: SatelliteConfig, clock: Clock, random: Random) -> None:
    """Until SIGTERM or SIGINT. A second signal ends the draining at once."""
    loop = asyncio.get_running_loop()
    asked, asked_again = asyncio.Event(), asyncio.Event()

    def on_signal() -> None:
        (asked_again if asked.is_set() else asked).set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    satellite = Satellite(config, clock, random)
    await satellite.start()
    print(satellite.ready_line(), flush=True)
    await asked.wait()
    log.info("stopping, for at most %g seconds", config.shutdown_hook_s)
    stopping = asyncio.create_task(satellite.stop(config.shutdown_hook_s))
    impatient = asyncio.create_task(asked_again.wait())
    await asyncio.wait({stopping, impatient}, return_when=asyncio.FIRST_COMPLETED)
    impatient.cancel()
    if not stopping.done():
        log.warning("stopped before everything was handed over; it waits on disk")
        return
    await stopping


def run(config_path: Path | None, environ: Mapping[str, str]) -> int:
    """Blocks until told to stop. ConfigError and PermanentError are the caller's to report."""
    config = load(config_path, environ)
    logs.configure("satellite", config.logger.level, config.logger.json)
    asyncio.run(serve(config, SystemClock(), Random()))
    return 0
