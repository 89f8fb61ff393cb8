"""Known spans, metrics and logs through OpenTelemetry's SDK; ends when all are delivered.

Given: "grpc" or "http", the address to export to, the service, and the contexts of callers in
another process. Without callers it takes orders and asks for their payment, with them it is paid.
Prints, as JSON, the contexts of its own calls and what became of each export. Makes ORDERS orders,
the last of which fails.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

from opentelemetry import trace
from opentelemetry.propagate import extract, inject
from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode

protocol, address, service, *callers = sys.argv[1:]
if protocol == "grpc":
    from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

    where = {
        signal: {"endpoint": address, "insecure": True} for signal in ("traces", "metrics", "logs")
    }
else:
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    where = {
        signal: {"endpoint": f"http://{address}/v1/{signal}"}
        for signal in ("traces", "metrics", "logs")
    }

ORDERS = 4
exports: dict[str, list[str]] = {}


def watched(signal: str, exporter: Any) -> Any:
    """The exporter, each of whose results is noted."""
    export = exporter.export

    def noted(*args: Any, **options: Any) -> Any:
        result = export(*args, **options)
        exports.setdefault(signal, []).append(result.name)
        return result

    exporter.export = noted
    return exporter


resource = Resource.create({"service.name": service, "service.instance.id": f"{service}-1"})
traces = TracerProvider(resource=resource)
traces.add_span_processor(
    BatchSpanProcessor(watched("traces", OTLPSpanExporter(**where["traces"])))
)
metrics = MeterProvider(
    [
        PeriodicExportingMetricReader(
            watched("metrics", OTLPMetricExporter(**where["metrics"])),
            export_interval_millis=60_000,
        )
    ],
    resource=resource,
)
logs = LoggerProvider(resource=resource)
logs.add_log_record_processor(
    BatchLogRecordProcessor(watched("logs", OTLPLogExporter(**where["logs"])))
)

tracer = traces.get_tracer("shop")
counted = metrics.get_meter("shop").create_counter("shop.requests")
log = logging.getLogger("shop")
log.addHandler(LoggingHandler(logger_provider=logs))


def order(number: int) -> str:
    """The context of its call for payment."""
    carrier: dict[str, str] = {}
    with tracer.start_as_current_span(
        "GET /order", kind=SpanKind.SERVER, attributes={"http.request.method": "GET"}
    ) as span:
        log.warning("order %d", number)
        counted.add(1)
        with tracer.start_as_current_span("price"):
            pass
        with tracer.start_as_current_span(
            "POST /payment",
            kind=SpanKind.CLIENT,
            attributes={
                "http.request.method": "POST",
                "server.address": "127.0.0.1",
                "server.port": 8080,
            },
        ):
            inject(carrier)
        if number == ORDERS:
            span.set_status(Status(StatusCode.ERROR, "sold out"))
    return carrier["traceparent"]


def pay(caller: str) -> None:
    with tracer.start_as_current_span(
        "POST /payment",
        context=extract({"traceparent": caller}),
        kind=SpanKind.SERVER,
        attributes={"http.request.method": "POST"},
    ):
        counted.add(1)
        log.warning("paid %032x", trace.get_current_span().get_span_context().trace_id)
        with tracer.start_as_current_span("book"):
            pass


calls = [order(number + 1) for number in range(ORDERS)] if not callers else []
for caller in callers:
    pay(caller)
for provider in (traces, metrics, logs):
    provider.shutdown()
print(json.dumps({"calls": calls, "exports": exports}))
