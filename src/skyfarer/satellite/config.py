"""What the user writes: the original's sections (logger, telemetry, sharing, pipes), strictly.

    sharing.servers, sharing.clients   plugins by name; a pipe refers to one of each
    pipes[].gatherer.queue             the queue files of the pipe, below `data_directory`
    pipes[].sender                     how batches are made and how failures are repeated

Every section is a frozen dataclass whose fields are its keys. An unknown key, plugin or name is a
ConfigError before anything has started.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from skyfarer.base.binding import bind, nearest
from skyfarer.base.config import Document, read_yaml
from skyfarer.base.errors import ConfigError
from skyfarer.base.units import KIB, MIB
from skyfarer.satellite.notation import address, seconds

DEFAULT_FILE = Path(__file__).with_name("satellite.yaml")
GENERAL = ("data_directory", "shutdown_hook_time")
SECTIONS = (*GENERAL, "logger", "telemetry", "sharing", "pipes")
BATCH_RECORDS_MAX = 10_000
BATCH_BYTES_MAX = 32 * MIB


@dataclass(frozen=True)
class GeneralConfig:
    data_directory: Path
    shutdown_hook_time: str = "5s"  # for handing over what is queued when told to stop

    def __post_init__(self) -> None:
        seconds(self.shutdown_hook_time)


@dataclass(frozen=True)
class LoggerConfig:
    level: Literal["debug", "info", "warning", "error"] = "info"
    json: bool = False  # one JSON object per line instead of text


@dataclass(frozen=True)
class PrometheusConfig:
    address: str = "127.0.0.1:1235"  # /metrics and /healthcheck; port 0 takes any free one

    def __post_init__(self) -> None:
        address(self.address, "0.0.0.0")


@dataclass(frozen=True)
class TelemetryConfig:
    prometheus: PrometheusConfig = PrometheusConfig()


@dataclass(frozen=True)
class QueueConfig:
    plugin_name: Literal["mmap-queue"] = "mmap-queue"
    segment_bytes: int = 4 * MIB
    capacity_bytes: int = 512 * MIB
    record_bytes_max: int = 2 * MIB
    when_full: Literal["drop_oldest", "reject"] = "drop_oldest"


@dataclass(frozen=True)
class GathererConfig:
    server_name: str
    queue: QueueConfig = QueueConfig()


@dataclass(frozen=True)
class ProcessorConfig:
    filters: tuple[str, ...] = ()  # none exists in this version

    def __post_init__(self) -> None:
        if self.filters:
            raise ValueError(f"filters: there is no filter named '{self.filters[0]}'")


@dataclass(frozen=True)
class RetryConfig:
    """Pauses between two attempts: growing from `initial` to `maximum`, jittered, without end."""

    initial: str = "100ms"
    maximum: str = "10s"

    def __post_init__(self) -> None:
        if not 0 < seconds(self.initial) <= seconds(self.maximum):
            raise ValueError("initial must be above 0 and at most maximum")


@dataclass(frozen=True)
class SenderConfig:
    client_name: str
    flush_time: int = 200  # milliseconds: the age at which a batch is sent however small it is
    max_buffer_size: int = 500  # records in a batch
    max_batch_bytes: int = 1 * MIB
    retry: RetryConfig = RetryConfig()

    def __post_init__(self) -> None:
        if not 1 <= self.max_buffer_size <= BATCH_RECORDS_MAX:
            raise ValueError(f"max_buffer_size must be from 1 to {BATCH_RECORDS_MAX}")
        if not KIB <= self.max_batch_bytes <= BATCH_BYTES_MAX:
            raise ValueError(f"max_batch_bytes must be from {KIB} to {BATCH_BYTES_MAX}")
        if self.flush_time < 0:
            raise ValueError("flush_time must not be below 0")


@dataclass(frozen=True)
class CommonConfig:
    pipe_name: str

    def __post_init__(self) -> None:
        # It names a directory.
        if not self.pipe_name.replace("-", "").replace("_", "").isalnum():
            raise ValueError(f"pipe_name '{self.pipe_name}' must be letters, digits, - and _")


@dataclass(frozen=True)
class PipeConfig:
    common_config: CommonConfig
    gatherer: GathererConfig
    sender: SenderConfig
    processor: ProcessorConfig = ProcessorConfig()

    @property
    def name(self) -> str:
        return self.common_config.pipe_name


@dataclass(frozen=True)
class Plugin:
    """A plugin as written: its own keys are bound by whoever resolves its name."""

    name: str
    values: Mapping[str, object]
    where: str


@dataclass(frozen=True)
class SatelliteConfig:
    general: GeneralConfig
    pipes: tuple[PipeConfig, ...]
    servers: Mapping[str, Plugin]
    clients: Mapping[str, Plugin]
    logger: LoggerConfig = LoggerConfig()
    telemetry: TelemetryConfig = TelemetryConfig()

    @property
    def data_directory(self) -> Path:
        return self.general.data_directory

    @property
    def shutdown_hook_s(self) -> float:
        return seconds(self.general.shutdown_hook_time)


def load(path: Path | None, environ: Mapping[str, str]) -> SatelliteConfig:
    """Reads the file, by default the one that is shipped. ConfigError says what is wrong."""
    document = read_yaml(path or DEFAULT_FILE, environ)
    _check_keys(document, SECTIONS)
    _check_keys(document, ("clients", "servers"), "sharing")
    general = {key: document.value(key) for key in GENERAL if key in document.raw}
    config = SatelliteConfig(
        general=bind(GeneralConfig, general, document.file),
        pipes=_pipes(document),
        servers=_plugins(document, "servers"),
        clients=_plugins(document, "clients"),
        logger=bind(LoggerConfig, document.section("logger"), document.where("logger")),
        telemetry=bind(TelemetryConfig, document.section("telemetry"), document.where("telemetry")),
    )
    _check_names(config, document.file)
    return config


def _check_keys(document: Document, valid: tuple[str, ...], *path: str) -> None:
    for key in document.keys(*path):
        if key not in valid:
            raise ConfigError(f"{document.where(*path)} has no key '{key}'{nearest(key, valid)}")


def _pipes(document: Document) -> tuple[PipeConfig, ...]:
    pipes = document.value("pipes")
    if not isinstance(pipes, list) or not pipes:
        raise ConfigError(f"{document.file}: pipes must be a list of at least one pipe")
    return tuple(
        bind(PipeConfig, _mapping(pipe, where), where)
        for number, pipe in enumerate(pipes)
        for where in [document.where(f"pipes[{number}]")]
    )


def _plugins(document: Document, kind: str) -> dict[str, Plugin]:
    entries = document.value("sharing", kind)
    where = document.where("sharing", kind)
    if not isinstance(entries, list) or not entries:
        raise ConfigError(f"{where} must be a list of at least one plugin")
    plugins: dict[str, Plugin] = {}
    for number, entry in enumerate(entries):
        at = f"{where}[{number}]"
        values = dict(_mapping(entry, at))
        name = values.pop("plugin_name", None)
        if not isinstance(name, str) or not name:
            raise ConfigError(f"{at} needs a value for 'plugin_name'")
        if name in plugins:
            raise ConfigError(f"{where} names '{name}' twice")
        plugins[name] = Plugin(name, values, at)
    return plugins


def _mapping(value: object, where: str) -> Mapping[str, object]:
    if isinstance(value, Mapping):
        return value
    raise ConfigError(f"{where} must hold keys and values, not {value!r}")


def _check_names(config: SatelliteConfig, file: str) -> None:
    seen: set[str] = set()
    served: set[str] = set()
    for number, pipe in enumerate(config.pipes):
        where = f"{file}: pipes[{number}]"
        server, client = pipe.gatherer.server_name, pipe.sender.client_name
        if pipe.name in seen:
            raise ConfigError(f"{where}.common_config.pipe_name '{pipe.name}' is taken already")
        if server not in config.servers:
            raise ConfigError(
                f"{where}.gatherer.server_name is '{server}'{nearest(server, config.servers)}"
            )
        if server in served:
            raise ConfigError(f"{where}.gatherer.server_name '{server}' serves another pipe")
        if client not in config.clients:
            raise ConfigError(
                f"{where}.sender.client_name is '{client}'{nearest(client, config.clients)}"
            )
        seen.add(pipe.name)
        served.add(server)
