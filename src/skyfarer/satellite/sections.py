"""What the user writes, section by section: field names are the keys, comments their meaning.

The shape is the original's. A key of the original that means something else here, or nothing, is
not a field: `satellite.stock` takes it out beforehand and says so. Where a plugin is chosen
(`receiver`, `queue`, `filters`, …) the value is a mapping with `plugin_name` and that plugin's own
keys; the plugin's `…Config` binds them. docs/guide/satellite-reference.md is made from this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from skyfarer.base.units import KIB, MIB
from skyfarer.satellite.notation import address, seconds, size_bytes

BATCH_RECORDS_MAX = 10_000
BATCH_BYTES_MAX = 32 * MIB
MEMORY_BYTES_MIN = 30_000_000
PIPE_NAME_CHARACTERS_MAX = 64
EXPORTS = ("prometheus", "metrics_service", "none")

PluginValues = dict[str, object]


@dataclass(frozen=True)
class GeneralConfig:
    """The keys at the top of the file."""

    data_directory: Path  # queues, checkpoints and dead letters; not shared with another satellite
    shutdown_hook_time: str = "5s"  # for handing over what is queued when told to stop
    memory_limit: str = "50MB"  # of its own memory; above it nothing is taken in; 0 is none

    def __post_init__(self) -> None:
        seconds(self.shutdown_hook_time)
        if 0 < size_bytes(self.memory_limit) < MEMORY_BYTES_MIN:
            raise ValueError(f"memory_limit must be 0 or at least {MEMORY_BYTES_MIN} bytes")


@dataclass(frozen=True)
class LoggerConfig:
    level: Literal["debug", "info", "warning", "error"] = "info"
    json: bool = False  # one JSON object per line instead of text


@dataclass(frozen=True)
class PrometheusConfig:
    address: str = "127.0.0.1:1235"  # /metrics, /healthcheck, /ready; port 0 takes any free one
    endpoint: str = "/metrics"  # the path of the metrics

    def __post_init__(self) -> None:
        address(self.address, "0.0.0.0")
        if not self.endpoint.startswith("/") or not self.endpoint.isascii():
            raise ValueError(f"endpoint '{self.endpoint}' must be a path such as /metrics")


@dataclass(frozen=True)
class MetricsServiceConfig:
    """Own metrics as meters to an OAP: what its page about satellites is drawn from."""

    client_name: str = "grpc-client"  # the shared client they leave by
    interval: int = 10  # seconds between two reports
    metric_prefix: str = "sw_stl_"

    def __post_init__(self) -> None:
        if not 1 <= self.interval <= 3600:
            raise ValueError("interval must be from 1 to 3600 seconds")


@dataclass(frozen=True)
class TelemetryConfig:
    cluster: str = ""  # with service and instance, a label of every metric, if not empty
    service: str = ""  # the service these metrics belong to; as a meter never empty
    instance: str = ""  # by default the host's name, as a meter
    export_type: tuple[str, ...] = ("prometheus",)  # prometheus, metrics_service, none
    prometheus: PrometheusConfig = PrometheusConfig()
    metrics_service: MetricsServiceConfig = MetricsServiceConfig()

    def __post_init__(self) -> None:
        for name in self.export_type:
            if name not in EXPORTS:
                raise ValueError(f"export_type '{name}' is none of {', '.join(EXPORTS)}")


@dataclass(frozen=True)
class SharingConfig:
    """Plugins that pipes refer to by name. `name` tells two of one plugin apart."""

    clients: tuple[PluginValues, ...] = ()  # ways out: plugin_name, name, the plugin's keys
    servers: tuple[PluginValues, ...] = ()  # ways in: plugin_name, name, the plugin's keys


@dataclass(frozen=True)
class QueueConfig:
    """Files of the pipe's directory; the shape (segments, capacity) is fixed with them."""

    segment_bytes: int = 4 * MIB  # one file of the ring
    capacity_bytes: int = 512 * MIB  # what the ring takes on disk when it is full
    record_bytes_max: int = 2 * MIB  # a larger record is refused
    # reject: agents shall come back, a fetcher waits; for a fetcher that is the default
    when_full: Literal["drop_oldest", "reject"] = "drop_oldest"
    durability: Literal["append", "fsync"] = "append"  # fsync outlives a power cut, at its price
    flush_period_ms: int = 1000  # under append: how often the disk is told to keep it; 0 is never
    flush_count: int = 10_000  # or after so many records, if that is sooner
    segments_mapped_max: int = 2  # how many segments are in memory at a time to be sent, up to 64


@dataclass(frozen=True)
class NoQueueConfig:
    """For a pipe whose every call is answered by the upstream while the caller waits."""


@dataclass(frozen=True)
class GathererConfig:
    server_name: str = ""  # the shared server that `receiver` is served by
    receiver: PluginValues | None = None  # plugin_name and its keys
    receivers: tuple[PluginValues, ...] = ()  # several, each with a server_name of its own
    fetcher: PluginValues | None = None  # instead of a receiver: plugin_name and its keys
    queue: PluginValues | None = None  # plugin_name (mmap-queue) and its keys


@dataclass(frozen=True)
class ProcessorConfig:
    filters: tuple[PluginValues, ...] = ()  # applied in this order; plugin_name and its keys


@dataclass(frozen=True)
class RetryConfig:
    """Pauses between two attempts, jittered, growing from `initial` to `maximum`."""

    initial: str = "100ms"
    maximum: str = "5s"
    max_elapsed: str = "0s"  # a batch that fails for this long is given up; 0 is for ever
    on_exhausted: Literal["park", "drop"] = "park"  # given up: as dead letters, or altogether

    def __post_init__(self) -> None:
        if not 0 < seconds(self.initial) <= seconds(self.maximum):
            raise ValueError("initial must be above 0 and at most maximum")
        seconds(self.max_elapsed)


@dataclass(frozen=True)
class SenderConfig:
    client_name: str  # the shared client that batches leave by
    flush_time: int = 200  # milliseconds: the age at which a batch is sent however small it is
    max_buffer_size: int = 500  # records in a batch
    max_batch_bytes: int = 1 * MIB  # bytes in a batch
    retry: RetryConfig = RetryConfig()  # of a batch the upstream does not take for now
    forwarders: tuple[PluginValues, ...] = ()  # checked, and else not needed: see the guide

    def __post_init__(self) -> None:
        if not 1 <= self.max_buffer_size <= BATCH_RECORDS_MAX:
            raise ValueError(f"max_buffer_size must be from 1 to {BATCH_RECORDS_MAX}")
        if not KIB <= self.max_batch_bytes <= BATCH_BYTES_MAX:
            raise ValueError(f"max_batch_bytes must be from {KIB} to {BATCH_BYTES_MAX}")
        if self.flush_time < 0:
            raise ValueError("flush_time must not be below 0")


@dataclass(frozen=True)
class CommonConfig:
    pipe_name: str  # names a directory below data_directory, and the pipe in metrics

    def __post_init__(self) -> None:
        name = self.pipe_name
        if not name.replace("-", "").replace("_", "").isalnum():
            raise ValueError(f"pipe_name '{name}' must be letters, digits, - and _")
        if len(name) > PIPE_NAME_CHARACTERS_MAX:
            raise ValueError(f"pipe_name must have at most {PIPE_NAME_CHARACTERS_MAX} characters")


@dataclass(frozen=True)
class PipeSections:
    """One entry of `pipes` as it is written."""

    common_config: CommonConfig
    gatherer: GathererConfig
    sender: SenderConfig
    processor: ProcessorConfig = ProcessorConfig()
