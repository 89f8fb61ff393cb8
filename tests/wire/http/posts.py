"""Something good for every path of the table of endpoints, and what must be kept of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from skyfarer.wire import messages
from skyfarer.wire.rpc import Kind

browser = messages.browser
JSON = "application/json"
PROTOBUF = {"Content-Type": "application/x-protobuf"}
EXPORT = b"\n\x02\n\x00"  # an export request with one empty ResourceSpans

ACCEPTED = (202, "text/plain; charset=utf-8", b"")
ZIPKIN_JSON = b'[{"traceId": "1", "id": "2", "name": "get", "timestamp": 1700000000000000}]'
ZIPKIN_PROTO = b"\n\x0a\n\x08\x01\x02\x03\x04\x05\x06\x07\x08"  # one span with a trace id
THRIFT_TYPE = "application/x-thrift"
# One span, of which field 1, 64 bits, is its trace id.
THRIFT = b"\x0c\x00\x00\x00\x01" + b"\x0a\x00\x01" + bytes(7) + b"\x01" + b"\x00"

SEGMENT = {
    "traceId": "t1",
    "traceSegmentId": "s1",
    "service": "shop",
    "serviceInstance": "one",
    "spans": [
        {
            "spanId": 0,
            "parentSpanId": -1,
            "startTime": "1700000000000",
            "endTime": 1700000000100,
            "spanType": "Entry",
            "spanLayer": "Http",
            "operationName": "/pay",
            "tags": [{"key": "http.method", "value": "GET"}],
            "isError": False,
        }
    ],
}
V2_SEGMENT = {
    "globalTraceIds": [{"idParts": [1582461179038, 794206293, 69887]}],
    "traceSegmentId": {"idParts": ["1", 2, 3]},
    "serviceId": 2,
    "serviceInstanceId": 3,
    "spans": [
        {
            "spanId": 0,
            "parentSpanId": -1,
            "startTime": 1582461179910,
            "endTime": 1582461179922,
            "operationName": "/pay",
            "spanType": "Entry",
            "spanLayer": "Http",
            "isError": False,
            "tags": [],
            "logs": [],
            "refs": [{"parentTraceSegmentId": {"idParts": [4]}, "networkAddress": "#a:80"}],
        }
    ],
}
LOG = {"service": "shop", "timestamp": 5, "layer": "", "body": {"json": {"json": '{"a":1}'}}}
EVENT = {"uuid": "u", "layer": "GENERAL", "type": "Error", "parameters": {"a": "b"}}
ERROR = {"uniqueId": "u", "service": "web", "category": "ajax", "message": "oh", "line": 3}

_SEGMENT = messages.SegmentObject(
    traceId="t1",
    traceSegmentId="s1",
    service="shop",
    serviceInstance="one",
    spans=[
        messages.SpanObject(
            parentSpanId=-1,
            startTime=1700000000000,
            endTime=1700000000100,
            spanType=messages.SpanType.Entry,
            spanLayer=messages.SpanLayer.Http,
            operationName="/pay",
            tags=[messages.KeyStringValuePair(key="http.method", value="GET")],
        )
    ],
)
v2 = messages.v2_trace
_V2_SEGMENT = v2.UpstreamSegment(
    globalTraceIds=[v2.UniqueId(idParts=[1582461179038, 794206293, 69887])],
    segment=v2.SegmentObject(
        traceSegmentId=v2.UniqueId(idParts=[1, 2, 3]),
        serviceId=2,
        serviceInstanceId=3,
        spans=[
            v2.SpanObjectV2(
                parentSpanId=-1,
                startTime=1582461179910,
                endTime=1582461179922,
                operationName="/pay",
                spanType=v2.SpanType.Entry,
                spanLayer=v2.SpanLayer.Http,
                refs=[
                    v2.SegmentReference(
                        parentTraceSegmentId=v2.UniqueId(idParts=[4]), networkAddress="#a:80"
                    )
                ],
            )
        ],
    ).SerializeToString(),
)
_LOG = messages.log.LogData(
    service="shop",
    timestamp=5,
    body=messages.log.LogDataBody(json=messages.log.JSONLog(json='{"a":1}')),
)
_ERROR = browser.BrowserErrorLog(uniqueId="u", service="web", message="oh", line=3)


@dataclass(frozen=True)
class Post:
    """`value` is sent as JSON, unless it is bytes; those are kept as they come, and are protobuf
    unless `type` says something else. `told` is the answer, if it is not the usual one: its status,
    type and body; None is any."""

    path: str
    value: Any
    kind: Kind
    expected: list[Any] = field(default_factory=list)
    type: str = ""
    told: tuple[int, str, bytes | None] | None = None

    @property
    def body(self) -> bytes:
        return self.value if isinstance(self.value, bytes) else json.dumps(self.value).encode()

    @property
    def headers(self) -> dict[str, str]:
        usual = PROTOBUF if isinstance(self.value, bytes) else {"Content-Type": JSON}
        return {"Content-Type": self.type} if self.type else usual

    @property
    def status(self) -> int:
        return self.told[0] if self.told is not None else 200

    def is_answered_by(self, status: int, content_type: str, body: bytes) -> bool:
        usual = (200, self.headers["Content-Type"], b"" if self.type == "" else None)
        if not isinstance(self.value, bytes):
            usual = (200, JSON, b"{}\n")
        told = self.told or usual
        return (status, content_type) == told[:2] and told[2] in (None, body)

    def is_kept_as(self, records: list[tuple[int, bytes]]) -> bool:
        if isinstance(self.value, bytes):
            return records == [(self.kind, self.value)]
        found = [(kind, type(self.expected[0]).FromString(payload)) for kind, payload in records]
        return found == [(self.kind, message) for message in self.expected]


POSTS = [
    Post("/v3/segment", SEGMENT, Kind.SEGMENT, [_SEGMENT]),
    Post("/v3/segments", [SEGMENT, SEGMENT], Kind.SEGMENT, [_SEGMENT, _SEGMENT]),
    Post(
        "/v3/management/reportProperties",
        {"service": "shop", "properties": [{"key": "language", "value": "lua"}]},
        Kind.INSTANCE_PROPERTIES,
        [
            messages.InstanceProperties(
                service="shop",
                properties=[messages.KeyStringValuePair(key="language", value="lua")],
            )
        ],
    ),
    Post(
        "/v3/management/keepAlive",
        {"service": "shop", "serviceInstance": "one", "layer": "MESH"},
        Kind.INSTANCE_PING,
        [messages.InstancePingPkg(service="shop", serviceInstance="one", layer="MESH")],
    ),
    Post("/v3/logs", [LOG], Kind.LOG, [_LOG]),
    Post(
        "/v3/events",
        [EVENT],
        Kind.EVENT,
        [
            messages.event.Event(
                uuid="u", layer="GENERAL", type=messages.event.Error, parameters={"a": "b"}
            )
        ],
    ),
    Post(
        "/browser/perfData",
        {"service": "web", "pagePath": "/", "loadPageTime": 9},
        Kind.BROWSER_PAGE,
        [browser.BrowserPerfData(service="web", pagePath="/", loadPageTime=9)],
    ),
    Post(
        "/browser/perfData/webVitals",
        {"service": "web", "cls": 0.5, "lcpTime": 7},
        Kind.BROWSER_WEB_VITALS,
        [browser.BrowserWebVitalsPerfData(service="web", cls=0.5, lcpTime=7)],
    ),
    Post(
        "/browser/perfData/resources",
        [{"service": "web", "name": "vue.js", "size": 8}],
        Kind.BROWSER_RESOURCE,
        [browser.BrowserResourcePerfData(service="web", name="vue.js", size=8)],
    ),
    Post(
        "/browser/perfData/webInteractions",
        [{"service": "web", "inpTime": 4}],
        Kind.BROWSER_INTERACTION,
        [browser.BrowserWebInteractionsPerfData(service="web", inpTime=4)],
    ),
    Post("/browser/errorLog", ERROR, Kind.BROWSER_ERROR, [_ERROR]),
    Post("/browser/errorLogs", [ERROR, ERROR], Kind.BROWSER_ERROR, [_ERROR, _ERROR]),
    Post("/v2/segments", V2_SEGMENT, Kind.V2_SEGMENT, [_V2_SEGMENT]),
    Post("/logging", _LOG.SerializeToString(), Kind.LOG),
    Post("/v1/traces", EXPORT, Kind.OTLP_TRACES),
    Post("/v1/metrics", EXPORT, Kind.OTLP_METRICS),
    Post("/v1/logs", EXPORT, Kind.OTLP_LOGS),
    *(
        Post("/telegraf", one, Kind.TELEGRAF, type=JSON, told=(200, JSON, b"{}\n"))
        for one in (
            b'{"metrics": [{"name": "cpu", "tags": {"host": "a"}, "fields": {"idle": 99.5}}]}',
            b'{"name": "cpu", "tags": {}, "fields": {"idle": 1}, "timestamp": 1700000000}',
        )
    ),
    Post("/api/v2/spans", ZIPKIN_JSON, Kind.ZIPKIN_V2_JSON, type=JSON, told=ACCEPTED),
    Post("/api/v2/spans", ZIPKIN_PROTO, Kind.ZIPKIN_V2_PROTO, told=ACCEPTED),
    Post("/api/v1/spans", ZIPKIN_JSON, Kind.ZIPKIN_V1_JSON, type=JSON, told=ACCEPTED),
    Post("/api/v1/spans", THRIFT, Kind.ZIPKIN_V1_THRIFT, type=THRIFT_TYPE, told=ACCEPTED),
    Post(
        "/aws/firehose/metrics",
        b'{"requestId": "r-1", "timestamp": 1700000000000, "records": [{"data": "CgA="}]}',
        Kind.FIREHOSE_METRICS,
        type=JSON,
        told=(200, JSON, None),
    ),
]
