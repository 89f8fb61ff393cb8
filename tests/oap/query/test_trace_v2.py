"""Spans that the v2 protocol brought, through the HTTP door."""

from __future__ import annotations

from typing import Any

from skyfarer.oap.core.inventory import Inventory, InventoryScope
from skyfarer.testing.traces import segment
from skyfarer.wire.messages import v2_trace as v2
from skyfarer.wire.rpc import Kind

# Scope, id, name: what the v2 agents of these tests have registered.
REGISTERED = (
    (InventoryScope.ENDPOINT, 2, "/pay"),
    (InventoryScope.NETWORK_ADDRESS, 2, "db:5432"),
)


def register(shelf) -> None:
    shelf.inventories.known = [
        Inventory(scope, name=name, sequence=number) for scope, number, name in REGISTERED
    ]


def unique(*parts: int) -> v2.UniqueId:
    return v2.UniqueId(idParts=parts)


def put_v2(shelf, eight: int, fresh: str, *spans: v2.SpanObjectV2, **ids: int) -> None:
    """Stored as the analysis stores it, under `fresh` as its trace."""
    body = v2.SegmentObject(traceSegmentId=unique(1, 2, 3), spans=spans, **ids)
    envelope = v2.UpstreamSegment(
        globalTraceIds=[unique(7, 8, 9)], segment=body.SerializeToString()
    )
    known = segment("stored", "stored-1", "/", eight, 9, trace_id=fresh, segment_id=f"{fresh}.2.3")
    shelf.put_as(known, Kind.V2_SEGMENT, envelope.SerializeToString())


def test_ids_of_the_second_protocol_are_shown_as_the_names_they_stand_for(shelf, eight, fresh):
    register(shelf)
    entry = v2.SpanObjectV2(
        spanId=0,
        parentSpanId=-1,
        startTime=eight,
        endTime=eight + 9,
        operationNameId=2,
        spanLayer="Http",
        componentId=49,
        tags=[{"key": "url", "value": "/pay?x"}],
    )
    entry.refs.add(refType="CrossThread", parentTraceSegmentId=unique(4, 5, 6), parentSpanId=3)
    entry.logs.add(time=eight + 1, data=[{"key": "event", "value": "error"}])
    leaving = v2.SpanObjectV2(
        spanId=1, startTime=eight, spanType="Exit", operationName="select", peerId=2, isError=True
    )
    put_v2(shelf, eight, fresh, leaving, entry, serviceId=2, serviceInstanceId=2)
    first, second = shelf.spans(fresh)
    assert first == {
        "traceId": fresh,
        "segmentId": "1.2.3",
        "spanId": 0,
        "parentSpanId": -1,
        "refs": [
            {
                "traceId": fresh,
                "parentSegmentId": "4.5.6",
                "parentSpanId": 3,
                "type": "CROSS_THREAD",
            }
        ],
        "serviceCode": "stored",
        "serviceInstanceName": "stored-1",
        "startTime": eight,
        "endTime": eight + 9,
        "endpointName": "/pay",
        "type": "Entry",
        "peer": "",
        "component": "http",
        "isError": False,
        "layer": "Http",
        "tags": [{"key": "url", "value": "/pay?x"}],
        "logs": [{"time": eight + 1, "data": [{"key": "event", "value": "error"}]}],
        "attachedEvents": [],
    }
    assert (second["type"], second["endpointName"], second["peer"]) == ("Exit", "select", "db:5432")
    assert (second["isError"], second["component"]) == (True, "Unknown")


def test_names_that_were_sent_win_and_ids_nobody_knows_are_empty(shelf, eight, fresh):
    register(shelf)
    named: dict[str, Any] = {"operationName": "own", "peer": "own:1", "component": "own-lib"}
    put_v2(
        shelf, eight, fresh,
        v2.SpanObjectV2(spanId=0, operationNameId=2, peerId=2, componentId=5, **named),
        v2.SpanObjectV2(spanId=1, operationNameId=99, peerId=99, componentId=5),
        v2.SpanObjectV2(spanId=2, operationNameId=2, peerId=2),
        serviceId=77, serviceInstanceId=77,
    )  # fmt: skip
    first, second, third = shelf.spans(fresh)
    shown = ("endpointName", "peer", "component", "serviceCode", "serviceInstanceName")
    assert [first[key] for key in shown] == ["own", "own:1", "own-lib", "stored", "stored-1"]
    assert [second[key] for key in shown] == ["", "", "Mysql", "stored", "stored-1"]
    assert [third[key] for key in shown[:2]] == ["/pay", "db:5432"]


def test_an_envelope_without_a_readable_segment_is_one_span(shelf, eight, fresh):
    envelope = v2.UpstreamSegment(globalTraceIds=[unique(1)], segment=b"\xff\xff")
    known = segment("stored", "stored-1", "/", eight, 9, trace_id=fresh, segment_id=fresh)
    shelf.put_as(known, Kind.V2_SEGMENT, envelope.SerializeToString())
    (span,) = shelf.spans(fresh)
    assert (span["serviceCode"], span["tags"][0]["key"]) == ("stored", "skyfarer.unreadable")
