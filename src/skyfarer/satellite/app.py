"""The satellite: its parts, the order they start and stop in, and how it changes while it runs."""

from __future__ import annotations

import asyncio
import logging
from random import Random

from skyfarer.base.clock import Clock
from skyfarer.base.errors import ConfigError, PermanentError, SkyfarerError
from skyfarer.base.plugins import Catalog
from skyfarer.satellite.assembly import Assembly, Lineup, Listener, Surroundings
from skyfarer.satellite.catalog import catalog as built_in
from skyfarer.satellite.config import SatelliteConfig
from skyfarer.satellite.display import Display
from skyfarer.satellite.memory import MemoryLimit
from skyfarer.satellite.pipe import Pipe
from skyfarer.satellite.tap import Tap
from skyfarer.telemetry import table
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.ledger import Ledger
from skyfarer.telemetry.metrics import Registry

log = logging.getLogger(__name__)


class Satellite:
    """All servers and pipes of one process, on one event loop.

    `start` raises ConfigError or PermanentError and leaves nothing running. `stop` takes no new
    calls, hands over what it can within `timeout_s` and says in one line for each pipe what it
    left; it is safe twice and unstarted.
    """

    def __init__(
        self,
        config: SatelliteConfig,
        clock: Clock,
        random: Random,
        plugins: Catalog | None = None,
    ) -> None:
        self.config = config
        memory = MemoryLimit(config.memory_bytes_max, clock)
        self.around = Surroundings(
            plugins or built_in(), clock, random, Registry(), Health(), memory, Tap()
        )
        self._planned = Assembly(config, self.around).lineup()
        self._listeners: dict[str, Listener] = {}
        self._pipes: dict[str, Pipe] = {}
        self._retired: list[Pipe] = []
        self._changing = asyncio.Lock()
        self._stopping = False
        self.telemetry = Display(self)

    @property
    def pipes(self) -> tuple[Pipe, ...]:
        return tuple((self._pipes or self._planned.pipes).values())

    def address(self, server_name: str) -> tuple[str, int]:
        """Of a shared server; once started, with the port in use."""
        return (self._listeners or self._planned.listeners)[server_name].server.address

    @property
    def listening(self) -> dict[str, tuple[str, int]]:
        return {name: one.server.address for name, one in self._listeners.items()}

    def readiness(self) -> str:
        """Empty while agents may come; else why they had better not."""
        if self._stopping:
            return "stopping"
        if self.around.health.score() < 0:
            return "not started"
        return "the memory limit is reached" if self.around.memory.still_exceeded() else ""

    async def start(self) -> None:
        try:
            async with self._changing:
                await self.telemetry.start()
                await self._become(self._planned)
                await self.telemetry.open()
        except BaseException:
            await self.stop(0.0)
            raise
        self.around.health.started()

    async def stop(self, timeout_s: float) -> None:
        """Half of the time at most is for calls in flight, the rest for what is queued."""
        self._stopping = True
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        async with self._changing:
            listeners, self._listeners = self._listeners, {}
            await asyncio.gather(*(one.server.stop(timeout_s / 2) for one in listeners.values()))
            left_s = max(0.0, deadline - loop.time())
            silently = self.around.health.score() < 0
            await asyncio.gather(*(pipe.stop(left_s, silently) for pipe in self._pipes.values()))
            await self.telemetry.stop()

    async def reload(self, config: SatelliteConfig) -> None:
        """Becomes what `config` says: nothing accepted is lost, and what stays the same stays.

        ConfigError or PermanentError: the new configuration cannot be had, and the old one stands.
        """
        async with self._changing:
            if self._stopping:
                return
            try:
                await self._reload(config)
            except SkyfarerError:
                self.around.registry.inc(table.SATELLITE_RELOADS, outcome="refused")
                raise
            self.around.registry.inc(table.SATELLITE_RELOADS, outcome="done")

    async def _reload(self, config: SatelliteConfig) -> None:
        if config.data_directory != self.config.data_directory:
            raise ConfigError(f"{config.file}: data_directory cannot change without a restart")
        planned = Assembly(config, self.around).lineup(self._listeners, self._pipes)
        try:
            await self._become(planned)
            await self.telemetry.change(config)
        except SkyfarerError:
            back = Assembly(self.config, self.around).lineup(self._listeners, self._pipes)
            await self._become(back)
            raise
        self.config = config
        self.around.memory.bytes_max = config.memory_bytes_max

    async def _become(self, planned: Lineup) -> None:
        """From whatever stands to what is planned; called again with another plan, to that one."""
        for name, pipe in planned.pipes.items():
            await self._put(name, pipe)
        for name, listener in planned.listeners.items():
            listener.server.serve(*planned.services[name].duties())
            if self._listeners.get(name) is not listener:
                await self._listen(name, listener)
        for name in [*self._listeners]:
            if name not in planned.listeners:
                await self._close(name)
        for name in [*self._pipes]:
            if name not in planned.pipes:
                await self._retire(name)

    async def _put(self, name: str, pipe: Pipe) -> None:
        standing = self._pipes.get(name)
        if standing is pipe:
            return
        self._pipes[name] = pipe
        try:
            await (pipe.start() if standing is None else pipe.take_over(standing))
        except BaseException:
            # Whichever of the two has the queue open keeps what comes until the next plan.
            if not pipe.running:
                del self._pipes[name]
                self._pipes |= {} if standing is None else {name: standing}
            raise
        self._retired = [one for one in self._retired if one.name != name]
        pipe.observe()

    async def _listen(self, name: str, listener: Listener) -> None:
        """The one before closes afterwards, unless it has the very address that is wanted."""
        standing = self._listeners.get(name)
        if standing is not None and standing.server.address == listener.server.address:
            await self._close(name)
            standing = None
        try:
            await listener.server.start()
        except OSError as error:
            host, port = listener.server.address
            raise PermanentError(
                f"cannot listen on {host}:{port}: {error.strerror}; give server '{name}' another"
                " address, or an empty one to turn it off"
            ) from error
        self._listeners[name] = listener
        if standing is not None:
            await standing.server.stop(self.config.shutdown_hook_s / 2)

    async def _close(self, name: str) -> None:
        await self._listeners.pop(name).server.stop(self.config.shutdown_hook_s / 2)

    async def _retire(self, name: str) -> None:
        pipe = self._pipes.pop(name)
        await pipe.stop(self.config.shutdown_hook_s)
        pipe.unobserve()
        self.around.health.set(f"sender {name}", True)
        self._retired.append(pipe)

    def ledger(self) -> Ledger:
        """The books of all pipes together, those included that were there."""
        ledgers = [pipe.ledger() for pipe in (*self.pipes, *self._retired)]
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
