"""One trace and its spans, through the HTTP door from a real storage."""

from __future__ import annotations

from typing import Any

from skyfarer.oap.query import limits
from skyfarer.testing.traces import Exit, caller, database, segment
from skyfarer.wire.messages import SegmentObject, SegmentReference, SpanObject
from skyfarer.wire.rpc import Kind


def test_a_span_has_every_field_the_page_selects(shelf, eight, fresh):
    parent = segment("front", "front-1", "/", eight, 50, exits=[Exit("/pay", "pay:80", 1, 40)])
    paid = segment(
        "pay",
        "pay-1",
        "POST:/pay",
        eight + 5,
        20,
        True,
        trace_id=fresh,
        segment_id=fresh,
        callers=[caller(parent, 1)],
        tags={"http.method": "POST"},
    )
    shelf.put(paid)
    (span,) = shelf.spans(fresh)
    assert span == {
        "traceId": fresh,
        "segmentId": fresh,
        "spanId": 0,
        "parentSpanId": -1,
        "refs": [
            {
                "traceId": parent.traceId,
                "parentSegmentId": parent.traceSegmentId,
                "parentSpanId": 1,
                "type": "CROSS_PROCESS",
            }
        ],
        "serviceCode": "pay",
        "serviceInstanceName": "pay-1",
        "startTime": eight + 5,
        "endTime": eight + 25,
        "endpointName": "POST:/pay",
        "type": "Entry",
        "peer": "",
        "component": "Tomcat",
        "isError": True,
        "layer": "Http",
        "tags": [{"key": "http.method", "value": "POST"}],
        "logs": [
            {
                "time": eight + 25,
                "data": [
                    {"key": "event", "value": "error"},
                    {"key": "error.kind", "value": "RuntimeError"},
                    {"key": "message", "value": "POST:/pay failed"},
                    {"key": "stack", "value": "RuntimeError: POST:/pay failed\n  at handle"},
                ],
            }
        ],
        "attachedEvents": [],
    }


def test_a_trace_reads_from_its_root_through_every_service(shelf, eight, fresh):
    def part(name: str, start: int, **more: Any) -> SegmentObject:
        return segment(name, name, name, eight + start, 50, trace_id=fresh, **more)

    exits = [Exit("to-b", "b:80", 1, 9), database("db:5432", "SELECT 1", 20, 5)]
    a = part("a", 0, exits=[*exits, Exit("to-c", "c:80", 30, 9)])
    b = part("b", 60, callers=[caller(a, 1)], exits=[Exit("to-d", "d:80", 1, 2)])
    c = part("c", 30, callers=[caller(a, 3)])
    lost = part("lost", -5, callers=[caller(part("never sent", 0), 0)])
    shelf.put(c, b, a, lost)
    found = shelf.operations(fresh)
    assert found == ["lost", "a", "to-b", "b", "to-d", "PostgreSQL/JDBC/execute", "to-c", "c"]


def test_types_layers_and_components_are_names_and_unknown_numbers_have_one_too(
    shelf, eight, fresh
):
    made = segment("a", "a", "/", eight, 9, trace_id=fresh, exits=[database("db", "x", 1, 1)])
    made.spans.add(spanId=2, startTime=eight, spanType=2, componentId=7001, spanLayer="GenAI")
    made.spans.add(spanId=3, startTime=eight, spanType=9, spanLayer=77, componentId=987_654)
    made.spans[-1].refs.add(refType=5, traceId="x", parentTraceSegmentId="x")
    made.spans[-2].refs.add(refType="CrossThread", traceId="x", parentTraceSegmentId="x")
    shelf.put(made)
    spans = {span["spanId"]: span for span in shelf.spans(fresh)}
    names = {key: [span[key] for _, span in sorted(spans.items())] for key in spans[0]}
    assert names["type"] == ["Entry", "Exit", "Local", "UNRECOGNIZED"]
    assert names["layer"] == ["Http", "Database", "GenAI", "UNRECOGNIZED"]
    assert names["component"] == ["Tomcat", "PostgreSQL", "Flask", "Unknown"]
    assert spans[2]["refs"][0]["type"] == "CROSS_THREAD"
    assert spans[3]["refs"][0]["type"] == "CROSS_PROCESS"


def test_a_trace_nobody_sent_has_no_spans(shelf):
    assert shelf.spans("nobody's") == shelf.spans("") == []
    day = {"start": "2026-11-15", "end": "2026-11-15", "step": "DAY"}
    query = """query ($id: ID!, $duration: Duration) {
      queryTrace(traceId: $id, duration: $duration, debug: true) { spans { spanId } }
    }"""
    assert shelf.ask(query, id="nobody's", duration=day) == {"queryTrace": {"spans": []}}


def test_spans_in_a_circle_and_repeated_spans_are_each_shown_once(shelf, eight, fresh):
    made = SegmentObject(traceId=fresh, traceSegmentId=fresh, service="a", serviceInstance="a")
    for name, number, parent in (("x", 1, 2), ("y", 2, 1), ("z", 2, 1), ("self", 5, 5)):
        made.spans.add(spanId=number, parentSpanId=parent, operationName=name, startTime=eight)
    twin = SpanObject(spanId=0, parentSpanId=-1, operationName="root", startTime=eight)
    made.spans.extend([twin, twin])
    made.spans.add(spanId=7, parentSpanId=0, operationName="child", startTime=eight)
    shelf.put(made)
    assert shelf.operations(fresh) == ["root", "child", "root", "x", "y", "z", "self"]


def test_spans_without_a_parent_stand_by_their_start(shelf, eight, fresh):
    made = SegmentObject(traceId=fresh, traceSegmentId=fresh, service="a", serviceInstance="a")
    for number, start in ((5, 2), (3, 0), (8, 1)):
        name = f"at {start}"
        made.spans.add(spanId=number, parentSpanId=99, operationName=name, startTime=eight + start)
    shelf.put(made)
    assert shelf.operations(fresh) == ["at 0", "at 1", "at 2"]


def test_the_last_of_several_references_is_the_parent(shelf, eight, fresh):
    a = segment("a", "a", "a", eight, 9, trace_id=fresh)
    b = segment("b", "b", "b", eight + 1, 9, trace_id=fresh)
    made = segment("c", "c", "c", eight + 2, 9, trace_id=fresh)
    made.spans[0].refs.extend(
        SegmentReference(traceId=fresh, parentTraceSegmentId=one.traceSegmentId) for one in (b, a)
    )
    shelf.put(a, b, made)
    assert shelf.operations(fresh) == ["a", "c", "b"]


def test_a_deep_trace_is_no_deeper_for_us(shelf, eight, fresh):
    made = SegmentObject(traceId=fresh, traceSegmentId=fresh, service="a", serviceInstance="a")
    for number in reversed(range(3000)):
        made.spans.add(
            spanId=number, parentSpanId=number - 1, operationName=str(number), startTime=eight
        )
    shelf.put(made)
    assert shelf.operations(fresh) == [str(number) for number in range(3000)]


def test_hostile_text_comes_back_as_text_and_too_much_of_it_is_cut(shelf, eight, fresh):
    tags = {"nul": "a\x00b", "lone": "\ud7ff\ufffe", "script": "<script>'\";--", "": ""}
    huge = {"huge": "é" * 2_000_000, "k" * 5000: "v"}
    shelf.put(segment("a", "a", "/" * 9999, eight, 1, trace_id=fresh, tags=tags | huge))
    (span,) = shelf.spans(fresh)
    found = {tag["key"]: tag["value"] for tag in span["tags"]}
    assert tags.items() <= found.items()
    cut = limits.TEXT_CHARS_MAX
    assert found["huge"] == "é" * cut + "… (2000000 characters)"
    assert "k" * limits.NAME_CHARS_MAX + "… (5000 characters)" in found
    assert span["endpointName"] == "/" * limits.NAME_CHARS_MAX + "… (9999 characters)"


def test_text_that_is_not_utf_8_is_mended(shelf, eight, fresh):
    tags = {"good": "ü", "bad": "ABCD"}
    made = segment("a", "a", "/", eight, 1, trace_id=fresh, segment_id=fresh, tags=tags)
    data = made.SerializeToString().replace(b"ABCD", b"A\xff\xc3D")
    shelf.put_as(made, Kind.SEGMENT, data)
    (span,) = shelf.spans(fresh)
    assert [tag["value"] for tag in span["tags"]] == ["ü", "A\ufffd\ufffdD"]
    assert span["endpointName"] == "/"


def test_a_segment_that_cannot_be_read_is_one_span_and_the_others_are_whole(shelf, eight, fresh):
    broken = segment("b", "b-1", "/broken", eight + 5, 7, True, trace_id=fresh, segment_id="broken")
    strange = segment("c", "c-1", "/strange", eight + 9, 3, trace_id=fresh, segment_id="strange")
    shelf.put(segment("a", "a-1", "/a", eight, 20, trace_id=fresh))
    shelf.put_as(broken, Kind.SEGMENT, b"\xff\xff\xff")
    shelf.put_as(strange, Kind.LOG, b"")
    whole, bad, unknown = shelf.spans(fresh)
    assert whole["endpointName"] == "/a"
    assert bad | {"tags": []} == {
        "traceId": fresh,
        "segmentId": "broken",
        "spanId": 0,
        "parentSpanId": -1,
        "refs": [],
        "serviceCode": "b",
        "serviceInstanceName": "b-1",
        "startTime": eight + 5,
        "endTime": eight + 12,
        "endpointName": "/broken",
        "type": "Local",
        "peer": "",
        "component": "Unknown",
        "isError": True,
        "layer": "Unknown",
        "tags": [],
        "logs": [],
        "attachedEvents": [],
    }
    assert [tag["key"] for tag in bad["tags"]] == ["skyfarer.unreadable"]
    assert unknown["tags"][0]["value"] == f"records of kind {Kind.LOG} are unknown"


def test_a_trace_is_shown_up_to_its_bounds(shelf, eight, fresh):
    made = SegmentObject(traceId=fresh, traceSegmentId=fresh, service="a", serviceInstance="a")
    for number in range(limits.TRACE_SPANS_MAX + 5):
        made.spans.add(spanId=number, startTime=eight)
    tags = made.spans[0].tags
    for _ in range(limits.TRACE_ENTRIES_MAX + 5):
        tags.add(key="k")
    shelf.put(made)
    query = "query ($id: ID!) { queryTrace(traceId: $id) { spans { spanId tags { key } } } }"
    spans = shelf.ask(query, id=fresh)["queryTrace"]["spans"]
    assert len(spans) == limits.TRACE_SPANS_MAX
    assert sum(len(span["tags"]) for span in spans) == limits.TRACE_ENTRIES_MAX


def test_logs_and_their_data_are_counted_together(shelf, eight, fresh):
    made = segment("a", "a", "/", eight, 1, trace_id=fresh)
    for number in range(limits.TRACE_ENTRIES_MAX // 3):
        made.spans[0].logs.add(time=number, data=[{"key": "a"}, {"key": "b"}, {"key": "c"}])
    shelf.put(made)
    query = "query ($id: ID!) { queryTrace(traceId: $id) { spans { logs { data { key } } } } }"
    ((_, logs),) = shelf.ask(query, id=fresh)["queryTrace"]["spans"][0].items()
    entries = sum(1 + len(log["data"]) for log in logs)
    assert limits.TRACE_ENTRIES_MAX - 10 < entries <= limits.TRACE_ENTRIES_MAX


def test_segments_beyond_the_bytes_of_a_trace_are_one_span_each(shelf, eight, fresh):
    weight = {"x": "y" * (limits.TRACE_BYTES_MAX // 4)}
    for number in range(5):
        shelf.put(segment("a", "a", f"/{number}", eight + number, 1, trace_id=fresh, tags=weight))
    keys = [[tag["key"] for tag in span["tags"]] for span in shelf.spans(fresh)]
    assert keys == [["x"]] * 3 + [["skyfarer.unreadable"]] * 2
    assert shelf.operations(fresh) == [f"/{number}" for number in range(5)]


def test_one_document_reads_no_more_than_a_few_traces(shelf):
    fields = "".join(f't{n}: queryTrace(traceId: "t") {{ spans {{ spanId }} }} ' for n in range(20))
    (error,) = shelf.errors(f"{{ {fields} }}")
    assert "more than 6000" in error
