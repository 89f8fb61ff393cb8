"""The table of calls, against the published calls and against what our .proto sources describe."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

import pytest
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import Descriptor

from skyfarer.wire import messages
from skyfarer.wire.generated import compat_pb2
from skyfarer.wire.rpc import BY_PATH, FORWARD, RPCS, V2_TWINS, Handling, Kind, Rpc, Streaming

# Each line: service/method, streaming, request, response; transcribed from the published protocol.
V3 = """
TraceSegmentReportService/collect client-stream SegmentObject Commands
TraceSegmentReportService/collectInSync unary SegmentCollection Commands
SpanAttachedEventReportService/collect client-stream SpanAttachedEvent Commands
ManagementService/reportInstanceProperties unary InstanceProperties Commands
ManagementService/keepAlive unary InstancePingPkg Commands
LogReportService/collect client-stream LogData Commands
EventService/collect client-stream Event Commands
MeterReportService/collect client-stream MeterData Commands
MeterReportService/collectBatch client-stream MeterDataCollection Commands
JVMMetricReportService/collect unary JVMMetricCollection Commands
CLRMetricReportService/collect unary CLRMetricCollection Commands
ConfigurationDiscoveryService/fetchConfigurations unary ConfigurationSyncRequest Commands
ProfileTask/getProfileTaskCommands unary ProfileTaskCommandQuery Commands
ProfileTask/collectSnapshot client-stream ThreadSnapshot Commands
ProfileTask/goProfileReport client-stream GoProfileData Commands
ProfileTask/reportTaskFinish unary ProfileTaskFinishReport Commands
BrowserPerfService/collectPerfData unary BrowserPerfData Commands
BrowserPerfService/collectWebVitalsPerfData unary BrowserWebVitalsPerfData Commands
BrowserPerfService/collectResourcePerfData unary BrowserResourcePerfData Commands
BrowserPerfService/collectWebInteractionsPerfData unary BrowserWebInteractionsPerfData Commands
BrowserPerfService/collectErrorLogs client-stream BrowserErrorLog Commands
ServiceMeshMetricService/collect client-stream ServiceMeshMetrics MeshProbeDownstream
EBPFProcessService/reportProcesses unary EBPFProcessReportList EBPFReportProcessDownstream
EBPFProcessService/keepAlive unary EBPFProcessPingPkgList Commands
EBPFProfilingService/queryTasks unary EBPFProfilingTaskQuery Commands
EBPFProfilingService/collectProfilingData client-stream EBPFProfilingData Commands
ContinuousProfilingService/queryPolicies unary ContinuousProfilingPolicyQuery Commands
ContinuousProfilingService/reportProfilingTask unary ContinuousProfilingReport Commands
EBPFAccessLogService/collect client-stream EBPFAccessLogMessage EBPFAccessLogDownstream
"""
V10 = """
AsyncProfilerTask/collect bidi AsyncProfilerData AsyncProfilerCollectionResponse
AsyncProfilerTask/getAsyncProfilerTaskCommands unary AsyncProfilerTaskCommandQuery Commands
PprofTask/collect bidi PprofData PprofCollectionResponse
PprofTask/getPprofTaskCommands unary PprofTaskCommandQuery Commands
"""
# Without a package on the path, with the messages of v3.
COMPAT = """
TraceSegmentReportService/collect client-stream SegmentObject Commands
TraceSegmentReportService/collectInSync unary SegmentCollection Commands
ManagementService/reportInstanceProperties unary InstanceProperties Commands
ManagementService/keepAlive unary InstancePingPkg Commands
MeterReportService/collect client-stream MeterData Commands
JVMMetricReportService/collect unary JVMMetricCollection Commands
CLRMetricReportService/collect unary CLRMetricCollection Commands
ProfileTask/getProfileTaskCommands unary ProfileTaskCommandQuery Commands
ProfileTask/collectSnapshot client-stream ThreadSnapshot Commands
ProfileTask/reportTaskFinish unary ProfileTaskFinishReport Commands
BrowserPerfService/collectPerfData unary BrowserPerfData Commands
BrowserPerfService/collectErrorLogs client-stream BrowserErrorLog Commands
"""
# Without a package on the path, with the messages of v2.
V2 = """
Register/doServiceRegister unary Services ServiceRegisterMapping
Register/doServiceInstanceRegister unary ServiceInstances ServiceInstanceRegisterMapping
Register/doEndpointRegister unary Endpoints EndpointMapping
Register/doNetworkAddressRegister unary NetAddresses NetAddressMapping
Register/doServiceAndNetworkAddressMappingRegister unary ServiceAndNetworkAddressMappings Commands
ServiceInstancePing/doPing unary ServiceInstancePingPkg Commands
"""
V2_ON_COMPAT_PATHS = """
TraceSegmentReportService/collect client-stream UpstreamSegment Commands
JVMMetricReportService/collect unary JVMMetricCollection Commands
CLRMetricReportService/collect unary CLRMetricCollection Commands
ProfileTask/getProfileTaskCommands unary ProfileTaskCommandQuery Commands
ProfileTask/collectSnapshot client-stream ThreadSnapshot Commands
ProfileTask/reportTaskFinish unary ProfileTaskFinishReport Commands
"""
REMOTE = """
RemoteService/call client-stream RemoteMessage Empty
RemoteService/syncStatus unary StatusRequest StatusResponse
"""

OTLP = "opentelemetry.proto.collector."
OTLP_CALLS = """
trace.v1.TraceService/Export unary trace.v1.ExportTraceServiceRequest trace.v1.ExportTraceServiceResponse
metrics.v1.MetricsService/Export unary metrics.v1.ExportMetricsServiceRequest metrics.v1.ExportMetricsServiceResponse
logs.v1.LogsService/Export unary logs.v1.ExportLogsServiceRequest logs.v1.ExportLogsServiceResponse
"""  # noqa: E501
# v2 calls with the messages of v3, as the OAP reads them.
ENVOY_LOGS = """
envoy.service.accesslog.v2.AccessLogService/StreamAccessLogs client-stream StreamAccessLogsMessage StreamAccessLogsResponse
envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs client-stream StreamAccessLogsMessage StreamAccessLogsResponse
satellite.envoy.accesslog.v3.SatelliteAccessLogService/StreamAccessLogs client-stream StreamAccessLogsMessage StreamAccessLogsResponse
"""  # noqa: E501
ENVOY_METRICS = """
envoy.service.metrics.v2.MetricsService/StreamMetrics client-stream StreamMetricsMessage StreamMetricsResponse
envoy.service.metrics.v3.MetricsService/StreamMetrics client-stream StreamMetricsMessage StreamMetricsResponse
"""  # noqa: E501

# Passed along as bytes only: nothing of ours reads these, so no source describes them.
UNDESCRIBED_SERVICES = {
    "skywalking.v3.EBPFProcessService",
    "skywalking.v3.EBPFProfilingService",
    "skywalking.v3.ContinuousProfilingService",
    "skywalking.v3.EBPFAccessLogService",
    "skywalking.v2.ProfileTask",
    "opentelemetry.proto.collector.trace.v1.TraceService",
    "opentelemetry.proto.collector.metrics.v1.MetricsService",
    "opentelemetry.proto.collector.logs.v1.LogsService",
    "envoy.service.accesslog.v2.AccessLogService",
    "envoy.service.accesslog.v3.AccessLogService",
    "envoy.service.metrics.v2.MetricsService",
    "envoy.service.metrics.v3.MetricsService",
    "satellite.envoy.accesslog.v3.SatelliteAccessLogService",
}

# By name without the package; everything else that has a kind is kept.
ASKED = {
    "ConfigurationDiscoveryService/fetchConfigurations",
    "ProfileTask/getProfileTaskCommands",
    "ProfileTask/reportTaskFinish",
    "ProfileTask/goProfileReport",
    "AsyncProfilerTask/collect",
    "AsyncProfilerTask/getAsyncProfilerTaskCommands",
    "PprofTask/collect",
    "PprofTask/getPprofTaskCommands",
    "EBPFProcessService/reportProcesses",
    "EBPFProfilingService/queryTasks",
    "ContinuousProfilingService/queryPolicies",
    "ContinuousProfilingService/reportProfilingTask",
    "ServiceInstancePing/doPing",
    "Register/doServiceRegister",
    "Register/doServiceInstanceRegister",
    "Register/doEndpointRegister",
    "Register/doNetworkAddressRegister",
    "Register/doServiceAndNetworkAddressMappingRegister",
}

# Kind → the fields a later message of a stream may leave out, and those one call must share.
IDENTITIES = {
    Kind.LOG: (("service", "serviceInstance"), ("service",)),
    Kind.METER: (("service", "serviceInstance", "timestamp"), ("service", "serviceInstance")),
    Kind.ASYNC_PROFILE: (("metaData",), ()),
    Kind.PPROF: (("metadata",), ()),
}
UNDESCRIBED_IDENTITIES = {
    Kind.EBPF_PROFILE: ((1,), ()),  # task
    Kind.EBPF_ACCESS_LOG: ((1, 2), ()),  # node, connection
    Kind.ENVOY_ACCESS_LOG: ((1,), ()),  # identifier
    Kind.ENVOY_METRICS: ((1,), (1,)),
}


@dataclass(frozen=True)
class Published:
    path: str
    streaming: str
    request: str
    response: str


def published(table: str, service_package: str, type_package: str) -> set[Published]:
    def full(package: str, name: str) -> str:
        # Commands of v3 are the answer of every later protocol too.
        package = (
            "skywalking.v3." if (package, name) == ("skywalking.v10.", "Commands") else package
        )
        return package + name

    rows = set()
    for line in table.strip().splitlines():
        call, streaming, request, response = line.split()
        types = full(type_package, request), full(type_package, response)
        rows.add(Published(f"/{service_package}{call}", streaming, *types))
    return rows


def as_published(rpcs: tuple[Rpc, ...]) -> set[Published]:
    return {Published(rpc.path, rpc.streaming.value, rpc.request, rpc.response) for rpc in rpcs}


def described(name: str) -> Descriptor:
    assert messages and compat_pb2, "importing them fills the pool"
    return descriptor_pool.Default().FindMessageTypeByName(name)


def service_of(rpc: Rpc) -> str:
    service = rpc.path.removeprefix("/").split("/")[0]
    return f"skywalking.v2.{service}" if rpc.request.startswith("skywalking.v2.") else service


ALL = (*RPCS, *V2_TWINS)
DESCRIBED = tuple(rpc for rpc in ALL if service_of(rpc) not in UNDESCRIBED_SERVICES)


def test_table_holds_every_published_call_and_no_other() -> None:
    assert as_published(RPCS) == (
        published(V3, "skywalking.v3.", "skywalking.v3.")
        | published(V10, "skywalking.v10.", "skywalking.v10.")
        | published(COMPAT, "", "skywalking.v3.")
        | published(V2, "", "skywalking.v2.")
        | published(REMOTE, "", "")
        | published(OTLP_CALLS, OTLP, OTLP)
        | published(ENVOY_LOGS, "", "envoy.service.accesslog.v3.")
        | published(ENVOY_METRICS, "", "envoy.service.metrics.v3.")
    )


def test_v2_twins_are_the_v2_calls_whose_paths_later_agents_use_too() -> None:
    assert as_published(V2_TWINS) == published(V2_ON_COMPAT_PATHS, "", "skywalking.v2.")
    for twin in V2_TWINS:
        assert BY_PATH[twin.path].streaming is twin.streaming


def test_each_path_has_one_row() -> None:
    assert len(BY_PATH) == len(RPCS)
    assert all(BY_PATH[rpc.path] is rpc for rpc in RPCS)


@pytest.mark.parametrize("rpc", DESCRIBED, ids=lambda rpc: f"{service_of(rpc)}-{rpc.request}")
def test_described_service_takes_and_streams_what_the_row_says(rpc: Rpc) -> None:
    service = descriptor_pool.Default().FindServiceByName(service_of(rpc))
    method = service.FindMethodByName(rpc.path.rpartition("/")[2])
    assert method.input_type is described(rpc.request)
    assert method.output_type is described(rpc.response)
    assert method.client_streaming is (rpc.streaming is not Streaming.UNARY)
    assert method.server_streaming is (rpc.streaming is Streaming.BIDI)


def test_only_known_gaps_are_left_undescribed() -> None:
    gaps = [rpc for rpc in ALL if rpc not in DESCRIBED]
    assert {service_of(rpc) for rpc in gaps} == UNDESCRIBED_SERVICES


def test_what_needs_the_upstreams_answer_is_asked_and_everything_else_of_an_agent_is_kept() -> None:
    for rpc in RPCS:
        call = rpc.path.removeprefix("/skywalking.v3.").removeprefix("/skywalking.v10.").lstrip("/")
        expected = Handling.ASK if call in ASKED else Handling.KEEP
        if call.startswith("RemoteService/"):
            expected = Handling.REFUSE
        assert rpc.handling is expected, rpc.path
        assert rpc.handling is not Handling.KEEP or rpc.kind is not Kind.NONE


def test_identities_are_the_fields_that_a_stream_says_once() -> None:
    expected = dict(UNDESCRIBED_IDENTITIES)
    for kind, names in IDENTITIES.items():
        fields = described(FORWARD[kind].request).fields_by_name
        identity, call_key = (tuple(fields[name].number for name in each) for each in names)
        expected[kind] = identity, call_key
    for rpc in RPCS:
        assert (rpc.identity, rpc.call_key) == expected.get(rpc.kind, ((), ())), rpc.path


def test_kind_numbers_on_disk_never_change() -> None:
    assert {kind.name: kind.value for kind in Kind} == {
        "NONE": 0,
        "SEGMENT": 1,
        "INSTANCE_PROPERTIES": 2,
        "INSTANCE_PING": 3,
        "SPAN_ATTACHED_EVENT": 4,
        "LOG": 5,
        "EVENT": 6,
        "METER": 7,
        "METER_COLLECTION": 8,
        "JVM_METRICS": 9,
        "CLR_METRICS": 10,
        "PROFILE_SNAPSHOT": 11,
        "PROFILE_GO": 12,
        "PROFILE_FINISH": 13,
        "BROWSER_PAGE": 14,
        "BROWSER_WEB_VITALS": 15,
        "BROWSER_RESOURCE": 16,
        "BROWSER_INTERACTION": 17,
        "BROWSER_ERROR": 18,
        "MESH_METRICS": 19,
        "EBPF_PROCESS_PING": 20,
        "EBPF_PROFILE": 21,
        "EBPF_ACCESS_LOG": 22,
        "ASYNC_PROFILE": 23,
        "PPROF": 24,
        "V2_SEGMENT": 25,
        "V2_INSTANCE_PING": 26,
        "V2_JVM_METRICS": 27,
        "V2_CLR_METRICS": 28,
        "V2_PROFILE_SNAPSHOT": 29,
        "V2_PROFILE_FINISH": 30,
        "OTLP_TRACES": 31,
        "OTLP_METRICS": 32,
        "OTLP_LOGS": 33,
        "ENVOY_ACCESS_LOG": 34,
        "ENVOY_METRICS": 35,
        "INVENTORY": 36,
        "EBPF_PROCESS": 37,
        "CONTINUOUS_PROFILING_REPORT": 38,
        "TELEGRAF": 39,
        "ZIPKIN_V2_JSON": 40,
        "ZIPKIN_V2_PROTO": 41,
        "ZIPKIN_V1_JSON": 42,
        "ZIPKIN_V1_THRIFT": 43,
        "FIREHOSE_METRICS": 44,
    }


def test_a_kind_is_one_type_of_record_whichever_way_it_came() -> None:
    records: dict[Kind, set[str]] = {}
    for rpc in ALL:
        element = rpc.request
        if rpc.repeated_field is not None:
            field = described(rpc.request).fields_by_number[rpc.repeated_field]
            assert field.is_repeated and field.message_type is not None
            element = field.message_type.full_name
        records.setdefault(rpc.kind, set()).add(element)
    del records[Kind.NONE]
    assert all(len(types) == 1 for types in records.values()), records


# What is posted alone: it has no call, so no satellite takes it.
POSTED = {
    *(Kind.TELEGRAF, Kind.FIREHOSE_METRICS, Kind.ZIPKIN_V2_JSON, Kind.ZIPKIN_V2_PROTO),
    *(Kind.ZIPKIN_V1_JSON, Kind.ZIPKIN_V1_THRIFT),
}


def test_every_kind_of_an_agent_is_forwarded_by_one_call_that_carries_it_bare() -> None:
    assert set(FORWARD) == set(Kind) - {Kind.NONE, Kind.INVENTORY} - POSTED
    for kind, rpc in FORWARD.items():
        assert rpc.kind == kind
        assert rpc.path == rpc.forward_path
        assert rpc.repeated_field is None


def test_what_came_without_a_package_is_forwarded_with_one() -> None:
    for row in published(COMPAT, "", "skywalking.v3."):
        assert BY_PATH[row.path].forward_path.startswith("/skywalking.v3.")
    assert FORWARD[Kind.SEGMENT].path == "/skywalking.v3.TraceSegmentReportService/collect"
    assert "Satellite" in FORWARD[Kind.ENVOY_ACCESS_LOG].path
    for rpc in RPCS:
        assert rpc.forward_path in BY_PATH
        assert BY_PATH[rpc.forward_path].kind is rpc.kind


def test_only_the_synchronous_segment_call_is_a_collection() -> None:
    assert {rpc.path: rpc.repeated_field for rpc in RPCS if rpc.repeated_field is not None} == {
        "/skywalking.v3.TraceSegmentReportService/collectInSync": 1,
        "/TraceSegmentReportService/collectInSync": 1,
    }


def test_routing_keys_name_text_fields_of_their_requests() -> None:
    routed = [rpc for rpc in RPCS if rpc.routing_key is not None]
    assert {rpc.kind for rpc in routed} == {Kind.METER, Kind.METER_COLLECTION}
    for rpc in routed:
        assert rpc.routing_key is not None
        *outer, last = rpc.routing_key.split(".")
        message = described(rpc.request)
        for name in outer:
            inner = message.fields_by_name[name].message_type
            assert inner is not None
            message = inner
        assert message.fields_by_name[last].type == message.fields_by_name[last].TYPE_STRING


def test_table_and_split_are_imported_without_protobuf() -> None:
    script = "import sys, skyfarer.wire.rpc, skyfarer.wire.split; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "skyfarer.wire.split" in done.stdout.split()
    assert "google.protobuf" not in done.stdout.split()
