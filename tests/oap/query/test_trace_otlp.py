"""Spans that OpenTelemetry brought, through the HTTP door."""

from __future__ import annotations

from typing import Any

from skyfarer.testing.traces import segment
from skyfarer.wire.messages import otlp_trace as otlp
from skyfarer.wire.rpc import Kind

TRACE = bytes(range(16))
SERVER, CLIENT = otlp.Span.SPAN_KIND_SERVER, otlp.Span.SPAN_KIND_CLIENT
PRODUCER = otlp.Span.SPAN_KIND_PRODUCER


def attributes(**values: Any) -> list[otlp.KeyValue]:
    return [
        otlp.KeyValue(key=key.replace("__", "."), value=otlp.AnyValue(**{_FIELDS[type(one)]: one}))
        for key, one in values.items()
    ]


_FIELDS = {str: "string_value", int: "int_value", bool: "bool_value", float: "double_value"}
_FIELDS |= {bytes: "bytes_value"}


def put_otlp(shelf, span: otlp.Span, *, scope: str = "flask", **resource: Any) -> None:
    """Stored as the analysis stores it: one span, with its resource and its scope."""
    whole = otlp.ResourceSpans(
        resource=otlp.Resource(attributes=attributes(**resource)),
        scope_spans=[{"scope": {"name": scope}, "spans": [span]}],
    )
    trace_id = span.trace_id.hex()
    known = segment(
        "s",
        "i",
        span.name,
        span.start_time_unix_nano // 1_000_000,
        1,
        trace_id=trace_id,
        segment_id=f"{trace_id}.{span.span_id.hex()}",
    )
    shelf.put_as(known, Kind.OTLP_TRACES, whole.SerializeToString())


def otlp_span(number: int, start_ms: int, parent: int = 0, **other: Any) -> otlp.Span:
    return otlp.Span(
        span_id=number.to_bytes(8),
        parent_span_id=parent.to_bytes(8) if parent else b"",
        start_time_unix_nano=start_ms * 1_000_000,
        end_time_unix_nano=(start_ms + 7) * 1_000_000 + 999_999,
        **{"trace_id": TRACE, "name": str(number)} | other,
    )


def test_a_span_of_opentelemetry_has_every_field_the_page_selects(shelf, eight):
    span = otlp_span(2, eight, parent=1, name="GET /pay", kind=SERVER)
    span.attributes.extend(attributes(http__route="/pay", size=3, ok=True, share=0.5, raw=b"\xff"))
    span.attributes.add(key="list").value.array_value.values.add(string_value="ü")
    span.attributes.add(key="none")
    span.status.code = otlp.Status.STATUS_CODE_ERROR
    span.status.message = "gone"
    event = span.events.add(time_unix_nano=(eight + 1) * 1_000_000, name="exception")
    event.attributes.extend(attributes(exception__type="OSError"))
    put_otlp(shelf, span, service__name="shop", service__instance__id="shop-1")
    trace_id = TRACE.hex()
    (shown,) = shelf.spans(trace_id)
    assert shown == {
        "traceId": trace_id,
        "segmentId": f"{trace_id}.0000000000000002",
        "spanId": 0,
        "parentSpanId": -1,
        "refs": [
            {
                "traceId": trace_id,
                "parentSegmentId": f"{trace_id}.0000000000000001",
                "parentSpanId": 0,
                "type": "CROSS_PROCESS",
            }
        ],
        "serviceCode": "shop",
        "serviceInstanceName": "shop-1",
        "startTime": eight,
        "endTime": eight + 7,
        "endpointName": "GET /pay",
        "type": "Entry",
        "peer": "",
        "component": "flask",
        "isError": True,
        "layer": "Http",
        "tags": [
            {"key": "http.route", "value": "/pay"},
            {"key": "size", "value": "3"},
            {"key": "ok", "value": "true"},
            {"key": "share", "value": "0.5"},
            {"key": "raw", "value": "ff"},
            {"key": "list", "value": '["ü"]'},
            {"key": "none", "value": ""},
            {"key": "otel.status_description", "value": "gone"},
        ],
        "logs": [
            {
                "time": eight + 1,
                "data": [
                    {"key": "event", "value": "exception"},
                    {"key": "exception.type", "value": "OSError"},
                ],
            }
        ],
        "attachedEvents": [],
    }


def test_spans_of_opentelemetry_make_one_tree_in_whatever_order_they_came(shelf, eight):
    trace = {"trace_id": b"\xaa" * 16}
    root = otlp_span(1, eight, kind=SERVER, **trace)
    inner = otlp_span(2, eight + 1, parent=1, **trace)
    call = otlp_span(3, eight + 2, parent=2, kind=CLIENT, **trace)
    called = otlp_span(4, eight + 3, parent=3, kind=SERVER, **trace)
    for span in (called, inner, root, call):
        put_otlp(shelf, span)
    spans = shelf.spans("aa" * 16)
    assert [span["endpointName"] for span in spans] == ["1", "2", "3", "4"]
    assert [span["type"] for span in spans] == ["Entry", "Local", "Exit", "Entry"]
    assert [ref["type"] for span in spans for ref in span["refs"]] == [
        "CROSS_THREAD",
        "CROSS_THREAD",
        "CROSS_PROCESS",
    ]


def test_who_and_whom_and_what_layer_follow_from_attributes(shelf, eight):
    trace = {"trace_id": b"\xbb" * 16, "kind": CLIENT}

    def shown(number: int, resource: dict[str, str], **said: Any) -> tuple[str, ...]:
        span = otlp_span(number, eight + number, attributes=attributes(**said), **trace)
        put_otlp(shelf, span, scope="", **resource)
        last = shelf.spans("bb" * 16)[-1]
        keys = ("serviceCode", "serviceInstanceName", "layer", "peer", "component")
        return tuple(last[key] for key in keys)

    assert shown(1, {}) == ("unknown_service", "unknown_service", "Unknown", "", "Unknown")
    address = {"server__address": "db", "server__port": 5432}
    assert shown(2, {"host__name": "h"}, db__system="postgresql", http__x="", **address) == (
        "unknown_service",
        "h",
        "Database",
        "db:5432",
        "Unknown",
    )
    named = {"service__name": "shop"}
    assert shown(3, named, rpc__system="grpc", net__peer__name="p")[:4] == (
        "shop",
        "shop",
        "RPCFramework",
        "p",
    )
    trace["kind"] = PRODUCER
    assert shown(4, named, messaging__system="kafka", peer__service="k")[2:4] == ("MQ", "k")
    trace["kind"] = SERVER
    assert shown(5, named, server__address="me")[3] == ""


def test_text_of_opentelemetry_that_is_not_utf_8_is_mended_and_its_ids_are_left(shelf, eight):
    span = otlp_span(1, eight, trace_id=b"\xff" * 16, name="ABCD", kind=SERVER)
    whole = otlp.ResourceSpans(scope_spans=[{"spans": [span]}]).SerializeToString()
    known = segment("s", "i", "/", eight, 1, trace_id="ff" * 16, segment_id="mended")
    shelf.put_as(known, Kind.OTLP_TRACES, whole.replace(b"ABCD", b"A\xffCD"))
    (shown,) = shelf.spans("ff" * 16)
    assert (shown["endpointName"], shown["traceId"]) == ("A\ufffdCD", "ff" * 16)
