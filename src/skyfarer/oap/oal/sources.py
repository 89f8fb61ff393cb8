"""What a metric may be made from: every source, its scope and its attributes, in one table.

An attribute is written `name:type`; without a type it is text. `long`, `int`, `double` and
`boolean` are never null, 0 or false where nothing was set. Text, lists, maps and the enumerations
below may be null. A scope number is SkyWalking's, where the query protocol shows one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from skyfarer.oap.core.layers import Layer


class Type(Enum):
    LONG = "long"
    INT = "int"
    DOUBLE = "double"
    BOOLEAN = "boolean"
    TEXT = "text"
    LIST = "list"  # of texts
    MAP = "map"  # text to text; only `name["key"]` has a value
    ENUM = "enum"


WHOLE: Final = frozenset({Type.LONG, Type.INT})
NUMBERS: Final = WHOLE | {Type.DOUBLE}
NULLABLE: Final = frozenset({Type.TEXT, Type.LIST, Type.ENUM})

ENUMS: Final[Mapping[str, tuple[str, ...]]] = {
    "Layer": tuple(layer.name for layer in Layer),
    "RequestType": ("DATABASE", "HTTP", "RPC", "gRPC", "LOGIC", "TCP", "MQ", "GenAI"),
    "DetectPoint": ("SERVER", "CLIENT", "PROXY", "UNRECOGNIZED"),
    "VirtualCacheOperation": ("Read", "Write", "Others"),
    "MQOperation": ("Produce", "Consume"),
    "MemoryPoolType": (
        "CODE_CACHE_USAGE",
        "NEWGEN_USAGE",
        "OLDGEN_USAGE",
        "SURVIVOR_USAGE",
        "PERMGEN_USAGE",
        "METASPACE_USAGE",
        "ZHEAP_USAGE",
        "COMPRESSED_CLASS_SPACE_USAGE",
        "CODEHEAP_NON_NMETHODS_USAGE",
        "CODEHEAP_PROFILED_NMETHODS_USAGE",
        "CODEHEAP_NON_PROFILED_NMETHODS_USAGE",
    ),
    "GCPhase": ("NEW", "OLD", "NORMAL"),
    "BrowserAppTrafficCategory": ("NORMAL", "FIRST_ERROR", "ERROR"),
    "BrowserErrorCategory": ("AJAX", "RESOURCE", "VUE", "PROMISE", "JS", "UNKNOWN"),
}
DECORATORS: Final[Mapping[str, str]] = {
    "ServiceDecorator": "Service",
    "EndpointDecorator": "Endpoint",
}
"""Decorator → the source it decorates: `attr0` becomes the layer's name."""


@dataclass(frozen=True)
class Attribute:
    """`enum` names a row of ENUMS when `type` is ENUM."""

    type: Type
    enum: str = ""


@dataclass(frozen=True)
class Source:
    """`attributes` has nested ones by their whole path, `sideCar.internalRequestLatencyNanos`."""

    name: str
    scope: int | None
    attributes: Mapping[str, Attribute]


def _attribute(written: str) -> Attribute:
    if written in ENUMS:
        return Attribute(Type.ENUM, written)
    return Attribute(Type(written or "text"))


def _source(name: str, scope: int | None, *attributes: str) -> Source:
    pairs = (word.partition(":") for word in " ".join(attributes).split())
    return Source(name, scope, {path: _attribute(type_) for path, _, type_ in pairs})


_CALL = "status:boolean httpResponseStatusCode:int rpcStatusCode type:RequestType"
_TAGS = "tags:list tag:map"
_SIDECAR = "sideCar.internalRequestLatencyNanos:long sideCar.internalResponseLatencyNanos:long"
_ATTRS = "attr0 attr1 attr2 attr3 attr4 attr5"
_INSTANCE = "name serviceName serviceId"
_ENDS = (
    "sourceServiceId sourceServiceName sourceServiceInstanceName sourceLayer:Layer"
    " destServiceId destServiceName destServiceInstanceName destLayer:Layer"
)
_RELATION = f"{_ENDS} endpoint componentId:int detectPoint:DetectPoint tlsMode"
_BYTES = "receivedBytes:long sentBytes:long"
_ACCESS = "name latency:long status:boolean"
_MQ = "name transmissionLatency:long status:boolean operation:MQOperation"
_TRAFFIC = (
    "name count:int trafficCategory:BrowserAppTrafficCategory errorCategory:BrowserErrorCategory"
)
_GEN_AI = f"{_ACCESS} inputTokens:long outputTokens:long totalEstimatedCost:long"

_ROWS = (
    _source(
        "Service",
        1,
        "name layer:Layer serviceInstanceName endpointName latency:int tlsMode",
        f"{_CALL} {_TAGS} {_SIDECAR} {_ATTRS}",
    ),
    _source(
        "ServiceInstance",
        2,
        f"{_INSTANCE} layer:Layer endpointName latency:int {_CALL} {_TAGS} {_SIDECAR}",
    ),
    _source(
        "Endpoint",
        3,
        "name serviceName serviceId serviceInstanceName layer:Layer latency:int",
        f"{_CALL} {_TAGS} {_SIDECAR} {_ATTRS}",
    ),
    _source("ServiceRelation", 4, f"{_RELATION} latency:int {_CALL} {_SIDECAR}"),
    _source("ServiceInstanceRelation", 5, f"{_RELATION} latency:int {_CALL} {_SIDECAR}"),
    _source(
        "EndpointRelation",
        6,
        "endpoint serviceName serviceInstanceName childEndpoint childServiceName",
        "childServiceInstanceName rpcLatency:int componentId:int detectPoint:DetectPoint",
        _CALL,
    ),
    _source("ServiceInstanceJVMCPU", 8, f"{_INSTANCE} usePercent:double"),
    _source("ServiceInstanceJVMMemory", 9, f"{_INSTANCE} heapStatus:boolean used:long max:long"),
    _source(
        "ServiceInstanceJVMMemoryPool",
        10,
        f"{_INSTANCE} poolType:MemoryPoolType used:long max:long",
    ),
    _source("ServiceInstanceJVMGC", 11, f"{_INSTANCE} phase:GCPhase time:long count:long"),
    _source(
        "ServiceInstanceJVMThread",
        33,
        f"{_INSTANCE} liveCount:long daemonCount:long peakCount:long",
        "runnableStateThreadCount:long blockedStateThreadCount:long",
        "waitingStateThreadCount:long timedWaitingStateThreadCount:long",
    ),
    _source(
        "ServiceInstanceJVMClass",
        44,
        f"{_INSTANCE} loadedClassCount:long totalUnloadedClassCount:long",
        "totalLoadedClassCount:long",
    ),
    _source("ServiceInstanceCLRCPU", 19, f"{_INSTANCE} usePercent:double"),
    _source(
        "ServiceInstanceCLRGC",
        20,
        f"{_INSTANCE} gen0CollectCount:long gen1CollectCount:long gen2CollectCount:long",
        "heapMemory:long",
    ),
    _source(
        "ServiceInstanceCLRThread",
        21,
        f"{_INSTANCE} availableCompletionPortThreads:long availableWorkerThreads:long",
        "maxCompletionPortThreads:long maxWorkerThreads:long",
    ),
    _source("InstanceMeter", None, f"{_INSTANCE} meter value:long"),
    _source("InstanceHistogram", None, f"{_INSTANCE} meter bucket count:long"),
    _source("ServiceMeter", None, "name meter value:long series"),
    _source("DatabaseAccess", 17, _ACCESS),
    _source("CacheAccess", 55, f"{_ACCESS} operation:VirtualCacheOperation"),
    _source("MQAccess", 63, _MQ),
    _source("MQEndpointAccess", 64, f"{_MQ} serviceName endpoint"),
    _source("BrowserAppTraffic", None, _TRAFFIC),
    _source("BrowserAppSingleVersionTraffic", None, f"{_TRAFFIC} serviceName"),
    _source("BrowserAppPageTraffic", None, f"{_TRAFFIC} serviceName"),
    _source(
        "BrowserAppPagePerf",
        None,
        "name serviceName redirectTime:int dnsTime:int ttfbTime:int tcpTime:int transTime:int",
        "domAnalysisTime:int fptTime:int domReadyTime:int loadPageTime:int resTime:int sslTime:int",
        "ttlTime:int firstPackTime:int fmpTime:int",
    ),
    _source("BrowserAppResourcePerf", None, "name type protocol duration:long size:long"),
    _source("BrowserAppWebVitalsPerf", None, "name fmpTime:int cls:int lcpTime:int"),
    _source("BrowserAppWebInteractionPerf", None, "name inpTime:int"),
    _source("TCPService", None, f"name {_BYTES} tlsMode"),
    _source("TCPServiceInstance", None, f"{_INSTANCE} {_BYTES} tlsMode"),
    _source("TCPServiceRelation", None, f"{_RELATION} {_BYTES}"),
    _source("TCPServiceInstanceRelation", None, f"{_RELATION} {_BYTES}"),
    _source("GenAIProviderAccess", None, _GEN_AI),
    _source("GenAIModelAccess", None, f"{_GEN_AI} timeToFirstToken:long"),
)
SOURCES: Final[Mapping[str, Source]] = {source.name: source for source in _ROWS}
