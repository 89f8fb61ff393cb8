"""The rows of other projects' protocols that SkyWalking takes in: OpenTelemetry's and Envoy's.

Envoy's v2 services carry messages that v3's descriptions read, so a record does not say which it
came by. Only the satellite's own access log service reads the identifier of every message: Envoy's
read that of the first, and so would have one call for each Envoy.
"""

from __future__ import annotations

from skyfarer.wire.row import Kind, Method, Rpc, keep, keep_stream, service

_OTLP = "opentelemetry.proto.collector"

OTLP: tuple[Rpc, ...] = (
    *service(
        f"{_OTLP}.trace.v1.TraceService",
        keep(
            "Export",
            "ExportTraceServiceRequest",
            Kind.OTLP_TRACES,
            "ExportTraceServiceResponse",
        ),
    ),
    *service(
        f"{_OTLP}.metrics.v1.MetricsService",
        keep(
            "Export",
            "ExportMetricsServiceRequest",
            Kind.OTLP_METRICS,
            "ExportMetricsServiceResponse",
        ),
    ),
    *service(
        f"{_OTLP}.logs.v1.LogsService",
        keep(
            "Export",
            "ExportLogsServiceRequest",
            Kind.OTLP_LOGS,
            "ExportLogsServiceResponse",
        ),
    ),
)

_ACCESS_LOG_TYPES = "envoy.service.accesslog.v3"
_METRICS_TYPES = "envoy.service.metrics.v3"


def _access_logs() -> Method:
    return keep_stream(
        "StreamAccessLogs",
        "StreamAccessLogsMessage",
        Kind.ENVOY_ACCESS_LOG,
        "StreamAccessLogsResponse",
        forward="/satellite.envoy.accesslog.v3.SatelliteAccessLogService/StreamAccessLogs",
        identity=(1,),
    )


def _metrics() -> Method:
    return keep_stream(
        "StreamMetrics",
        "StreamMetricsMessage",
        Kind.ENVOY_METRICS,
        "StreamMetricsResponse",
        forward="/envoy.service.metrics.v3.MetricsService/StreamMetrics",
        identity=(1,),
        call_key=(1,),
    )


ENVOY: tuple[Rpc, ...] = (
    *service(
        "envoy.service.accesslog.v2.AccessLogService", _access_logs(), types=_ACCESS_LOG_TYPES
    ),
    *service(
        "envoy.service.accesslog.v3.AccessLogService", _access_logs(), types=_ACCESS_LOG_TYPES
    ),
    *service(
        "satellite.envoy.accesslog.v3.SatelliteAccessLogService",
        _access_logs(),
        types=_ACCESS_LOG_TYPES,
    ),
    *service("envoy.service.metrics.v2.MetricsService", _metrics(), types=_METRICS_TYPES),
    *service("envoy.service.metrics.v3.MetricsService", _metrics(), types=_METRICS_TYPES),
)
