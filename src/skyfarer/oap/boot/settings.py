"""The configuration of the built-in providers, key by key, as application.yml spells them.

Names, defaults and units are SkyWalking's wherever it has the key. Only keys that this version
honours stand here; SkyWalking's others are in `later`.
"""

# ruff: noqa: N815  (the file's own spelling)

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from skyfarer.base.units import KIB, MIB

TTL_DAYS_MIN: Final = 2  # the original's: today's data may never expire
PORT_MAX: Final = 65_535
MESSAGE_BYTES_MAX: Final = 50 * MIB
HOLD_BACK_MS_MAX: Final = 20_000

_MEMORY = re.compile(r"[1-9][0-9]*([kmgt]i?b?)\Z", re.IGNORECASE)


@dataclass(frozen=True)
class NoKeys:
    """A provider that has nothing to configure."""


@dataclass(frozen=True)
class CoreConfig:
    role: Literal["Mixed"] = "Mixed"  # Receiver and Aggregator come with the cluster
    restHost: str = "127.0.0.1"
    restPort: int = 12800
    gRPCHost: str = "127.0.0.1"
    gRPCPort: int = 11800
    maxConcurrentCallsPerConnection: int = 0  # 0: the server's own bound
    maxMessageSize: int = MESSAGE_BYTES_MAX  # 0, as older files have it, means the same
    recordDataTTL: int = 3  # days
    metricsDataTTL: int = 7  # days
    serviceNameMaxLength: int = 70  # characters; longer names are cut
    instanceNameMaxLength: int = 70
    endpointNameMaxLength: int = 150
    dataDirectory: Path = Path("data")

    def __post_init__(self) -> None:
        if not self.maxMessageSize:
            object.__setattr__(self, "maxMessageSize", MESSAGE_BYTES_MAX)
        _within("restPort", self.restPort, 0, PORT_MAX)
        _within("gRPCPort", self.gRPCPort, 0, PORT_MAX)
        _at_least("maxConcurrentCallsPerConnection", self.maxConcurrentCallsPerConnection, 0)
        _at_least("maxMessageSize", self.maxMessageSize, KIB)
        _at_least("recordDataTTL", self.recordDataTTL, TTL_DAYS_MIN)
        _at_least("metricsDataTTL", self.metricsDataTTL, TTL_DAYS_MIN)
        for key in ("serviceNameMaxLength", "instanceNameMaxLength", "endpointNameMaxLength"):
            _at_least(key, getattr(self, key), 1)


@dataclass(frozen=True)
class DuckDBConfig:
    path: Path | None = None  # a file; none: below the data directory
    memoryLimit: str = "1GB"

    def __post_init__(self) -> None:
        _memory("memoryLimit", self.memoryLimit)


@dataclass(frozen=True)
class AnalyzerConfig:
    sparkMaster: str = "local[*]"
    driverMemory: str = "1g"
    batchRecordsMax: int = 100_000
    shufflePartitions: int = 2

    def __post_init__(self) -> None:
        if not self.sparkMaster:
            raise ValueError("sparkMaster must name a Spark master, such as local[*]")
        _memory("driverMemory", self.driverMemory)
        _at_least("batchRecordsMax", self.batchRecordsMax, 1)
        _at_least("shufflePartitions", self.shufflePartitions, 1)


@dataclass(frozen=True)
class SharingServerConfig:
    """The ports are core's; what is set here is the ingest queue between receivers and Spark."""

    queueCapacityBytes: int = 512 * MIB
    queueSegmentBytes: int = 16 * MIB
    registrationHoldBackMs: int = 2000  # 0: a name without an id is answered at once

    def __post_init__(self) -> None:
        _at_least("queueSegmentBytes", self.queueSegmentBytes, 64 * KIB)
        _at_least("queueCapacityBytes", self.queueCapacityBytes, 2 * self.queueSegmentBytes)
        _within("registrationHoldBackMs", self.registrationHoldBackMs, 0, HOLD_BACK_MS_MAX)


@dataclass(frozen=True)
class PrometheusConfig:
    host: str = "127.0.0.1"
    port: int = 1234

    def __post_init__(self) -> None:
        _within("port", self.port, 0, PORT_MAX)


def _at_least(key: str, value: int, minimum: int) -> None:
    if value < minimum:
        raise ValueError(f"{key} must be at least {minimum}, not {value}")


def _within(key: str, value: int, minimum: int, maximum: int) -> None:
    if not minimum <= value <= maximum:
        raise ValueError(f"{key} must be from {minimum} to {maximum}, not {value}")


def _memory(key: str, value: str) -> None:
    if not _MEMORY.match(value):
        raise ValueError(f"{key} must be a size such as 1g, not {value!r}")
