"""OpenTelemetry's JSON becomes the protobuf that its other exporters send."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

from skyfarer.wire.http.answers import Refused
from skyfarer.wire.http.otlp_fields import MESSAGES, Field
from skyfarer.wire.http.otlp_json import DEPTH_MAX, export_request
from skyfarer.wire.http.proto_json import VALUES_MAX
from skyfarer.wire.rpc import Kind
from wire.http.rig import Rig, run

JSON = {"Content-Type": "application/json; charset=utf-8"}
TRACE_ID, SPAN_ID = "5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174"
SPAN = {
    "traceId": TRACE_ID,
    "spanId": SPAN_ID.upper(),
    "name": "GET /pay",
    "kind": 2,
    "startTimeUnixNano": "1700000000000000000",
    "endTimeUnixNano": 1700000000000000001,
    "attributes": [
        {"key": "zero", "value": {"intValue": "0"}},
        {"key": "low", "value": {"intValue": "-9223372036854775808"}},
        {"key": "list", "value": {"arrayValue": {"values": [{"boolValue": False}, {}]}}},
        {"key": "raw", "value": {"bytesValue": "AAH/"}},
        {"key": "none", "value": None},
    ],
    "status": {"code": 2, "message": "höh"},
    "notKnownYet": [{"deep": {}}],
}
TRACES = {
    "resourceSpans": [
        {
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]},
            "scopeSpans": [{"scope": {"name": "lib"}, "spans": [SPAN, SPAN]}],
        }
    ]
}
POINT = {"timeUnixNano": "5", "attributes": [{"key": "a", "value": {"doubleValue": 1}}]}
HISTOGRAM = {
    **POINT,
    "count": 3,
    "sum": 0,
    "bucketCounts": ["1", 2],
    "explicitBounds": [0.5],
    "exemplars": [{"asDouble": "NaN", "traceId": TRACE_ID}],
}
EXPONENTIAL = {
    **POINT,
    "scale": -3,
    "positive": {"offset": -1, "bucketCounts": ["18446744073709551615"]},
}
METRICS = {
    "resourceMetrics": [
        {
            "scopeMetrics": [
                {
                    "metrics": [
                        {"name": "g", "gauge": {"dataPoints": [{**POINT, "asInt": "-1"}]}},
                        {
                            "name": "s",
                            "sum": {
                                "dataPoints": [{**POINT, "asDouble": "-Infinity"}],
                                "aggregationTemporality": 2,
                                "isMonotonic": True,
                            },
                        },
                        {"name": "h", "histogram": {"dataPoints": [HISTOGRAM]}},
                        {"name": "e", "exponentialHistogram": {"dataPoints": [EXPONENTIAL]}},
                        {"name": "q", "summary": {"dataPoints": [{"quantileValues": [{}]}]}},
                    ]
                }
            ]
        }
    ]
}
LOGS = {
    "resourceLogs": [
        {
            "scopeLogs": [
                {
                    "logRecords": [
                        {
                            "timeUnixNano": "1",
                            "severityNumber": 9,
                            "body": {"kvlistValue": {"values": [{"key": "a"}]}},
                            "flags": 1,
                            "spanId": SPAN_ID,
                        }
                    ]
                }
            ]
        }
    ]
}
SIGNALS = [
    ("/v1/traces", Kind.OTLP_TRACES, "ExportTraceServiceRequest", TRACES),
    ("/v1/metrics", Kind.OTLP_METRICS, "ExportMetricsServiceRequest", METRICS),
    ("/v1/logs", Kind.OTLP_LOGS, "ExportLogsServiceRequest", LOGS),
]
_TYPES = {
    "hex": "TYPE_BYTES",
    "enum": "TYPE_INT32",  # the same on the wire
}


def message_type(name: str) -> Any:
    """protobuf's own reader of what the table says."""
    file = descriptor_pb2.FileDescriptorProto(name="otlp", package="otlp", syntax="proto3")
    for message, fields in MESSAGES.items():
        described = file.message_type.add(name=message)
        for field_name, field in fields.items():
            described.field.append(_described(field_name, field))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"otlp.{name}"))


def _described(name: str, field: Field) -> descriptor_pb2.FieldDescriptorProto:
    kind = descriptor_pb2.FieldDescriptorProto
    described = kind(name=name, json_name=name, number=field.number)
    described.label = kind.LABEL_REPEATED if field.repeated else kind.LABEL_OPTIONAL
    if field.type in MESSAGES:
        described.type, described.type_name = kind.TYPE_MESSAGE, f".otlp.{field.type}"
    else:
        described.type = getattr(kind, _TYPES.get(field.type, f"TYPE_{field.type.upper()}"))
    return described


def in_base64(value: Any, key: str = "") -> Any:
    """As proto3 JSON has ids."""
    if isinstance(value, dict):
        return {name: in_base64(below, name) for name, below in value.items()}
    if isinstance(value, list):
        return [in_base64(one) for one in value]
    if key in ("traceId", "spanId"):
        return base64.b64encode(bytes.fromhex(value)).decode()
    return value


@pytest.mark.parametrize(("path", "kind", "name", "value"), SIGNALS)
def test_json_is_kept_as_the_protobuf_of_the_same(
    path: str, kind: Kind, name: str, value: dict[str, Any]
) -> None:
    async def talk(rig: Rig) -> None:
        answer = await rig.post(path, json.dumps(value), JSON)

        assert (answer.status, answer.text) == (200, "{}\n")
        assert answer.headers["content-type"] == "application/json"
        [(found, payload)] = rig.kept
        read = message_type(name)
        expected = json_format.ParseDict(in_base64(value), read(), ignore_unknown_fields=True)
        assert (found, str(read.FromString(payload))) == (kind, str(expected))

    run(Rig(otlp_json=True), talk)


def test_a_value_of_zero_is_there_and_not_left_out() -> None:
    body = {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"body": {"intValue": "0"}}]}]}]}
    encoded = export_request(Kind.OTLP_LOGS, json.dumps(body).encode())

    assert encoded == b"\x0a\x08\x12\x06\x12\x04\x2a\x02\x18\x00"


@pytest.mark.parametrize("body", ["{}", '{"resourceSpans": []}', '{"resourceSpans": null}'])
def test_an_export_of_nothing_is_taken_and_keeps_nothing(body: str) -> None:
    async def talk(rig: Rig) -> None:
        assert (await rig.post("/v1/traces", body, JSON)).status == 200
        assert not rig.kept

    run(Rig(otlp_json=True), talk)


def nested(depth: int) -> str:
    inside = '{"arrayValue":{"values":[' * depth + "{}" + "]}}" * depth
    record = f'{{"logRecords":[{{"body":{inside}}}]}}'
    return f'{{"resourceLogs":[{{"scopeLogs":[{record}]}}]}}'


def span(**fields: Any) -> str:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [fields]}]}]})


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("/v1/traces", "nonsense", 400, "the body is no JSON"),
        ("/v1/traces", b"\xff", 400, "the body is no UTF-8"),
        ("/v1/traces", "{} {}", 400, "something follows its end"),
        ("/v1/traces", "[]", 400, "ExportTraceServiceRequest must be a JSON object"),
        ("/v1/traces", '{"resource_spans": [{}]}', 400, "none of the fields"),
        ("/v1/traces", '{"resourceSpans": {}}', 400, "resourceSpans must be a JSON array"),
        ("/v1/traces", '{"resourceSpans": [7]}', 400, "resourceSpans must be a JSON object"),
        ("/v1/traces", span(traceId="xyz"), 400, "traceId must be an even number of hexadecimal"),
        ("/v1/traces", span(kind="SPAN_KIND_SERVER"), 400, "kind must be the number of a value"),
        ("/v1/traces", span(name=7), 400, "name must be text"),
        ("/v1/traces", span(name="\ud800"), 400, "name must be text"),
        ("/v1/traces", span(startTimeUnixNano=-1), 400, "startTimeUnixNano must be a whole number"),
        (
            "/v1/traces",
            span(startTimeUnixNano=1.5),
            400,
            "startTimeUnixNano must be a whole number",
        ),
        ("/v1/traces", span(startTimeUnixNano=True), 400, "startTimeUnixNano must be a whole"),
        (
            "/v1/traces",
            span(startTimeUnixNano="9" * 5000),
            400,
            "startTimeUnixNano must be a whole",
        ),
        ("/v1/traces", span(flags=1 << 32), 400, "flags must be a whole number of 32 bits"),
        ("/v1/logs", nested(DEPTH_MAX), 400, "lies in more than"),
        ("/v1/logs", nested(50_000), 400, "the body is no JSON"),
        ("/v1/logs", "[" + "0," * (VALUES_MAX + 1) + "0]", 413, "values"),
    ],
)
def test_what_is_no_export_is_refused_with_the_reason_in_json(
    path: str, body: str | bytes, status: int, said: str
) -> None:
    async def talk(rig: Rig) -> None:
        answer = await rig.post(path, body, JSON)

        assert answer.status == status
        assert said in json.loads(answer.text)["message"]
        assert not rig.kept

    run(Rig(otlp_json=True, body_bytes_max=16 << 20), talk)


def test_other_types_are_told_which_are_taken() -> None:
    async def talk(rig: Rig) -> None:
        answer = await rig.post("/v1/traces", b"", {"Content-Type": "text/plain"})

        assert answer.status == 415
        assert b"application/x-protobuf or application/json" in answer.body

    run(Rig(otlp_json=True), talk)


def test_ids_of_any_length_are_kept_as_they_are() -> None:
    with pytest.raises(Refused):
        export_request(Kind.OTLP_TRACES, span(spanId="abc").encode())
    assert export_request(Kind.OTLP_TRACES, span(spanId="").encode())
