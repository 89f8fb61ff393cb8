"""Which paths a receiver or a forwarder of the configuration stands for.

The original has a package for each; here each is a row that names services of the RPC table, or
endpoints of the HTTP one. What is kept gets a door of its pipe, what must be asked goes to the
upstream and waits for its answer. A service is named without its package: older agents call it so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from skyfarer.base.binding import nearest
from skyfarer.base.errors import ConfigError
from skyfarer.satellite.plugins import Plugin
from skyfarer.wire.http.endpoints import ENDPOINTS, Dialect, Endpoint
from skyfarer.wire.rpc import RPCS, Handling, Rpc

_NATIVE: Final[Mapping[str, tuple[str, ...]]] = {
    "native-log": ("LogReportService",),
    "native-management": ("ManagementService", "Register", "ServiceInstancePing"),
    "native-tracing": ("TraceSegmentReportService", "SpanAttachedEventReportService"),
    "native-profile": ("ProfileTask",),
    "native-async-profiler": ("AsyncProfilerTask",),
    "native-pprof": ("PprofTask",),
    "native-cds": ("ConfigurationDiscoveryService",),
    "native-event": ("EventService",),
    "native-jvm": ("JVMMetricReportService",),
    "native-clr": ("CLRMetricReportService",),
    "native-meter": ("MeterReportService",),
    "native-browser": ("BrowserPerfService",),
    "native-mesh": ("ServiceMeshMetricService",),
    "native-process": ("EBPFProcessService",),
    "native-ebpf-profiling": ("EBPFProfilingService", "ContinuousProfilingService"),
    "native-ebpf-accesslog": ("EBPFAccessLogService",),
}
_ENVOY: Final[Mapping[str, tuple[str, ...]]] = {
    "envoy-als-v2": ("envoy.service.accesslog.v2.AccessLogService",),
    "envoy-als-v3": (
        "envoy.service.accesslog.v3.AccessLogService",
        # What another satellite makes of both versions.
        "satellite.envoy.accesslog.v3.SatelliteAccessLogService",
    ),
    "envoy-metrics-v2": ("envoy.service.metrics.v2.MetricsService",),
    "envoy-metrics-v3": ("envoy.service.metrics.v3.MetricsService",),
}
_OTLP: Final[Mapping[str, tuple[str, ...]]] = {
    "otlp-traces-v1": ("opentelemetry.proto.collector.trace.v1.TraceService",),
    "otlp-metrics-v1": ("opentelemetry.proto.collector.metrics.v1.MetricsService",),
    "otlp-logs-v1": ("opentelemetry.proto.collector.logs.v1.LogsService",),
}


_NATIVE_DIALECTS: Final = (Dialect.OBJECT, Dialect.ARRAY, Dialect.LOGGING)


def _all(rows: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(service for services in rows.values() for service in services)


def _http(wanted: Callable[[Endpoint], bool]) -> tuple[str, ...]:
    return tuple(path for path, endpoint in ENDPOINTS.items() if wanted(endpoint))


SIGNALS: Final[Mapping[str, tuple[str, ...]]] = {
    **_NATIVE,
    **_ENVOY,
    **_OTLP,
    "native": _all(_NATIVE),
    "envoy": _all(_ENVOY),
    "otlp": _all(_OTLP),
}
HTTP_RECEIVERS: Final[Mapping[str, tuple[str, ...]]] = {
    "http-native-receiver": _http(lambda one: one.dialect in _NATIVE_DIALECTS),
    "http-native-log-receiver": _http(lambda one: one.dialect is Dialect.LOGGING),
    "http-otlp-receiver": _http(lambda one: one.dialect is Dialect.OTLP),
}
GRPC_RECEIVERS: Final = {f"grpc-{signal}-receiver": signal for signal in SIGNALS}
FORWARDERS: Final = {
    **{f"{signal}-grpc-forwarder": signal for signal in SIGNALS},
    "native-log-kafka-forwarder": "native-log",
}


@dataclass(frozen=True)
class Paths:
    """Of one receiver: those whose messages are kept, and those that ask the upstream."""

    kept: tuple[str, ...]
    asked: tuple[str, ...] = ()


def paths(receiver: Plugin, server: str) -> Paths:
    """Of that receiver on a server of that plugin; ConfigError when they do not belong together."""
    name = receiver.plugin_name
    if name not in GRPC_RECEIVERS and name not in HTTP_RECEIVERS:
        hint = nearest(name, (*GRPC_RECEIVERS, *HTTP_RECEIVERS))
        raise ConfigError(
            f"{receiver.where}.plugin_name: there is no receiver named '{name}'{hint}"
        )
    needed = "grpc-server" if name in GRPC_RECEIVERS else "http-server"
    if server != needed:
        raise ConfigError(f"{receiver.where}: {name} needs a server that is a {needed}")
    for key in receiver.values:
        raise ConfigError(f"{receiver.where} has no key '{key}'{nearest(key, ())}")
    if name in HTTP_RECEIVERS:
        return Paths(HTTP_RECEIVERS[name])
    rows = _rows(GRPC_RECEIVERS[name])
    return Paths(
        tuple(rpc.path for rpc in rows if rpc.handling is Handling.KEEP),
        tuple(rpc.path for rpc in rows if rpc.handling is Handling.ASK),
    )


def check_forwarder(name: str, receivers: tuple[str, ...], where: str) -> None:
    """ConfigError when what the pipe takes in is none of what the forwarder sends."""
    if name not in FORWARDERS:
        hint = nearest(name, FORWARDERS)
        raise ConfigError(f"{where}.plugin_name: there is no forwarder named '{name}'{hint}")
    sends = set(SIGNALS[FORWARDERS[name]])
    taken = [SIGNALS[GRPC_RECEIVERS[one]] for one in receivers if one in GRPC_RECEIVERS]
    known = bool(taken) and len(taken) == len(receivers)
    if known and not any(sends.intersection(services) for services in taken):
        raise ConfigError(
            f"{where} is {name}, which cannot send what {' or '.join(receivers)} takes in"
        )


def _rows(signal: str) -> list[Rpc]:
    services = SIGNALS[signal]
    return [rpc for rpc in RPCS if _service(rpc.path, services)]


def _service(path: str, services: tuple[str, ...]) -> bool:
    """A name with its package must match whole, one without it whatever package stands before."""
    name = path[1:].rpartition("/")[0]
    native = "." not in name or name.startswith("skywalking.")
    return name in services or (native and name.rpartition(".")[2] in services)
