"""Which fields of which messages the analysis wants.

Decoding costs by field (a trimmed SegmentObject decodes three times faster than a whole one), so a
shape names the fields to keep and the rest of the payload is skipped on the wire. Enums are read as
their numbers, so that a value of a newer agent is kept rather than refused, and unsigned numbers
as signed ones, since Spark has no others. A message is named as `wire.messages` has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from operator import attrgetter

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool

from skyfarer.wire import messages
from skyfarer.wire.rpc import Kind


@dataclass(frozen=True)
class Shape:
    """What is read of one message type.

    `fields`: message name → fields kept. `column`: of the source, where Spark finds them, but for
    those that only the driver is `told` (by their paths); None where all are. `required`: what must
    not be empty, or the record says nothing that could be analysed. `times`: times, of the message
    or in a list of messages → the largest that is believed; none may be negative. `rare`: it has no
    column of its own, but a place in `OTHERS`. `mended`: texts (`Message.field`) that need not be
    UTF-8, and lose what is not instead of the record.
    """

    column: str | None
    message: str
    fields: Mapping[str, tuple[str, ...]]
    required: tuple[str, ...]
    times: Mapping[str, int] = field(default_factory=dict)
    rare: bool = False
    mended: frozenset[str] = frozenset()
    told: frozenset[str] = frozenset()


OTHERS = "others"
"""The column of all rare messages: a list of at most one struct, with a list of at most one message
for each shape. A null struct takes as much room as any other, a null list next to none; and every
column costs Spark something for every row of a segment, which has none of these."""
TIME_MS_MAX = 2**42
"""In the year 2109. Beyond what a calendar holds a time would stop the batch, and sums of latencies
their overflow; a time in the wrong unit ends here too."""
NANOS_OF_MS = 1_000_000
UNTOLD = -1
"""A RefType of our own: of the parent span nothing is known but its ids (OTLP). It is never an
agent's, which sends 0 or 1, so such a reference names no caller, not even an empty one."""
_SPAN_TIMES = {"spans.startTime": TIME_MS_MAX, "spans.endTime": TIME_MS_MAX}

SEGMENT = Shape(
    column="segment",
    message="SegmentObject",
    fields={
        "SegmentObject": ("traceId", "traceSegmentId", "spans", "service", "serviceInstance"),
        "SpanObject": (
            *("spanId", "startTime", "endTime", "refs", "operationName", "peer", "spanType"),
            *("spanLayer", "componentId", "isError", "tags", "skipAnalysis"),
        ),
        "SegmentReference": (
            *("refType", "parentService", "parentServiceInstance", "parentEndpoint"),
            "networkAddressUsedAtPeer",
        ),
        "KeyStringValuePair": ("key", "value"),
    },
    required=("traceSegmentId", "service", "spans"),
    times=_SPAN_TIMES,
    mended=frozenset(
        {
            *("KeyStringValuePair.key", "KeyStringValuePair.value", "SpanObject.peer"),
            *("SegmentReference.parentService", "SegmentReference.parentServiceInstance"),
            *("SegmentReference.parentEndpoint", "SegmentReference.networkAddressUsedAtPeer"),
        }
    ),
    told=frozenset({"traceId", "traceSegmentId", "spans.spanId"}),
)
PROPERTIES = Shape(
    column=None,
    message="InstanceProperties",
    fields={
        "InstanceProperties": ("service", "serviceInstance", "properties", "layer"),
        "KeyStringValuePair": ("key", "value"),
    },
    required=("service", "serviceInstance"),
)
PING = Shape(
    column=None,
    message="InstancePingPkg",
    fields={"InstancePingPkg": ("service", "serviceInstance", "layer")},
    required=("service", "serviceInstance"),
)

INVENTORY = Shape(
    column="inventory",
    message="inventory.InventorySource",
    fields={
        "inventory.InventorySource": (
            *("scope", "name", "serviceId", "uuid", "isAddress", "addressId", "nodeType"),
            *("detectPoint", "properties", "mappingServiceId", "mappingTime"),
            *("registerTime", "heartbeatTime"),
        )
    },
    required=("scope",),
    rare=True,
)
SPAN = Shape(
    column="segment",
    message="otlp_trace.ResourceSpans",
    fields={
        "otlp_trace.ResourceSpans": ("resource", "scope_spans"),
        "otlp_trace.Resource": ("attributes",),
        "otlp_trace.ScopeSpans": ("spans",),
        "otlp_trace.Span": (
            *("trace_id", "span_id", "parent_span_id", "name", "kind", "start_time_unix_nano"),
            *("end_time_unix_nano", "attributes", "status"),
        ),
        "otlp_trace.Status": ("code",),
        "otlp_trace.KeyValue": ("key", "value"),
        "otlp_trace.AnyValue": ("string_value", "int_value"),
    },
    required=(),
)
"""Decoded by this, and then made a SEGMENT."""
UPSTREAM_SEGMENT = Shape(
    column="v2",
    message="v2_trace.UpstreamSegment",
    fields={
        "v2_trace.UpstreamSegment": ("globalTraceIds", "segment"),
        "v2_trace.UniqueId": ("idParts",),
    },
    required=(),
)
"""Only to reach the V2_SEGMENT in it."""
V2_SEGMENT = Shape(
    column="v2",
    message="v2_trace.SegmentObject",
    fields={
        "v2_trace.SegmentObject": ("traceSegmentId", "spans", "serviceInstanceId"),
        "v2_trace.UniqueId": ("idParts",),
        "v2_trace.SpanObjectV2": (
            *("spanId", "parentSpanId", "startTime", "endTime", "refs", "operationNameId"),
            *("operationName", "peerId", "peer", "spanType", "spanLayer", "componentId"),
            *("isError", "tags"),
        ),
        "v2_trace.SegmentReference": (
            *("refType", "parentTraceSegmentId", "parentSpanId", "parentServiceInstanceId"),
            *("networkAddress", "networkAddressId", "parentEndpoint", "parentEndpointId"),
        ),
        "v2_register.KeyStringValuePair": ("key", "value"),
    },
    required=("globalTraceIds", "traceSegmentId", "spans"),
    times=_SPAN_TIMES,
    rare=True,
    mended=frozenset(
        {"v2_register.KeyStringValuePair.key", "v2_register.KeyStringValuePair.value"}
    ),
)
LOG = Shape(
    column=None,
    message="log.LogData",
    fields={
        "log.LogData": (
            *("timestamp", "service", "serviceInstance", "endpoint", "traceContext", "tags"),
            "layer",
        ),
        "log.TraceContext": ("traceId", "traceSegmentId", "spanId"),
        "log.LogTags": ("data",),
        "KeyStringValuePair": ("key", "value"),
    },
    required=("service",),
    times={"timestamp": TIME_MS_MAX},
    mended=frozenset({"KeyStringValuePair.key", "KeyStringValuePair.value"}),
)
"""What a log is found by; its text is read where somebody looks at it."""
LOG_RECORD = Shape(
    column=None,
    message="otlp_logs.ResourceLogs",
    fields={
        "otlp_logs.ResourceLogs": ("resource", "scope_logs"),
        "otlp_trace.Resource": ("attributes",),
        "otlp_logs.ScopeLogs": ("log_records",),
        "otlp_logs.LogRecord": (
            *("time_unix_nano", "severity_number", "severity_text", "attributes", "trace_id"),
            *("span_id", "observed_time_unix_nano"),
        ),
        "otlp_trace.KeyValue": ("key", "value"),
        "otlp_trace.AnyValue": ("string_value", "int_value"),
    },
    required=(),
)
"""Decoded by this, and then made a LOG."""
EVENT = Shape(
    column=None,
    message="event.Event",
    fields={
        "event.Event": (
            *("uuid", "source", "name", "type", "message", "parameters", "startTime", "endTime"),
            "layer",
        ),
        "event.Source": ("service", "serviceInstance", "endpoint"),
        "event.Event.ParametersEntry": ("key", "value"),
    },
    required=("uuid",),
    times={"startTime": TIME_MS_MAX, "endTime": TIME_MS_MAX},
    mended=frozenset({"event.Event.message", "event.Event.ParametersEntry.value"}),
)


REPORTS = "reports"
"""The column of what messages became that are measurements already (`sources.reports`)."""
THREADS = (
    *("liveCount", "daemonCount", "peakCount", "runnableStateThreadCount"),
    *("blockedStateThreadCount", "waitingStateThreadCount", "timedWaitingStateThreadCount"),
)
CLASSES = ("loadedClassCount", "totalUnloadedClassCount", "totalLoadedClassCount")
PAGE_TIMES = (
    *("redirectTime", "dnsTime", "ttfbTime", "tcpTime", "transTime", "domAnalysisTime", "fptTime"),
    *("domReadyTime", "loadPageTime", "resTime", "sslTime", "ttlTime", "firstPackTime", "fmpTime"),
)


def _runtime(
    message: str,
    fields: Mapping[str, tuple[str, ...]],
    room: str = "runtime",
    cpu: str = "CPU",
    whose: tuple[str, ...] = ("service", "serviceInstance"),
) -> Shape:
    """What an instance says every second of what it runs on."""
    whole = {message: ("metrics", *whose), **fields}
    return Shape(
        column=REPORTS,
        message=f"{room}.{message}",
        fields={**{f"{room}.{name}": kept for name, kept in whole.items()}, cpu: _CPU},
        required=whose,
        times={"metrics.time": TIME_MS_MAX},
    )


_runtime_v2 = partial(
    _runtime, room="v2_runtime", cpu="v2_runtime.CPU", whose=("serviceInstanceId",)
)


def _page(message: str, *fields: str) -> Shape:
    """What a browser says of a page."""
    return Shape(
        column=REPORTS,
        message=f"browser.{message}",
        fields={f"browser.{message}": ("service", "serviceVersion", "pagePath", "time", *fields)},
        required=("service",),
        times={"time": TIME_MS_MAX},
    )


_CPU = ("usagePercent",)
_MEMORY = {"Memory": ("isHeap", "max", "used"), "MemoryPool": ("type", "max", "used")}
_CLR = {
    "CLRMetric": ("time", "cpu", "gc", "thread"),
    "ClrGC": ("Gen0CollectCount", "Gen1CollectCount", "Gen2CollectCount", "HeapMemory"),
    "ClrThread": (
        *("AvailableCompletionPortThreads", "AvailableWorkerThreads"),
        *("MaxCompletionPortThreads", "MaxWorkerThreads"),
    ),
}
JVM = _runtime(
    "JVMMetricCollection",
    {
        "JVMMetric": ("time", "cpu", "memory", "memoryPool", "gc", "thread", "clazz"),
        **_MEMORY,
        "GC": ("phase", "count", "time"),
        "Thread": THREADS,
        "Class": CLASSES,
    },
)
CLR = _runtime("CLRMetricCollection", _CLR)
V2_JVM = _runtime_v2(
    "JVMMetricCollection",
    {
        "JVMMetric": ("time", "cpu", "memory", "memoryPool", "gc"),
        **_MEMORY,
        "GC": ("phrase", "count", "time"),
    },
)
V2_CLR = _runtime_v2("CLRMetricCollection", _CLR)

_SAMPLE = {
    "meter.MeterData": ("singleValue", "histogram", "service", "serviceInstance", "timestamp"),
    "meter.MeterSingleValue": ("name", "labels", "value"),
    "meter.MeterHistogram": ("name", "values"),
    "meter.MeterBucketValue": ("bucket", "count", "isNegativeInfinity"),
    "meter.Label": ("name", "value"),
}
_LABEL = frozenset({"meter.Label.name", "meter.Label.value"})
METER = Shape(
    column=REPORTS,
    message="meter.MeterData",
    fields=_SAMPLE,
    required=(),
    times={"timestamp": TIME_MS_MAX},
    mended=_LABEL,
)
METERS = Shape(
    column=REPORTS,
    message="meter.MeterDataCollection",
    fields={"meter.MeterDataCollection": ("meterData",), **_SAMPLE},
    required=(),
    times={"meterData.timestamp": TIME_MS_MAX},
    mended=_LABEL,
)

_ENDS = (
    *("startTime", "sourceServiceName", "sourceServiceInstance", "destServiceName"),
    *("destServiceInstance", "detectPoint", "tlsMode", "destInstanceProperties"),
)
MESH = Shape(
    column=REPORTS,
    message="mesh.ServiceMeshMetrics",
    fields={
        "mesh.ServiceMeshMetrics": ("httpMetrics", "tcpMetrics"),
        "mesh.HTTPServiceMeshMetrics": ("metrics",),
        "mesh.HTTPServiceMeshMetric": (
            *_ENDS,
            *("endpoint", "latency", "responseCode", "status", "protocol"),
            *("internalRequestLatencyNanos", "internalResponseLatencyNanos"),
        ),
        "mesh.TCPServiceMeshMetrics": ("metrics",),
        "mesh.TCPServiceMeshMetric": (*_ENDS, "receivedBytes", "sentBytes"),
        "KeyStringValuePair": ("key", "value"),
    },
    required=(),
    times={
        "httpMetrics.metrics.startTime": TIME_MS_MAX,
        "tcpMetrics.metrics.startTime": TIME_MS_MAX,
    },
)

SHAPES: Mapping[int, Shape] = {
    Kind.SEGMENT: SEGMENT,
    Kind.INSTANCE_PROPERTIES: PROPERTIES,
    Kind.INSTANCE_PING: PING,
    Kind.INVENTORY: INVENTORY,
    Kind.OTLP_TRACES: SEGMENT,
    Kind.V2_SEGMENT: V2_SEGMENT,
    Kind.LOG: LOG,
    Kind.OTLP_LOGS: LOG,
    Kind.EVENT: EVENT,
    Kind.METER: METER,
    Kind.METER_COLLECTION: METERS,
    Kind.MESH_METRICS: MESH,
    Kind.JVM_METRICS: JVM,
    Kind.CLR_METRICS: CLR,
    Kind.V2_JVM_METRICS: V2_JVM,
    Kind.V2_CLR_METRICS: V2_CLR,
    Kind.BROWSER_PAGE: _page("BrowserPerfData", *PAGE_TIMES),
    Kind.BROWSER_WEB_VITALS: _page("BrowserWebVitalsPerfData", "fmpTime", "cls", "lcpTime"),
    Kind.BROWSER_RESOURCE: _page(
        "BrowserResourcePerfData", "name", "duration", "size", "protocol", "resourceType"
    ),
    Kind.BROWSER_INTERACTION: _page("BrowserWebInteractionsPerfData", "inpTime"),
    Kind.BROWSER_ERROR: _page("BrowserErrorLog", "category", "firstReportedError"),
}


def trimmed(shape: Shape) -> Descriptor:
    """The descriptor of the shape's message with only its kept fields, in a pool of its own."""
    return _trimmed(shape.message, tuple(sorted(shape.fields.items())), shape.mended)


@cache
def _trimmed(
    message: str, kept: tuple[tuple[str, tuple[str, ...]], ...], mended: frozenset[str]
) -> Descriptor:
    file = FileDescriptorProto(name=f"trimmed_{message}.proto", package="trimmed", syntax="proto3")
    for name, fields in kept:
        whole = DescriptorProto()
        attrgetter(name)(messages).DESCRIPTOR.CopyToProto(whole)
        into = file.message_type.add(name=whole.name)
        for one in whole.field:
            if one.name in fields:
                into.field.append(_plain(one, f"{name}.{one.name}" in mended))
    pool = DescriptorPool()
    pool.Add(file)
    return pool.FindMessageTypeByName(f"trimmed.{message.rpartition('.')[2]}")


def _plain(field: FieldDescriptorProto, mended: bool) -> FieldDescriptorProto:
    """The field in the trimmed package: numbers as Spark has them, a message by its trimmed name,
    a member of a oneof as a field of its own, a text to be mended as bytes."""
    if mended:
        field.type = FieldDescriptorProto.TYPE_BYTES
    elif field.type == FieldDescriptorProto.TYPE_ENUM:
        field.type = FieldDescriptorProto.TYPE_INT32
        field.ClearField("type_name")
    elif field.type == FieldDescriptorProto.TYPE_FIXED64:
        field.type = FieldDescriptorProto.TYPE_SFIXED64
    elif field.type == FieldDescriptorProto.TYPE_MESSAGE:
        field.type_name = f".trimmed.{field.type_name.rsplit('.', 1)[1]}"
    field.ClearField("json_name")
    field.ClearField("oneof_index")
    return field
