"""The configuration of the built-in providers, key by key, as application.yml spells them.

Names, defaults and units are SkyWalking's wherever it has the key. Only keys that this version
honours stand here; SkyWalking's others are in `later`.
"""

# ruff: noqa: N815  (the file's own spelling)

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeAlias

from skyfarer.base.binding import nearest
from skyfarer.base.errors import ConfigError
from skyfarer.base.units import KIB, MIB
from skyfarer.oap.boot.jdbc import conninfo
from skyfarer.queue.layout import PAGE_BYTES, SEGMENT_BYTES_MAX
from skyfarer.queue.settings import (
    CAPACITY_BYTES_MAX,
    FLUSH_COUNT_MAX,
    FLUSH_PERIOD_MS_MAX,
    SEGMENTS_MAX,
)

INGEST_DIRECTORY: Final = "ingest"  # of the data directory
ANALYSIS_CONSUMER: Final = "analysis"
TTL_DAYS_MIN: Final = 2  # the original's: today's data may never expire
TTL_DAYS_MAX: Final = 3650  # more is a mistaken unit: once these were minutes and hours
KEEPER_PERIOD_MIN_MAX: Final = 1440
PORT_MAX: Final = 65_535
MESSAGE_BYTES_MAX: Final = 50 * MIB
HOLD_BACK_MS_MAX: Final = 60_000
POOL_MAX: Final = 100
_OF_THE_JAVA_DRIVER: Final = frozenset(
    f"dataSource.{name}"
    for name in (
        "cachePrepStmts",
        "prepStmtCacheSize",
        "prepStmtCacheSqlLimit",
        "useServerPrepStmts",
    )
)
"""Statements are prepared here in any case."""

Role: TypeAlias = Literal["Mixed", "Receiver", "Aggregator"]
SegmentStatus: TypeAlias = Literal["FROM_SPAN_STATUS", "FROM_ENTRY_SPAN", "FROM_FIRST_SPAN"]
Decoder: TypeAlias = Literal["ptars", "protobuf"]

_THRESHOLD = re.compile(r"([^:,\s]+):([0-9]{1,9})\Z")
_MEMORY = re.compile(r"[1-9][0-9]*([kmgt]i?b?)\Z", re.IGNORECASE)


@dataclass(frozen=True)
class NoKeys:
    """A provider that has nothing to configure."""


@dataclass(frozen=True)
class ZooKeeperConfig:
    namespace: str = ""
    hostPort: str = "localhost:2181"
    baseSleepTimeMs: int = 1000  # between attempts, the first time
    maxRetries: int = 3  # of the start
    enableACL: bool = False
    schema: Literal["digest"] = "digest"
    expression: str = field(default="skywalking:skywalking", repr=False)  # user:password
    sslEnabled: bool = False
    sslTrustedCAsPath: Path | None = None  # of whom a server must show a certificate
    sslKeyPath: Path | None = None  # with the certificates: shown to a server that asks
    sslCertChainPath: Path | None = None
    internalComHost: str = ""  # as other nodes are told; empty: core's gRPCHost and gRPCPort
    internalComPort: int = -1

    def __post_init__(self) -> None:
        if not self.hostPort:
            raise ValueError("hostPort must name ZooKeeper's servers, as in localhost:2181")
        _at_least("baseSleepTimeMs", self.baseSleepTimeMs, 1)
        _at_least("maxRetries", self.maxRetries, 0)
        user, colon, password = self.expression.partition(":")
        if self.enableACL and not (user and colon and password):
            raise ValueError("enableACL needs an expression of user:password")
        _client_tls(self.sslEnabled, self.sslTrustedCAsPath, self.sslKeyPath, self.sslCertChainPath)
        _within("internalComPort", self.internalComPort, -1, PORT_MAX)


@dataclass(frozen=True)
class EtcdConfig:
    endpoints: str = "localhost:2379"
    namespace: str = "/skywalking"
    serviceName: str = "SkyWalking_OAP_Cluster"
    authentication: bool = False
    user: str = ""
    password: str = field(default="", repr=False)
    sslEnabled: bool = False
    sslTrustedCAsPath: Path | None = None  # of whom a server must show a certificate
    sslKeyPath: Path | None = None  # with the certificates: shown to a server that asks
    sslCertChainPath: Path | None = None
    internalComHost: str = ""
    internalComPort: int = -1

    def __post_init__(self) -> None:
        if not self.endpoints:
            raise ValueError("endpoints must name etcd's, as in localhost:2379")
        if not self.serviceName:
            raise ValueError("serviceName must not be empty")
        if self.authentication and not (self.user and self.password):
            raise ValueError("authentication needs user and password")
        _client_tls(self.sslEnabled, self.sslTrustedCAsPath, self.sslKeyPath, self.sslCertChainPath)
        _within("internalComPort", self.internalComPort, -1, PORT_MAX)


@dataclass(frozen=True)
class CoreConfig:
    role: Role = "Mixed"
    restHost: str = "127.0.0.1"
    restPort: int = 12800
    restSSLEnabled: bool = False
    restSSLKeyPath: Path | None = None
    restSSLCertChainPath: Path | None = None
    gRPCHost: str = "127.0.0.1"
    gRPCPort: int = 11800
    gRPCSslEnabled: bool = False
    gRPCSslKeyPath: Path | None = None
    gRPCSslCertChainPath: Path | None = None
    maxConcurrentCallsPerConnection: int = 0  # 0: the server's own bound
    maxMessageSize: int = MESSAGE_BYTES_MAX  # 0, as older files have it, means the same
    enableDataKeeperExecutor: bool = True
    dataKeeperExecutePeriod: int = 5  # minutes
    recordDataTTL: int = 3  # days
    metricsDataTTL: int = 7  # days
    serviceNameMaxLength: int = 70  # characters; longer names are cut
    instanceNameMaxLength: int = 70
    endpointNameMaxLength: int = 150
    searchableTracesTags: tuple[str, ...] = (
        *("http.method", "http.status_code", "rpc.status_code", "db.type", "db.instance"),
        *("mq.queue", "mq.topic", "mq.broker"),
    )
    searchableLogsTags: tuple[str, ...] = ("level", "http.status_code", "ai_route_type")
    dataDirectory: Path = Path("data")

    def __post_init__(self) -> None:
        if not self.maxMessageSize:
            object.__setattr__(self, "maxMessageSize", MESSAGE_BYTES_MAX)
        _within("restPort", self.restPort, 0, PORT_MAX)
        _within("gRPCPort", self.gRPCPort, 0, PORT_MAX)
        _tls("restSSL", self.restSSLEnabled, self.restSSLKeyPath, self.restSSLCertChainPath)
        _tls("gRPCSsl", self.gRPCSslEnabled, self.gRPCSslKeyPath, self.gRPCSslCertChainPath)
        _at_least("maxConcurrentCallsPerConnection", self.maxConcurrentCallsPerConnection, 0)
        _at_least("maxMessageSize", self.maxMessageSize, KIB)
        _within("dataKeeperExecutePeriod", self.dataKeeperExecutePeriod, 1, KEEPER_PERIOD_MIN_MAX)
        _ttl("recordDataTTL", self.recordDataTTL)
        _ttl("metricsDataTTL", self.metricsDataTTL)
        for key in ("serviceNameMaxLength", "instanceNameMaxLength", "endpointNameMaxLength"):
            _at_least(key, getattr(self, key), 1)
        for key in ("searchableTracesTags", "searchableLogsTags"):
            if strange := [tag for tag in getattr(self, key) if "=" in tag]:
                raise ValueError(f"{key} may have no '=' in a key, as {strange[0]!r} has")


@dataclass(frozen=True)
class DuckDBConfig:
    path: Path | None = None  # a file; none: below the data directory
    memoryLimit: str = "1GB"
    recordDataTTL: int | None = None  # days, in place of core's
    metricsDataTTL: int | None = None

    def __post_init__(self) -> None:
        _memory("memoryLimit", self.memoryLimit)
        _ttl("recordDataTTL", self.recordDataTTL)
        _ttl("metricsDataTTL", self.metricsDataTTL)


def _properties() -> dict[str, str]:
    return {
        "jdbcUrl": "jdbc:postgresql://localhost:5432/skywalking",
        "dataSource.user": "postgres",
        "dataSource.password": "",
    }


@dataclass(frozen=True)
class PostgreSQLConfig:
    """There is no default password: who starts it must say one."""

    properties: dict[str, str] = field(default_factory=_properties, repr=False)
    metadataQueryMaxSize: int = 5000  # services, or instances of one, that are listed
    asyncBatchPersistentPoolSize: int = 4  # connections that read; three more write
    recordDataTTL: int | None = None  # days, in place of core's
    metricsDataTTL: int | None = None

    def __post_init__(self) -> None:
        for key in self.properties:
            if key not in _properties() and key not in _OF_THE_JAVA_DRIVER:
                raise ValueError(f"properties has no key '{key}'{nearest(key, _properties())}")
        _at_least("metadataQueryMaxSize", self.metadataQueryMaxSize, 1)
        _within("asyncBatchPersistentPoolSize", self.asyncBatchPersistentPoolSize, 1, POOL_MAX)
        _ttl("recordDataTTL", self.recordDataTTL)
        _ttl("metricsDataTTL", self.metricsDataTTL)

    def conninfo(self) -> str:
        """ConfigError where it is incomplete; asked for only by the provider that is chosen."""
        told = {**_properties(), **self.properties}
        try:
            return conninfo(told["jdbcUrl"], told["dataSource.user"], told["dataSource.password"])
        except ValueError as error:
            raise ConfigError(f"storage.postgresql: {error}") from error


@dataclass(frozen=True)
class AnalyzerConfig:
    traceAnalysis: bool = True  # without it, no services, endpoints and calls between them
    noUpstreamRealAddressAgents: tuple[int, ...] = (6000, 9000)  # components: Nginx, Envoy
    segmentStatusAnalysisStrategy: SegmentStatus = "FROM_SPAN_STATUS"
    traceSamplingPolicySettingsFile: Path | None = None
    sampleRate: int = 10_000  # of 10,000 traces, unless the file says so
    slowTraceSegmentThreshold: int = -1  # milliseconds; likewise
    forceSampleErrorSegment: bool = True
    slowDBAccessThreshold: str = "default:200,mongodb:100"  # type:milliseconds
    slowCacheReadThreshold: str = "default:20,redis:10"
    slowCacheWriteThreshold: str = "default:20,redis:10"
    oalActiveFiles: tuple[str, ...] = (
        *("core", "java-agent", "dotnet-agent", "browser", "meters", "satellite", "tcp"),
        "virtual-gen-ai",
    )
    oalFiles: tuple[Path, ...] = ()  # the user's own, or directories of them
    gatewaysFile: Path | None = None
    apdexThresholdFile: Path | None = None
    genAIConfigFile: Path | None = None
    sparkMaster: str = "local[*]"
    driverMemory: str = "1g"
    batchRecordsMax: int = 100_000
    shufflePartitions: int = 2
    decoder: Decoder = "ptars"  # the other one is asked about what it refuses

    def __post_init__(self) -> None:
        if not self.sparkMaster:
            raise ValueError("sparkMaster must name a Spark master, such as local[*]")
        for key in ("slowDBAccessThreshold", "slowCacheReadThreshold", "slowCacheWriteThreshold"):
            thresholds_ms(key, getattr(self, key))
        _within("sampleRate", self.sampleRate, 0, 10_000)
        _at_least("slowTraceSegmentThreshold", self.slowTraceSegmentThreshold, -1)
        _memory("driverMemory", self.driverMemory)
        _at_least("batchRecordsMax", self.batchRecordsMax, 1)
        _at_least("shufflePartitions", self.shufflePartitions, 1)


@dataclass(frozen=True)
class SharingServerConfig:
    """A port of 0 is core's, with core's TLS and limits; tokens are asked for in any case."""

    restHost: str = "127.0.0.1"
    restPort: int = 0
    restIdleTimeOut: int = 30_000  # milliseconds
    httpMaxRequestHeaderSize: int = 8 * KIB
    httpMaxRequestBodySize: int = 10 * MIB  # also inflated
    restSSLEnabled: bool = False
    restSSLKeyPath: Path | None = None
    restSSLCertChainPath: Path | None = None
    restSSLTrustedCAsPath: Path | None = None  # clients must show a certificate of these
    gRPCHost: str = "127.0.0.1"
    gRPCPort: int = 0
    maxConcurrentCallsPerConnection: int = 0
    maxMessageSize: int = MESSAGE_BYTES_MAX
    gRPCSslEnabled: bool = False
    gRPCSslKeyPath: Path | None = None
    gRPCSslCertChainPath: Path | None = None
    gRPCSslTrustedCAsPath: Path | None = None  # agents must show a certificate of these
    authentication: str = field(default="", repr=False)  # one token
    authenticationFile: Path | None = None  # further ones, one in a line; renewed meanwhile
    queueCapacityBytes: int = 512 * MIB
    queueSegmentBytes: int = 16 * MIB
    queueDurability: Literal["append", "fsync"] = "append"
    queueFlushPeriodMs: int = 1000  # under append; 0 is never
    queueFlushCount: int = 10_000
    registrationHoldBackMs: int = 5000  # 0: a name without an id is answered at once
    refuseMalformed: bool = False  # no protobuf at the top level: refused, else kept and parked

    def __post_init__(self) -> None:
        if not self.maxMessageSize:
            object.__setattr__(self, "maxMessageSize", MESSAGE_BYTES_MAX)
        self._check_rest()
        self._check_grpc()
        if not self.authentication.isascii() or not self.authentication.isprintable():
            raise ValueError("authentication must be printable ASCII")
        self._check_queue()
        _within("registrationHoldBackMs", self.registrationHoldBackMs, 0, HOLD_BACK_MS_MAX)

    def _check_queue(self) -> None:
        """Those of the queue in words of this file; it checks the rest itself."""
        segment, capacity = self.queueSegmentBytes, self.queueCapacityBytes
        _within("queueSegmentBytes", segment, 64 * KIB, SEGMENT_BYTES_MAX)
        _within("queueCapacityBytes", capacity, 2 * segment, CAPACITY_BYTES_MAX)
        if segment % PAGE_BYTES:
            raise ValueError(f"queueSegmentBytes must be a multiple of {PAGE_BYTES}, not {segment}")
        if capacity // segment > SEGMENTS_MAX:
            raise ValueError(
                f"queueCapacityBytes must be at most {SEGMENTS_MAX} times queueSegmentBytes"
            )
        _within("queueFlushPeriodMs", self.queueFlushPeriodMs, 0, FLUSH_PERIOD_MS_MAX)
        _within("queueFlushCount", self.queueFlushCount, 1, FLUSH_COUNT_MAX)

    @property
    def asks_for_tokens(self) -> bool:
        return bool(self.authentication) or self.authenticationFile is not None

    def _check_rest(self) -> None:
        _within("restPort", self.restPort, 0, PORT_MAX)
        _at_least("restIdleTimeOut", self.restIdleTimeOut, 1)
        _at_least("httpMaxRequestHeaderSize", self.httpMaxRequestHeaderSize, KIB)
        _at_least("httpMaxRequestBodySize", self.httpMaxRequestBodySize, KIB)
        _own("restPort", self.restPort, "restSSLEnabled", self.restSSLEnabled)
        _tls("restSSL", self.restSSLEnabled, self.restSSLKeyPath, self.restSSLCertChainPath)
        _mtls("restSSL", self.restSSLEnabled, self.restSSLTrustedCAsPath)

    def _check_grpc(self) -> None:
        _within("gRPCPort", self.gRPCPort, 0, PORT_MAX)
        _at_least("maxConcurrentCallsPerConnection", self.maxConcurrentCallsPerConnection, 0)
        _at_least("maxMessageSize", self.maxMessageSize, KIB)
        _own("gRPCPort", self.gRPCPort, "gRPCSslEnabled", self.gRPCSslEnabled)
        _tls("gRPCSsl", self.gRPCSslEnabled, self.gRPCSslKeyPath, self.gRPCSslCertChainPath)
        _mtls("gRPCSsl", self.gRPCSslEnabled, self.gRPCSslTrustedCAsPath)


@dataclass(frozen=True)
class GraphQLConfig:
    enableUpdateUITemplate: bool = False  # whoever may ask may change SkyWalking's dashboards


@dataclass(frozen=True)
class PrometheusConfig:
    host: str = "127.0.0.1"
    port: int = 1234

    def __post_init__(self) -> None:
        _within("port", self.port, 0, PORT_MAX)


def thresholds_ms(key: str, written: str) -> dict[str, int]:
    """By type, in lower case. Without a `default`, other types are never slow."""
    found: dict[str, int] = {}
    for item in filter(None, map(str.strip, written.split(","))):
        pair = _THRESHOLD.match(item)
        if pair is None:
            raise ValueError(
                f"{key} must be like default:200,mongodb:100, in milliseconds; {item!r} is not"
            )
        found[pair[1].lower()] = int(pair[2])
    return found


def _at_least(key: str, value: int, minimum: int) -> None:
    if value < minimum:
        raise ValueError(f"{key} must be at least {minimum}, not {value}")


def _within(key: str, value: int, minimum: int, maximum: int) -> None:
    if not minimum <= value <= maximum:
        raise ValueError(f"{key} must be from {minimum} to {maximum}, not {value}")


def _ttl(key: str, days: int | None) -> None:
    if days is not None:
        _within(key, days, TTL_DAYS_MIN, TTL_DAYS_MAX)


def _tls(keys: str, enabled: bool, key: Path | None, certificate: Path | None) -> None:
    if enabled and (key is None or certificate is None):
        raise ValueError(f"{keys}Enabled needs {keys}KeyPath and {keys}CertChainPath")


def _mtls(keys: str, enabled: bool, authorities: Path | None) -> None:
    if authorities is not None and not enabled:
        raise ValueError(f"{keys}TrustedCAsPath needs {keys}Enabled")


def _client_tls(
    enabled: bool, authorities: Path | None, key: Path | None, certificate: Path | None
) -> None:
    if not enabled and any((authorities, key, certificate)):
        raise ValueError("sslTrustedCAsPath, sslKeyPath and sslCertChainPath need sslEnabled")
    if enabled and authorities is None:
        raise ValueError("sslEnabled needs sslTrustedCAsPath, the authorities that are believed")
    if (key is None) != (certificate is None):
        raise ValueError("sslKeyPath and sslCertChainPath need each other")


def _own(port_key: str, port: int, key: str, enabled: bool) -> None:
    """Whoever sets it believes to be protected, and core's port would not be."""
    if enabled and not port:
        raise ValueError(f"{key} needs a {port_key} of its own: 0 is core's port, with core's TLS")


def _memory(key: str, value: str) -> None:
    if not _MEMORY.match(value):
        raise ValueError(f"{key} must be a size such as 1g, not {value!r}")
