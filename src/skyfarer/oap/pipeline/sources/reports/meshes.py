"""What the proxies of a mesh report of calls and of bytes over TCP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.entities import INSTANCE_META
from skyfarer.oap.core.layers import Layer
from skyfarer.oap.pipeline.sources.reports.declared import (
    Part,
    Report,
    Value,
    always,
    both,
    chosen,
    has,
    same,
)
from skyfarer.oap.pipeline.sources.reports.tls import secured
from skyfarer.wire.messages import DetectPoint


def _server(metrics: pa.StructArray) -> pa.BooleanArray:
    """Seen by the proxy of the one that was called."""
    return pc.equal(pc.struct_field(metrics, "detectPoint"), DetectPoint.server)


def _described(metrics: pa.StructArray) -> pa.BooleanArray:
    lists = pc.struct_field(metrics, _PROPERTIES)
    return pc.greater(pc.fill_null(pc.list_value_length(lists), 0), 0)


_PROPERTIES: Final = "destInstanceProperties"
_UPDATE: Final = Part(
    INSTANCE_META,
    "",
    {},
    both(_server, has("destServiceInstance"), _described),
    properties=_PROPERTIES,
)
"""Says no more of an instance than what it is: that it is there its calls say."""
_SEEN: Final[Mapping[str, Value]] = {
    "detectPoint": chosen("detectPoint", {0: "CLIENT", 1: "SERVER", 2: "PROXY"}, "SERVER"),
    "tlsMode": "tlsMode",
}
_TLS: Final = {"tlsMode": "tlsMode"}
_HTTP: Final[Mapping[str, Value]] = {
    **same("latency", "status"),
    "httpResponseStatusCode": "responseCode",
    "type": chosen("protocol", {0: "HTTP", 1: "gRPC"}, "RPC"),
    "sideCar.internalRequestLatencyNanos": "internalRequestLatencyNanos",
    "sideCar.internalResponseLatencyNanos": "internalResponseLatencyNanos",
}
_HTTP_COMPONENT: Final = chosen("protocol", {0: 49, 1: 23}, 50)
_TCP_COMPONENT: Final = always(110)
_HTTP_BETWEEN: Final[Mapping[str, Value]] = {
    **_HTTP,
    **_SEEN,
    "componentId": _HTTP_COMPONENT,
    "endpoint": "endpoint",
}
_BYTES: Final = same("receivedBytes", "sentBytes")
_TCP_BETWEEN: Final = {**_BYTES, **_SEEN, "componentId": _TCP_COMPONENT}
_INSTANCES: Final = ("sourceServiceName", "sourceServiceInstance", "destServiceInstance")
_MESH = Report(
    Layer.MESH,
    {
        "service": "destServiceName",
        "instance": "destServiceInstance",
        "from_service": "sourceServiceName",
        "from_instance": "sourceServiceInstance",
    },
    (),
    time="startTime",
    of_each=True,
    needs=("service",),
)
MESH_HTTP = replace(
    _MESH,
    each="httpMetrics.metrics",
    names={**_MESH.names, "endpoint": "endpoint"},
    parts=(
        Part(
            "Service",
            "",
            {
                **_HTTP,
                **_TLS,
                "serviceInstanceName": "destServiceInstance",
                "endpointName": "endpoint",
            },
            _server,
        ),
        Part(
            "ServiceInstance",
            "",
            {**_HTTP, "endpointName": "endpoint"},
            both(_server, has("destServiceInstance")),
        ),
        _UPDATE,
        Part(
            "Endpoint",
            "",
            {**_HTTP, "serviceInstanceName": "destServiceInstance"},
            both(_server, has("endpoint")),
        ),
        Part(
            "ServiceRelation",
            "",
            {
                **_HTTP_BETWEEN,
                "sourceServiceInstanceName": "sourceServiceInstance",
                "destServiceInstanceName": "destServiceInstance",
            },
            has("sourceServiceName"),
            secured(_HTTP_COMPONENT),
        ),
        Part("ServiceInstanceRelation", "", _HTTP_BETWEEN, has(*_INSTANCES)),
    ),
)
MESH_TCP = replace(
    _MESH,
    each="tcpMetrics.metrics",
    parts=(
        Part("TCPService", "", {**_BYTES, **_TLS}, _server),
        Part(
            "TCPServiceInstance",
            "",
            {**_BYTES, **_TLS},
            both(_server, has("destServiceInstance")),
        ),
        _UPDATE,
        Part(
            "TCPServiceRelation",
            "",
            _TCP_BETWEEN,
            has("sourceServiceName"),
            secured(_TCP_COMPONENT),
        ),
        Part("TCPServiceInstanceRelation", "", _TCP_BETWEEN, has(*_INSTANCES)),
    ),
)
