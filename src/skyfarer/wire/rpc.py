"""The remote calls we know, as data: what a path carries, how it streams, what becomes of it.

Servers, clients and forwarding read this table and hold no list of their own. Types are named, not
imported, so that a program which only passes bytes along never loads protobuf.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from functools import partial


class Streaming(Enum):
    UNARY = "unary"
    CLIENT_STREAM = "client-stream"
    BIDI = "bidi"


class Handling(Enum):
    KEEP = "keep"  # appended to the queue, answered when it is durable
    ANSWER = "answer"  # answered here, nothing is kept
    REFUSE = "refuse"  # known, but UNIMPLEMENTED so far


class Kind(IntEnum):
    """What a queued record is. Stored on disk beside it: numbers are only ever added."""

    NONE = 0  # never queued: the caller waits for an answer made from its question
    SEGMENT = 1
    INSTANCE_PROPERTIES = 2
    INSTANCE_PING = 3
    SPAN_ATTACHED_EVENT = 4
    LOG = 5
    EVENT = 6
    METER = 7
    METER_COLLECTION = 8
    JVM_METRICS = 9
    CLR_METRICS = 10
    PROFILE_SNAPSHOT = 11
    PROFILE_GO = 12
    PROFILE_FINISH = 13
    BROWSER_PAGE = 14
    BROWSER_WEB_VITALS = 15
    BROWSER_RESOURCE = 16
    BROWSER_INTERACTION = 17
    BROWSER_ERROR = 18
    MESH_METRICS = 19
    EBPF_PROCESS_PING = 20
    EBPF_PROFILE = 21
    EBPF_ACCESS_LOG = 22
    ASYNC_PROFILE = 23
    PPROF = 24
    V2_SEGMENT = 25
    V2_INSTANCE_PING = 26
    V2_JVM_METRICS = 27
    V2_CLR_METRICS = 28
    V2_PROFILE_SNAPSHOT = 29
    V2_PROFILE_FINISH = 30


@dataclass(frozen=True, slots=True)
class Rpc:
    """One row. Type names are full; a v2 one has the package we gave it, which is never sent.

    `repeated_field`: the request is a collection, and each element of this field is a record.
    `forward_path`: where the same record is sent onward, whichever way it came.
    `routing_key`: the request's field, dotted, whose equal values must reach the same upstream.
    """

    path: str
    streaming: Streaming
    request: str
    response: str
    handling: Handling
    kind: Kind
    repeated_field: int | None
    forward_path: str
    routing_key: str | None


_KEPT = frozenset({Kind.SEGMENT, Kind.INSTANCE_PROPERTIES, Kind.INSTANCE_PING})


@dataclass(frozen=True, slots=True)
class _Method:
    streaming: Streaming
    name: str
    request: str
    kind: Kind = Kind.NONE
    response: str = "Commands"
    repeated_field: int | None = None
    forward: str = ""
    routing_key: str | None = None


_unary = partial(_Method, Streaming.UNARY)
_stream = partial(_Method, Streaming.CLIENT_STREAM)
_bidi = partial(_Method, Streaming.BIDI)


def _service(service: str, *methods: _Method, types: str = "") -> tuple[Rpc, ...]:
    """A service's rows; a type named without a package is of `types`, else of the service's own."""
    package = types or service.rpartition(".")[0]

    def qualified(name: str) -> str:
        return name if "." in name or not package else f"{package}.{name}"

    return tuple(
        Rpc(
            path=f"/{service}/{method.name}",
            streaming=method.streaming,
            request=qualified(method.request),
            response=qualified(method.response),
            handling=Handling.KEEP if method.kind in _KEPT else Handling.REFUSE,
            kind=method.kind,
            repeated_field=method.repeated_field,
            forward_path=f"/{service}/{method.forward or method.name}",
            routing_key=method.routing_key,
        )
        for method in methods
    )


_COLLECT = (
    *_service(
        "skywalking.v3.TraceSegmentReportService",
        _stream("collect", "SegmentObject", Kind.SEGMENT),
        _unary(
            "collectInSync", "SegmentCollection", Kind.SEGMENT, repeated_field=1, forward="collect"
        ),
    ),
    *_service(
        "skywalking.v3.SpanAttachedEventReportService",
        _stream("collect", "SpanAttachedEvent", Kind.SPAN_ATTACHED_EVENT),
    ),
    *_service(
        "skywalking.v3.ManagementService",
        _unary("reportInstanceProperties", "InstanceProperties", Kind.INSTANCE_PROPERTIES),
        _unary("keepAlive", "InstancePingPkg", Kind.INSTANCE_PING),
    ),
    *_service("skywalking.v3.LogReportService", _stream("collect", "LogData", Kind.LOG)),
    *_service("skywalking.v3.EventService", _stream("collect", "Event", Kind.EVENT)),
    *_service(
        "skywalking.v3.MeterReportService",
        _stream("collect", "MeterData", Kind.METER, routing_key="serviceInstance"),
        _stream(
            "collectBatch",
            "MeterDataCollection",
            Kind.METER_COLLECTION,
            routing_key="meterData.serviceInstance",
        ),
    ),
    *_service(
        "skywalking.v3.JVMMetricReportService",
        _unary("collect", "JVMMetricCollection", Kind.JVM_METRICS),
    ),
    *_service(
        "skywalking.v3.CLRMetricReportService",
        _unary("collect", "CLRMetricCollection", Kind.CLR_METRICS),
    ),
    *_service(
        "skywalking.v3.ConfigurationDiscoveryService",
        _unary("fetchConfigurations", "ConfigurationSyncRequest"),
    ),
    *_service(
        "skywalking.v3.ProfileTask",
        _unary("getProfileTaskCommands", "ProfileTaskCommandQuery"),
        _stream("collectSnapshot", "ThreadSnapshot", Kind.PROFILE_SNAPSHOT),
        _stream("goProfileReport", "GoProfileData", Kind.PROFILE_GO),
        _unary("reportTaskFinish", "ProfileTaskFinishReport", Kind.PROFILE_FINISH),
    ),
    *_service(
        "skywalking.v3.BrowserPerfService",
        _unary("collectPerfData", "BrowserPerfData", Kind.BROWSER_PAGE),
        _unary("collectWebVitalsPerfData", "BrowserWebVitalsPerfData", Kind.BROWSER_WEB_VITALS),
        _unary("collectResourcePerfData", "BrowserResourcePerfData", Kind.BROWSER_RESOURCE),
        _unary(
            "collectWebInteractionsPerfData",
            "BrowserWebInteractionsPerfData",
            Kind.BROWSER_INTERACTION,
        ),
        _stream("collectErrorLogs", "BrowserErrorLog", Kind.BROWSER_ERROR),
    ),
    *_service(
        "skywalking.v3.ServiceMeshMetricService",
        _stream("collect", "ServiceMeshMetrics", Kind.MESH_METRICS, "MeshProbeDownstream"),
    ),
    *_service(
        "skywalking.v3.EBPFProcessService",
        _unary("reportProcesses", "EBPFProcessReportList", response="EBPFReportProcessDownstream"),
        _unary("keepAlive", "EBPFProcessPingPkgList", Kind.EBPF_PROCESS_PING),
    ),
    *_service(
        "skywalking.v3.EBPFProfilingService",
        _unary("queryTasks", "EBPFProfilingTaskQuery"),
        _stream("collectProfilingData", "EBPFProfilingData", Kind.EBPF_PROFILE),
    ),
    *_service(
        "skywalking.v3.ContinuousProfilingService",
        _unary("queryPolicies", "ContinuousProfilingPolicyQuery"),
        _unary("reportProfilingTask", "ContinuousProfilingReport"),
    ),
    *_service(
        "skywalking.v3.EBPFAccessLogService",
        _stream("collect", "EBPFAccessLogMessage", Kind.EBPF_ACCESS_LOG, "EBPFAccessLogDownstream"),
    ),
    *_service(
        "skywalking.v10.AsyncProfilerTask",
        _bidi(
            "collect", "AsyncProfilerData", Kind.ASYNC_PROFILE, "AsyncProfilerCollectionResponse"
        ),
        _unary(
            "getAsyncProfilerTaskCommands",
            "AsyncProfilerTaskCommandQuery",
            response="skywalking.v3.Commands",
        ),
    ),
    *_service(
        "skywalking.v10.PprofTask",
        _bidi("collect", "PprofData", Kind.PPROF, "PprofCollectionResponse"),
        _unary("getPprofTaskCommands", "PprofTaskCommandQuery", response="skywalking.v3.Commands"),
    ),
)

# Calls that older agents make without the package; messages and meaning are the same.
_COMPAT = frozenset(
    {
        "TraceSegmentReportService/collect",
        "TraceSegmentReportService/collectInSync",
        "ManagementService/reportInstanceProperties",
        "ManagementService/keepAlive",
        "MeterReportService/collect",
        "JVMMetricReportService/collect",
        "CLRMetricReportService/collect",
        "ProfileTask/getProfileTaskCommands",
        "ProfileTask/collectSnapshot",
        "ProfileTask/reportTaskFinish",
        "BrowserPerfService/collectPerfData",
        "BrowserPerfService/collectErrorLogs",
    }
)

_V2 = "skywalking.v2"

RPCS: tuple[Rpc, ...] = (
    *_COLLECT,
    *(
        replace(rpc, path=f"/{call}")
        for rpc in _COLLECT
        if (call := rpc.path.removeprefix("/skywalking.v3.")) in _COMPAT
    ),
    *_service(
        "Register",
        _unary("doServiceRegister", "Services", response="ServiceRegisterMapping"),
        _unary(
            "doServiceInstanceRegister",
            "ServiceInstances",
            response="ServiceInstanceRegisterMapping",
        ),
        _unary("doEndpointRegister", "Endpoints", response="EndpointMapping"),
        _unary("doNetworkAddressRegister", "NetAddresses", response="NetAddressMapping"),
        _unary("doServiceAndNetworkAddressMappingRegister", "ServiceAndNetworkAddressMappings"),
        types=_V2,
    ),
    *_service(
        "ServiceInstancePing",
        _unary("doPing", "ServiceInstancePingPkg", Kind.V2_INSTANCE_PING),
        types=_V2,
    ),
    *_service(
        "RemoteService",
        _stream("call", "RemoteMessage", response="Empty"),
        _unary("syncStatus", "StatusRequest", response="StatusResponse"),
    ),
)

# What the same paths carry when a v2 agent calls: a server can tell only by the payload.
V2_TWINS: tuple[Rpc, ...] = (
    *_service(
        "TraceSegmentReportService",
        _stream("collect", "UpstreamSegment", Kind.V2_SEGMENT),
        types=_V2,
    ),
    *_service(
        "JVMMetricReportService",
        _unary("collect", "JVMMetricCollection", Kind.V2_JVM_METRICS),
        types=_V2,
    ),
    *_service(
        "CLRMetricReportService",
        _unary("collect", "CLRMetricCollection", Kind.V2_CLR_METRICS),
        types=_V2,
    ),
    *_service(
        "ProfileTask",
        _unary("getProfileTaskCommands", "ProfileTaskCommandQuery"),
        _stream("collectSnapshot", "ThreadSnapshot", Kind.V2_PROFILE_SNAPSHOT),
        _unary("reportTaskFinish", "ProfileTaskFinishReport", Kind.V2_PROFILE_FINISH),
        types=_V2,
    ),
)

BY_PATH: Mapping[str, Rpc] = {rpc.path: rpc for rpc in RPCS}

# Kind → the call that sends such a record onward.
FORWARD: Mapping[int, Rpc] = {
    rpc.kind: rpc
    for rpc in (*RPCS, *V2_TWINS)
    if rpc.kind is not Kind.NONE and rpc.path == rpc.forward_path
}
