"""One pipe: a gatherer and a sender with a backlog between them, and its books."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from random import Random
from typing import Any

from skyfarer.base.backoff import Backoff, BackoffSettings
from skyfarer.base.binding import bind
from skyfarer.base.clock import Clock
from skyfarer.base.errors import ConfigError, PermanentError
from skyfarer.base.plugins import Catalog
from skyfarer.queue.settings import QueueSettings
from skyfarer.satellite.backlog import CONSUMER, Backlog, BatchBounds
from skyfarer.satellite.config import PipeConfig, Plugin, QueueConfig, SatelliteConfig
from skyfarer.satellite.contracts import Forwarder, Gatherer
from skyfarer.satellite.dead_letters import DeadLetters
from skyfarer.satellite.notation import seconds
from skyfarer.satellite.sender import Sender
from skyfarer.telemetry import table
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.ledger import Ledger
from skyfarer.telemetry.metrics import Registry

log = logging.getLogger(__name__)

LOCAL_HOSTS = frozenset({"127.0.0.1", "localhost", "::1", "0.0.0.0", "::"})


class Pipe:
    """Starts at the sender and stops at the gatherer first: nothing is taken in unkept.

    Once stopped it is over; what it left waits in its directory for the next one.
    """

    def __init__(
        self,
        name: str,
        backlog: Backlog,
        gatherer: Gatherer,
        forwarder: Forwarder,
        sender: Sender,
    ) -> None:
        self.name = name
        self.backlog = backlog
        self.gatherer = gatherer
        self.forwarder = forwarder
        self._sender = sender
        self._open = False
        self._served = False

    async def start(self) -> None:
        """PermanentError when its queue or its address cannot be had."""
        self.backlog.start()
        self._open = True
        await self._sender.start()
        try:
            await self.gatherer.start()
        except OSError as error:
            host, port = self.gatherer.address
            raise PermanentError(f"cannot listen on {host}:{port}: {error.strerror}") from error
        self._served = True

    async def stop(self, timeout_s: float) -> None:
        """Half of the time at most is for calls in flight, the rest for what is queued."""
        if not self._open:
            return
        self._open = False
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        try:
            await self.gatherer.stop(timeout_s / 2)
            await self._sender.stop(max(0.0, deadline - loop.time()))
            if self._served:
                self._say_what_is_left(self.backlog.ledger())
        finally:
            self.backlog.stop(max(0.0, deadline - loop.time()))

    def _say_what_is_left(self, ledger: Ledger) -> None:
        level = logging.WARNING if ledger.queued else logging.INFO
        left = f"; {ledger.queued} records wait on disk for the next start" if ledger.queued else ""
        log.log(level, "pipe %s stopped: %s%s", self.name, ledger, left)

    def observe(self, registry: Registry) -> None:
        backlog, pipe = self.backlog, self.name
        registry.observe_with(table.GATHERER_WRITING_OFFSET, lambda: backlog.writing, pipe=pipe)
        # An append returns when the bytes are in the files: what is written is durable.
        registry.observe_with(table.GATHERER_WATERMARK_OFFSET, lambda: backlog.writing, pipe=pipe)
        registry.observe_with(table.SENDER_COMMITTED_OFFSET, lambda: backlog.committed, pipe=pipe)
        backlog.watch.register(registry, pipe)


class Assembly:
    """Makes pipes out of the configuration; raises ConfigError for what cannot be made."""

    def __init__(
        self,
        config: SatelliteConfig,
        catalog: Catalog,
        clock: Clock,
        random: Random,
        registry: Registry,
        health: Health,
    ) -> None:
        self._config = config
        self._catalog = catalog
        self._clock = clock
        self._random = random
        self._registry = registry
        self._health = health

    def pipe(self, pipe: PipeConfig) -> Pipe:
        directory = self._config.data_directory / pipe.name
        sending, registry = pipe.sender, self._registry
        bounds = BatchBounds(
            sending.max_buffer_size, sending.max_batch_bytes, sending.flush_time / 1000
        )
        backlog = Backlog(_queue_settings(directory, pipe.gatherer.queue), bounds, self._clock)
        gatherer = self._gatherer(pipe, backlog)
        forwarder = self._forwarder(pipe, backlog)
        _refuse_a_circle(gatherer, forwarder, self._config.clients[sending.client_name].where)
        backoff = BackoffSettings(seconds(sending.retry.initial), seconds(sending.retry.maximum))
        sender = Sender(
            pipe.name,
            backlog,
            forwarder,
            DeadLetters(directory / "dead-letters.jsonl", self._clock),
            Backoff(backoff, self._random),
            registry,
            self._health,
        )
        return Pipe(pipe.name, backlog, gatherer, forwarder, sender)

    def _gatherer(self, pipe: PipeConfig, backlog: Backlog) -> Gatherer:
        plugin = self._config.servers[pipe.gatherer.server_name]
        constructor, config = self._plugin("gatherer", plugin)
        made: Gatherer = constructor(config, backlog.append, self._registry, self._health)
        return made

    def _forwarder(self, pipe: PipeConfig, backlog: Backlog) -> Forwarder:
        plugin = self._config.clients[pipe.sender.client_name]
        constructor, config = self._plugin("sender", plugin)
        made: Forwarder = constructor(
            config, lambda: backlog.queue_id, pipe.sender.max_buffer_size, self._registry
        )
        return made

    def _plugin(self, kind: str, plugin: Plugin) -> tuple[Any, object]:
        try:
            constructor = self._catalog.resolve(kind, plugin.name)
        except ConfigError as error:
            raise ConfigError(f"{plugin.where}.plugin_name: {error}") from error
        return constructor, bind(constructor.config_type, plugin.values, plugin.where)


def _queue_settings(directory: Path, queue: QueueConfig) -> QueueSettings:
    return QueueSettings(
        directory=directory / "queue",
        segment_bytes=queue.segment_bytes,
        capacity_bytes=queue.capacity_bytes,
        record_bytes_max=queue.record_bytes_max,
        when_full=queue.when_full,
        consumers=(CONSUMER,),
    )


def _refuse_a_circle(gatherer: Gatherer, forwarder: Forwarder, where: str) -> None:
    """A satellite that sends to itself would multiply what it has for ever."""
    host, port = gatherer.address
    upstream, upstream_port = forwarder.address
    local = upstream == host or upstream in LOCAL_HOSTS
    if port and port == upstream_port and local:
        raise ConfigError(
            f"{where} sends to {upstream}:{port}, which is the satellite's own address;"
            " set SATELLITE_GRPC_CLIENT to the OAP's, or SATELLITE_GRPC_ADDRESS to another port"
        )
