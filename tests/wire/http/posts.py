"""Something good for every path of the table of endpoints, and what must be kept of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from skyfarer.wire import messages
from skyfarer.wire.rpc import Kind

browser = messages.browser
PROTOBUF = {"Content-Type": "application/x-protobuf"}
EXPORT = b"\n\x02\n\x00"  # an export request with one empty ResourceSpans

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
_LOG = messages.log.LogData(
    service="shop",
    timestamp=5,
    body=messages.log.LogDataBody(json=messages.log.JSONLog(json='{"a":1}')),
)
_ERROR = browser.BrowserErrorLog(uniqueId="u", service="web", message="oh", line=3)


@dataclass(frozen=True)
class Post:
    """`value` is sent as JSON, unless it is bytes; those are kept as they come."""

    path: str
    value: Any
    kind: Kind
    expected: list[Any] = field(default_factory=list)

    @property
    def body(self) -> bytes:
        return self.value if isinstance(self.value, bytes) else json.dumps(self.value).encode()

    @property
    def headers(self) -> dict[str, str]:
        return PROTOBUF if isinstance(self.value, bytes) else {"Content-Type": "application/json"}

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
    Post("/logging", _LOG.SerializeToString(), Kind.LOG),
    Post("/v1/traces", EXPORT, Kind.OTLP_TRACES),
    Post("/v1/metrics", EXPORT, Kind.OTLP_METRICS),
    Post("/v1/logs", EXPORT, Kind.OTLP_LOGS),
]
