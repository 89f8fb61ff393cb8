"""The whole configuration: read, checked and named, before anything is imported or started.

    sharing.servers, sharing.clients   plugins by name; any number of pipes refer to them
    pipes[].gatherer                   receivers on shared servers, or a fetcher; and the queue
    pipes[].processor                  filters, in order
    pipes[].sender                     how batches are made and how failures are repeated

An unknown key, plugin or name is a ConfigError of one sentence. What a file of the original says
and means something else here is accepted and noted (`satellite.stock`). Plugins' own keys are bound
when the plugin is resolved (`satellite.assembly`), so this module needs none of their imports and a
program may look into its configuration before it decides what to load.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from skyfarer.base.binding import bind, nearest
from skyfarer.base.config import Document, read_yaml
from skyfarer.base.errors import ConfigError
from skyfarer.satellite import stock
from skyfarer.satellite.notation import seconds, size_bytes
from skyfarer.satellite.plugins import (
    Plugin,
    read_mapping,
    read_optional,
    read_plugin,
    read_plugins,
    read_shared,
)
from skyfarer.satellite.sections import (
    GathererConfig,
    GeneralConfig,
    LoggerConfig,
    NoQueueConfig,
    PipeSections,
    QueueConfig,
    SenderConfig,
    SharingConfig,
    TelemetryConfig,
)
from skyfarer.wire.tls import is_configured

DEFAULT_FILE = Path(__file__).with_name("satellite.yaml")
# What a file of the original has no key for; the shipped file says the same.
GENERAL = {
    "data_directory": "${SKYFARER_SATELLITE_DATA_DIR:"
    "${XDG_STATE_HOME:${HOME:.}/.local/state}/skyfarer/satellite}",
    "shutdown_hook_time": "${SATELLITE_SHUTDOWN_HOOK_TIME:5s}",
    "memory_limit": "${SKYFARER_SATELLITE_MEMORY_LIMIT:50MB}",
}
SECTIONS = (*GENERAL, "logger", "telemetry", "sharing", "pipes")
QUEUES = {"mmap-queue": QueueConfig, "none-queue": NoQueueConfig}
TLS_OF_ITS_OWN = "kafka-client"


@dataclass(frozen=True)
class Reception:
    """A receiver on a shared server."""

    server_name: str
    receiver: Plugin


@dataclass(frozen=True)
class PipeConfig:
    name: str
    where: str = field(compare=False)
    receptions: tuple[Reception, ...]
    fetcher: Plugin | None
    queue: QueueConfig | NoQueueConfig
    filters: tuple[Plugin, ...]
    sender: SenderConfig
    forwarders: tuple[Plugin, ...]


@dataclass(frozen=True)
class SatelliteConfig:
    file: str
    general: GeneralConfig
    pipes: tuple[PipeConfig, ...]
    servers: Mapping[str, Plugin]
    clients: Mapping[str, Plugin]
    logger: LoggerConfig
    telemetry: TelemetryConfig
    notes: stock.Notes = field(compare=False, default_factory=stock.Notes)

    @property
    def data_directory(self) -> Path:
        return self.general.data_directory

    @property
    def shutdown_hook_s(self) -> float:
        return seconds(self.general.shutdown_hook_time)

    @property
    def memory_bytes_max(self) -> int:
        """0 is no limit."""
        return size_bytes(self.general.memory_limit)

    @property
    def speaks_tls(self) -> bool:
        """Whether anything configured will need `ssl`, judged by keys before plugins are loaded."""
        plugins = [*self.servers.values(), *self.clients.values()]
        plugins += [pipe.fetcher for pipe in self.pipes if pipe.fetcher is not None]
        return any(
            is_configured(one.values) for one in plugins if one.plugin_name != TLS_OF_ITS_OWN
        )


def load(path: Path | None, environ: Mapping[str, str]) -> SatelliteConfig:
    """Reads the file, by default the one that is shipped. ConfigError says what is wrong."""
    document = read_yaml(path or DEFAULT_FILE, environ)
    return _Loading(replace(document, raw={**GENERAL, **document.raw})).config()


class _Loading:
    """One document on its way to a SatelliteConfig, and what was noted on the way."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._notes = stock.Notes()

    def config(self) -> SatelliteConfig:
        document, notes = self._document, self._notes
        for key in document.raw:
            if key not in SECTIONS:
                raise ConfigError(f"{document.file} has no key '{key}'{nearest(key, SECTIONS)}")
        general = {key: document.value(key) for key in GENERAL}
        logger = stock.logger(document.section("logger"), document.where("logger"), notes)
        telemetry = stock.telemetry(
            document.section("telemetry"), document.where("telemetry"), notes
        )
        sharing_at = document.where("sharing")
        sharing = bind(SharingConfig, stock.sharing(document.section("sharing")), sharing_at)
        config = SatelliteConfig(
            file=document.file,
            general=bind(GeneralConfig, general, document.file),
            pipes=tuple(self._pipes()),
            servers=read_shared(sharing.servers, f"{sharing_at}.servers"),
            clients=read_shared(sharing.clients, f"{sharing_at}.clients"),
            logger=bind(LoggerConfig, logger, document.where("logger")),
            telemetry=bind(TelemetryConfig, telemetry, document.where("telemetry")),
            notes=notes,
        )
        _check_names(config)
        return config

    def _pipes(self) -> Iterator[PipeConfig]:
        pipes = self._document.value("pipes")
        if not isinstance(pipes, list) or not pipes:
            raise ConfigError(f"{self._document.file}: pipes must be a list of at least one pipe")
        for number, pipe in enumerate(pipes):
            where = self._document.where(f"pipes[{number}]")
            yield self._pipe(dict(read_mapping(pipe, where)), where)

    def _pipe(self, values: dict[str, object], where: str) -> PipeConfig:
        if isinstance(sender := values.get("sender"), Mapping):
            values["sender"] = stock.sender(sender, f"{where}.sender", self._notes)
        sections = bind(PipeSections, values, where)
        filters_at = f"{where}.processor.filters"
        return PipeConfig(
            name=sections.common_config.pipe_name,
            where=where,
            receptions=tuple(self._receptions(sections, f"{where}.gatherer")),
            fetcher=read_optional(sections.gatherer.fetcher, f"{where}.gatherer.fetcher"),
            queue=self._queue(sections.gatherer, f"{where}.gatherer.queue"),
            filters=tuple(read_plugins(sections.processor.filters, filters_at)),
            sender=sections.sender,
            forwarders=tuple(self._forwarders(sections, f"{where}.sender.forwarders")),
        )

    def _receptions(self, sections: PipeSections, where: str) -> Iterator[Reception]:
        gatherer = sections.gatherer
        written = [(gatherer.receiver, f"{where}.receiver", gatherer.server_name)]
        for number, one in enumerate(gatherer.receivers):
            values = dict(one)
            server_name = values.pop("server_name", gatherer.server_name)
            written.append((values, f"{where}.receivers[{number}]", str(server_name)))
        ways = len(gatherer.receivers) + (gatherer.receiver is not None)
        if bool(ways) == (gatherer.fetcher is not None):
            raise ConfigError(f"{where} needs a receiver or a fetcher, and not both")
        for one_of_them, at, server_name in written:
            receiver = read_optional(one_of_them, at)
            if receiver is not None:
                name = receiver.plugin_name
                kept = stock.receiver(name, receiver.values, at, self._notes)
                yield Reception(server_name, Plugin(name, kept, at))

    def _queue(self, gatherer: GathererConfig, where: str) -> QueueConfig | NoQueueConfig:
        written = dict(gatherer.queue or {"plugin_name": "mmap-queue"})
        if gatherer.fetcher is not None and written.get("plugin_name") == "mmap-queue":
            # Its source waits, where agents would not: nothing need ever be dropped.
            written.setdefault("when_full", "reject")
        plugin = read_plugin(stock.queue(written, where, self._notes), where)
        if plugin.plugin_name not in QUEUES:
            hint = nearest(plugin.plugin_name, QUEUES)
            raise ConfigError(
                f"{where}.plugin_name: there is no queue named '{plugin.plugin_name}'{hint}"
            )
        return bind(QUEUES[plugin.plugin_name], plugin.values, where)

    def _forwarders(self, sections: PipeSections, where: str) -> Iterator[Plugin]:
        for plugin in read_plugins(sections.sender.forwarders, where):
            kept = stock.forwarder(plugin.values, plugin.where, self._notes)
            for key in kept:
                raise ConfigError(f"{plugin.where} has no key '{key}'{nearest(key, ())}")
            self._notes.add(
                where, "records leave by the RPC they came by; forwarders are checked, not needed"
            )
            yield Plugin(plugin.plugin_name, {}, plugin.where)


def _check_names(config: SatelliteConfig) -> None:
    seen: set[str] = set()
    for pipe in config.pipes:
        if pipe.name in seen:
            raise ConfigError(
                f"{pipe.where}.common_config.pipe_name '{pipe.name}' is taken already"
            )
        seen.add(pipe.name)
        for reception in pipe.receptions:
            if reception.server_name not in config.servers:
                raise _unknown(
                    f"{pipe.where}.gatherer.server_name", reception.server_name, config.servers
                )
        _check_client(f"{pipe.where}.sender.client_name", pipe.sender.client_name, config)
    if "metrics_service" in config.telemetry.export_type:
        where = f"{config.file}: telemetry.metrics_service.client_name"
        _check_client(where, config.telemetry.metrics_service.client_name, config)


def _check_client(where: str, name: str, config: SatelliteConfig) -> None:
    if name not in config.clients:
        raise _unknown(where, name, config.clients)


def _unknown(where: str, name: str, known: Mapping[str, Plugin]) -> ConfigError:
    return ConfigError(f"{where} is '{name}'{nearest(name, known)}")
