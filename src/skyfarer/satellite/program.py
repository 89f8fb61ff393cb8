"""`skyfarer satellite start`: the process around a satellite. Signals, logs, first and last words.

    SIGTERM, SIGINT   stop; a second one ends the draining at once
    SIGHUP            read the configuration again

A signal that comes while it starts waits until it has.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from random import Random

from skyfarer.base.clock import Clock, SystemClock
from skyfarer.base.errors import ConfigError, SkyfarerError
from skyfarer.satellite.app import Satellite
from skyfarer.satellite.config import SatelliteConfig
from skyfarer.satellite.lean import knows_ssl
from skyfarer.satellite.memory import give_back
from skyfarer.satellite.room import short_of_room
from skyfarer.telemetry import logs

log = logging.getLogger(__name__)

Load = Callable[[], SatelliteConfig]


def ready_line(satellite: Satellite) -> str:
    """Where agents connect, where it sends, and where it can be looked at."""
    config = satellite.config
    listening = [
        f"agents at {_shown(address)} ({_protocol(config, name)})"
        for name, address in satellite.listening.items()
    ]
    upstreams = dict.fromkeys(
        _shown(address)
        for pipe in satellite.pipes
        for address in getattr(pipe.forwarder, "addresses", (pipe.forwarder.address,))
    )
    parts = [*listening, f"sends to {', '.join(upstreams)}"]
    port = satellite.telemetry.port
    host = config.telemetry.prometheus.address.rpartition(":")[0] or "0.0.0.0"
    metrics = f" metrics at http://{host}:{port}{config.telemetry.prometheus.endpoint},"
    return (
        f"skyfarer satellite is ready: {', '.join(parts)};{metrics if port else ''}"
        f" data in {config.data_directory}"
    )


def _protocol(config: SatelliteConfig, server_name: str) -> str:
    plugin = config.servers[server_name].plugin_name
    return {"grpc-server": "gRPC", "http-server": "HTTP"}.get(plugin, plugin)


def _shown(address: tuple[str, int]) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Program:
    """One satellite between its start and the signal that ends it."""

    def __init__(self, config: SatelliteConfig, again: Load, clock: Clock, random: Random) -> None:
        self._satellite = Satellite(config, clock, random)
        self._again = again
        self._asked, self._asked_again = asyncio.Event(), asyncio.Event()
        self._changed = asyncio.Event()

    async def serve(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._ask)
        loop.add_signal_handler(signal.SIGHUP, self._changed.set)
        await self._satellite.start()
        say(self._satellite.config)
        give_back()
        print(ready_line(self._satellite), flush=True)
        reloading = asyncio.create_task(self._reload(), name="reload")
        await self._asked.wait()
        await self._stop(self._satellite.config.shutdown_hook_s)
        reloading.cancel()

    def _ask(self) -> None:
        (self._asked_again if self._asked.is_set() else self._asked).set()

    async def _stop(self, timeout_s: float) -> None:
        log.info("stopping, for at most %g seconds", timeout_s)
        stopping = asyncio.create_task(self._satellite.stop(timeout_s))
        impatient = asyncio.create_task(self._asked_again.wait())
        await asyncio.wait({stopping, impatient}, return_when=asyncio.FIRST_COMPLETED)
        impatient.cancel()
        if not stopping.done():
            log.warning("stopped before everything was handed over; it waits on disk")
            return
        await stopping

    async def _reload(self) -> None:
        """One at a time; whatever signals came during one are one more."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._reloaded(self._again())
            except SkyfarerError as refused:
                log.error("the configuration is refused, the one before stays: %s", refused)

    async def _reloaded(self, config: SatelliteConfig) -> None:
        if config.speaks_tls and not knows_ssl():
            raise ConfigError(f"{config.file}: TLS cannot be turned on without a restart")
        await self._satellite.reload(config)
        logs.configure("satellite", config.logger.level, config.logger.json)
        say(config)
        log.info("the configuration was read again; %s", ready_line(self._satellite))


def say(config: SatelliteConfig) -> None:
    """What of the file is read differently, and what it asks of the disk that is not there."""
    for line in filter(None, (*config.notes.lines(), short_of_room(config))):
        log.warning("%s", line)


def run(config: SatelliteConfig, again: Load) -> int:
    """Blocks until told to stop. ConfigError and PermanentError are the caller's to report."""
    logs.configure("satellite", config.logger.level, config.logger.json)

    async def serve() -> None:
        await Program(config, again, SystemClock(), Random()).serve()

    asyncio.run(serve())
    return 0
