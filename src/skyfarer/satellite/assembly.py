"""From the configuration to parts: servers, pipes, and which path of which server is whose.

Nothing here does I/O or starts anything, so a wrong configuration is found whole before a running
satellite is touched. What stands already and would be made the same is taken as it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from skyfarer.base.backoff import Backoff, BackoffSettings
from skyfarer.base.binding import bind
from skyfarer.base.clock import Clock, SystemClock
from skyfarer.base.errors import ConfigError
from skyfarer.base.plugins import Catalog
from skyfarer.queue.settings import QueueSettings
from skyfarer.satellite import stock
from skyfarer.satellite.attempts import RetrySettings
from skyfarer.satellite.backlog import CONSUMER, Backlog, BatchBounds
from skyfarer.satellite.catalog import catalog as built_in
from skyfarer.satellite.config import PipeConfig, SatelliteConfig
from skyfarer.satellite.contracts import Forwarder, Processor, Server
from skyfarer.satellite.dead_letters import DeadLetters
from skyfarer.satellite.doors import Service, open_doors
from skyfarer.satellite.memory import MemoryLimit
from skyfarer.satellite.notation import seconds
from skyfarer.satellite.pipe import Pipe, Queued, Recipe
from skyfarer.satellite.plugins import Plugin
from skyfarer.satellite.sections import NoQueueConfig, QueueConfig
from skyfarer.satellite.sender import Sender
from skyfarer.satellite.tap import Tap
from skyfarer.satellite.watched import Watched
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry

DEAD_LETTERS = "dead-letters"
LOCAL_HOSTS = frozenset({"127.0.0.1", "localhost", "::1", "0.0.0.0", "::"})


@dataclass(frozen=True)
class Surroundings:
    """What every part of one program shares."""

    catalog: Catalog
    clock: Clock
    random: Random
    registry: Registry
    health: Health
    memory: MemoryLimit
    tap: Tap


@dataclass(frozen=True)
class Listener:
    """A server with the plugin it was made from."""

    plugin: Plugin
    server: Server


@dataclass
class Lineup:
    """All parts of a satellite, none of them started but those that stood before."""

    listeners: dict[str, Listener]
    pipes: dict[str, Pipe]
    services: dict[str, Service]


class Assembly:
    """Makes parts of one configuration; ConfigError for what cannot be made."""

    def __init__(self, config: SatelliteConfig, around: Surroundings) -> None:
        self._config = config
        self._around = around
        self.bound: dict[str, object] = {}

    def lineup(
        self,
        listeners: Mapping[str, Listener] | None = None,
        pipes: Mapping[str, Pipe] | None = None,
    ) -> Lineup:
        """`listeners` and `pipes` are those that stand."""
        config = self._config
        made = Lineup({}, {}, {})
        for plugin in config.clients.values():
            self.plugin("client", plugin)
        for name, plugin in config.servers.items():
            if plugin.off:
                continue
            standing = (listeners or {}).get(name)
            kept = standing is not None and standing.plugin == plugin
            made.listeners[name] = standing if kept and standing else self._listener(plugin)
            made.services[name] = Service()
        for pipe in config.pipes:
            old = (pipes or {}).get(pipe.name)
            kept = old is not None and old.sending and old.recipe == self._recipe(pipe)
            made.pipes[pipe.name] = old if kept and old else self._pipe(pipe)
            open_doors(made.pipes[pipe.name], config.servers, made.services)
        self._refuse_circles(made)
        return made

    def plugin(self, kind: str, plugin: Plugin) -> tuple[Any, Any]:
        """A plugin's constructor, and its keys bound to the `config_type` of it."""
        try:
            constructor = self._around.catalog.resolve(kind, plugin.plugin_name)
        except ConfigError as error:
            raise ConfigError(f"{plugin.where}.plugin_name: {error}") from error
        config_type = constructor.config_type
        fields = {one.name for one in dataclasses.fields(config_type)}
        values = stock.plugin(
            *(kind, plugin.plugin_name, plugin.values, fields, plugin.where, self._config.notes)
        )
        bound = bind(config_type, values, plugin.where)
        self.bound[plugin.where] = bound
        return constructor, bound

    def made(self, kind: str, plugin: Plugin, *arguments: object) -> Any:
        """The plugin itself, of its keys and these arguments."""
        constructor, keys = self.plugin(kind, plugin)
        try:
            return constructor(keys, *arguments)
        except ConfigError as error:
            raise ConfigError(f"{plugin.where}: {error}") from error

    def _recipe(self, pipe: PipeConfig) -> Recipe:
        client = self._config.clients[pipe.sender.client_name]
        return Recipe(pipe, client, str(self._config.data_directory))

    def _listener(self, plugin: Plugin) -> Listener:
        around = self._around
        return Listener(plugin, self.made("server", plugin, around.registry, around.health))

    def _pipe(self, config: PipeConfig) -> Pipe:
        around, directory = self._around, self._config.data_directory / config.name
        backlog = self._backlog(config, directory)
        forwarder = self._forwarder(config, backlog)
        queued = None
        if backlog is not None and isinstance(config.queue, QueueConfig):
            sender = self._sender(config, backlog, forwarder, directory)
            queued = Queued(backlog, sender, config.queue.capacity_bytes)
        recipe = self._recipe(config)
        pipe = Pipe(recipe, forwarder, queued, around.memory, around.tap, around.registry)
        if config.fetcher is not None:
            shared = (around.clock, around.registry, around.health)
            pipe.fetcher = self.made(
                "fetcher", config.fetcher, pipe, directory / "fetcher", *shared
            )
        return pipe

    def _backlog(self, config: PipeConfig, directory: Path) -> Backlog | None:
        queue, sending = config.queue, config.sender
        if isinstance(queue, NoQueueConfig):
            if config.fetcher is not None:
                raise ConfigError(f"{config.where}.gatherer.queue: a fetcher needs a queue")
            return None
        bounds = BatchBounds(
            sending.max_buffer_size, sending.max_batch_bytes, sending.flush_time / 1000
        )
        settings = QueueSettings(
            directory=directory / "queue",
            segment_bytes=queue.segment_bytes,
            capacity_bytes=queue.capacity_bytes,
            record_bytes_max=queue.record_bytes_max,
            when_full=queue.when_full,
            durability=queue.durability,
            flush_period_ms=queue.flush_period_ms,
            flush_count=queue.flush_count,
            segments_mapped_max=queue.segments_mapped_max,
            consumers=(CONSUMER,),
        )
        return Backlog(settings, bounds, self._around.clock)

    def _forwarder(self, config: PipeConfig, backlog: Backlog | None) -> Forwarder:
        def producer() -> str:
            return backlog.producer if backlog is not None else ""

        client, records_max = config.sender.client_name, config.sender.max_buffer_size
        return self.forwarder(client, producer, records_max)

    def forwarder(
        self, client_name: str, producer: Callable[[], str], records_max: int
    ) -> Forwarder:
        plugin = self._config.clients[client_name]
        made: Forwarder = self.made("client", plugin, producer, records_max, self._around.registry)
        return made

    def _sender(
        self, config: PipeConfig, backlog: Backlog, forwarder: Forwarder, directory: Path
    ) -> Sender:
        around, retry = self._around, config.sender.retry
        backoff = BackoffSettings(seconds(retry.initial), seconds(retry.maximum))
        return Sender(
            config.name,
            backlog,
            Watched(forwarder, config.name, around.tap, around.registry),
            DeadLetters(directory / DEAD_LETTERS, around.clock),
            Backoff(backoff, around.random),
            around.registry,
            around.health,
            processor=self._processor(config),
            retry=RetrySettings(seconds(retry.max_elapsed), retry.on_exhausted),
            clock=around.clock,
        )

    def _processor(self, config: PipeConfig) -> Processor | None:
        if not config.filters:
            return None
        # Not before there is a filter: it is memory that most satellites never need.
        from skyfarer.satellite.processors.chain import Chain

        filters = [(one.plugin_name, self.made("filter", one)) for one in config.filters]
        return Chain(config.name, filters, self._around.clock, self._around.registry)

    def _refuse_circles(self, made: Lineup) -> None:
        for listener in made.listeners.values():
            for pipe in made.pipes.values():
                _refuse_a_circle(listener.server, pipe.forwarder, pipe.recipe.client.where)


def assembled(config: SatelliteConfig) -> Assembly:
    """Everything made once and nothing started: ConfigError says what would not work."""
    clock, registry = SystemClock(), Registry()
    memory = MemoryLimit(config.memory_bytes_max, clock)
    around = Surroundings(built_in(), clock, Random(), registry, Health(), memory, Tap())
    assembly = Assembly(config, around)
    assembly.lineup()
    return assembly


def _refuse_a_circle(server: Server, forwarder: Forwarder, where: str) -> None:
    """A satellite that sends to itself would multiply what it has for ever."""
    host, port = server.address
    for upstream, upstream_port in getattr(forwarder, "addresses", (forwarder.address,)):
        local = upstream == host or upstream in LOCAL_HOSTS
        if port and port == upstream_port and local:
            raise ConfigError(
                f"{where} sends to {upstream}:{port}, which is the satellite's own address;"
                " set SATELLITE_GRPC_CLIENT to the OAP's, or SATELLITE_GRPC_ADDRESS to another port"
            )
