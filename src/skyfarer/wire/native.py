"""The rows of SkyWalking's own protocol: v3 and v10, v3 without its package, v2, node to node.

A satellite asks, and does not keep, a stream whose messages mean nothing apart: the chunks of one
Go profile belong to one file, and a queue would mix them with those of another.
"""

from __future__ import annotations

from dataclasses import replace

from skyfarer.wire.row import (
    Kind,
    Rpc,
    ask,
    ask_bidi,
    ask_stream,
    keep,
    keep_stream,
    refuse,
    refuse_stream,
    service,
)

COLLECT: tuple[Rpc, ...] = (
    *service(
        "skywalking.v3.TraceSegmentReportService",
        keep_stream("collect", "SegmentObject", Kind.SEGMENT),
        keep(
            "collectInSync", "SegmentCollection", Kind.SEGMENT, repeated_field=1, forward="collect"
        ),
    ),
    *service(
        "skywalking.v3.SpanAttachedEventReportService",
        keep_stream("collect", "SpanAttachedEvent", Kind.SPAN_ATTACHED_EVENT),
    ),
    *service(
        "skywalking.v3.ManagementService",
        keep("reportInstanceProperties", "InstanceProperties", Kind.INSTANCE_PROPERTIES),
        keep("keepAlive", "InstancePingPkg", Kind.INSTANCE_PING),
    ),
    *service(
        "skywalking.v3.LogReportService",
        keep_stream("collect", "LogData", Kind.LOG, identity=(2, 3), call_key=(2,)),
    ),
    *service("skywalking.v3.EventService", keep_stream("collect", "Event", Kind.EVENT)),
    *service(
        "skywalking.v3.MeterReportService",
        keep_stream(
            "collect",
            "MeterData",
            Kind.METER,
            routing_key="serviceInstance",
            identity=(3, 4, 5),
            call_key=(3, 4),
        ),
        keep_stream(
            "collectBatch",
            "MeterDataCollection",
            Kind.METER_COLLECTION,
            routing_key="meterData.serviceInstance",
        ),
    ),
    *service(
        "skywalking.v3.JVMMetricReportService",
        keep("collect", "JVMMetricCollection", Kind.JVM_METRICS),
    ),
    *service(
        "skywalking.v3.CLRMetricReportService",
        keep("collect", "CLRMetricCollection", Kind.CLR_METRICS),
    ),
    *service(
        "skywalking.v3.ConfigurationDiscoveryService",
        ask("fetchConfigurations", "ConfigurationSyncRequest"),
    ),
    *service(
        "skywalking.v3.ProfileTask",
        ask("getProfileTaskCommands", "ProfileTaskCommandQuery"),
        keep_stream("collectSnapshot", "ThreadSnapshot", Kind.PROFILE_SNAPSHOT),
        ask_stream("goProfileReport", "GoProfileData", Kind.PROFILE_GO),
        ask("reportTaskFinish", "ProfileTaskFinishReport", Kind.PROFILE_FINISH),
    ),
    *service(
        "skywalking.v3.BrowserPerfService",
        keep("collectPerfData", "BrowserPerfData", Kind.BROWSER_PAGE),
        keep("collectWebVitalsPerfData", "BrowserWebVitalsPerfData", Kind.BROWSER_WEB_VITALS),
        keep("collectResourcePerfData", "BrowserResourcePerfData", Kind.BROWSER_RESOURCE),
        keep(
            "collectWebInteractionsPerfData",
            "BrowserWebInteractionsPerfData",
            Kind.BROWSER_INTERACTION,
        ),
        keep_stream("collectErrorLogs", "BrowserErrorLog", Kind.BROWSER_ERROR),
    ),
    *service(
        "skywalking.v3.ServiceMeshMetricService",
        keep_stream("collect", "ServiceMeshMetrics", Kind.MESH_METRICS, "MeshProbeDownstream"),
    ),
    *service(
        "skywalking.v3.EBPFProcessService",
        ask(
            "reportProcesses",
            "EBPFProcessReportList",
            Kind.EBPF_PROCESS,
            "EBPFReportProcessDownstream",
        ),
        keep("keepAlive", "EBPFProcessPingPkgList", Kind.EBPF_PROCESS_PING),
    ),
    *service(
        "skywalking.v3.EBPFProfilingService",
        ask("queryTasks", "EBPFProfilingTaskQuery"),
        keep_stream("collectProfilingData", "EBPFProfilingData", Kind.EBPF_PROFILE, identity=(1,)),
    ),
    *service(
        "skywalking.v3.ContinuousProfilingService",
        ask("queryPolicies", "ContinuousProfilingPolicyQuery"),
        ask("reportProfilingTask", "ContinuousProfilingReport", Kind.CONTINUOUS_PROFILING_REPORT),
    ),
    *service(
        "skywalking.v3.EBPFAccessLogService",
        keep_stream(
            "collect",
            "EBPFAccessLogMessage",
            Kind.EBPF_ACCESS_LOG,
            "EBPFAccessLogDownstream",
            identity=(1, 2),
        ),
    ),
    *service(
        "skywalking.v10.AsyncProfilerTask",
        ask_bidi(
            "collect",
            "AsyncProfilerData",
            Kind.ASYNC_PROFILE,
            "AsyncProfilerCollectionResponse",
            identity=(1,),
        ),
        ask(
            "getAsyncProfilerTaskCommands",
            "AsyncProfilerTaskCommandQuery",
            response="skywalking.v3.Commands",
        ),
    ),
    *service(
        "skywalking.v10.PprofTask",
        ask_bidi("collect", "PprofData", Kind.PPROF, "PprofCollectionResponse", identity=(1,)),
        ask("getPprofTaskCommands", "PprofTaskCommandQuery", response="skywalking.v3.Commands"),
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

COMPAT: tuple[Rpc, ...] = tuple(
    replace(rpc, path=f"/{call}")
    for rpc in COLLECT
    if (call := rpc.path.removeprefix("/skywalking.v3.")) in _COMPAT
)

_V2 = "skywalking.v2"

V2: tuple[Rpc, ...] = (
    *service(
        "Register",
        ask("doServiceRegister", "Services", response="ServiceRegisterMapping"),
        ask(
            "doServiceInstanceRegister",
            "ServiceInstances",
            response="ServiceInstanceRegisterMapping",
        ),
        ask("doEndpointRegister", "Endpoints", response="EndpointMapping"),
        ask("doNetworkAddressRegister", "NetAddresses", response="NetAddressMapping"),
        ask("doServiceAndNetworkAddressMappingRegister", "ServiceAndNetworkAddressMappings"),
        types=_V2,
    ),
    # Its answer may tell an agent to register again.
    *service(
        "ServiceInstancePing",
        ask("doPing", "ServiceInstancePingPkg", Kind.V2_INSTANCE_PING),
        types=_V2,
    ),
)

# What the same paths carry when a v2 agent calls: a server can tell only by the payload.
V2_TWINS: tuple[Rpc, ...] = (
    *service(
        "TraceSegmentReportService",
        keep_stream("collect", "UpstreamSegment", Kind.V2_SEGMENT),
        types=_V2,
    ),
    *service(
        "JVMMetricReportService",
        keep("collect", "JVMMetricCollection", Kind.V2_JVM_METRICS),
        types=_V2,
    ),
    *service(
        "CLRMetricReportService",
        keep("collect", "CLRMetricCollection", Kind.V2_CLR_METRICS),
        types=_V2,
    ),
    *service(
        "ProfileTask",
        ask("getProfileTaskCommands", "ProfileTaskCommandQuery"),
        keep_stream("collectSnapshot", "ThreadSnapshot", Kind.V2_PROFILE_SNAPSHOT),
        ask("reportTaskFinish", "ProfileTaskFinishReport", Kind.V2_PROFILE_FINISH),
        types=_V2,
    ),
)

REMOTE: tuple[Rpc, ...] = service(
    "RemoteService",
    refuse_stream("call", "RemoteMessage", response="Empty"),
    refuse("syncStatus", "StatusRequest", response="StatusResponse"),
)
