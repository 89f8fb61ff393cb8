from __future__ import annotations

from skyfarer.testing import traces
from skyfarer.wire.messages import SegmentObject, SpanLayer, SpanType

START_MS = 1_700_000_000_000


def test_the_root_span_is_last_and_covers_its_exits() -> None:
    exits = [traces.database("db:5432", "SELECT 1", 2, 5), traces.cache("c:6379", "GET", "k", 8, 1)]
    segment = traces.segment("order", "order-1", "GET:/orders", START_MS, 20, exits=exits)

    root = segment.spans[-1]
    assert [span.spanId for span in segment.spans] == [1, 2, 0]
    assert (root.parentSpanId, root.spanType) == (-1, SpanType.Entry)
    assert (root.startTime, root.endTime) == (START_MS, START_MS + 20)
    for span in segment.spans[:-1]:
        assert (span.parentSpanId, span.spanType) == (0, SpanType.Exit)
        assert root.startTime <= span.startTime <= span.endTime <= root.endTime


def test_a_called_segment_refers_to_the_exit_span_that_called_it() -> None:
    call = traces.Exit("GET:/stock", "stock:8080", 1, 8)
    parent = traces.segment("order", "order-1", "GET:/orders", START_MS, 10, exits=[call])
    called = traces.segment(
        "stock",
        "stock-1",
        "GET:/stock",
        START_MS + 2,
        5,
        trace_id=parent.traceId,
        callers=[traces.caller(parent, 1)],
    )

    (reference,) = called.spans[-1].refs
    assert reference.traceId == parent.traceId == called.traceId
    assert reference.parentTraceSegmentId == parent.traceSegmentId
    assert reference.parentSpanId == 1
    assert reference.parentService == "order"
    assert reference.parentServiceInstance == "order-1"
    assert reference.parentEndpoint == "GET:/orders"
    assert reference.networkAddressUsedAtPeer == "stock:8080"


def test_an_error_is_flagged_tagged_and_logged() -> None:
    root = traces.segment("order", "order-1", "GET:/orders", START_MS, 10, error=True).spans[-1]

    assert root.isError
    assert {pair.key: pair.value for pair in root.tags}["http.status_code"] == "500"
    assert {pair.key for pair in root.logs[0].data} >= {"event", "error.kind", "message", "stack"}


def test_database_cache_and_queue_calls_carry_the_tags_analysis_looks_for() -> None:
    exits = [
        traces.database("db:5432", "SELECT 1", 0, 1),
        traces.cache("cache:6379", "GET", "order:1", 1, 1),
        traces.cache("cache:6379", "SET", "order:1", 2, 1),
        traces.produce("kafka:9092", "order-created", 3, 1),
    ]
    spans = traces.segment("order", "order-1", "GET:/orders", START_MS, 10, exits=exits).spans

    tags = [{pair.key: pair.value for pair in span.tags} for span in spans]
    assert [span.spanLayer for span in spans[:4]] == [
        SpanLayer.Database,
        SpanLayer.Cache,
        SpanLayer.Cache,
        SpanLayer.MQ,
    ]
    assert tags[0]["db.type"] == "PostgreSQL"
    assert tags[0]["db.statement"] == "SELECT 1"
    assert [tags[1]["cache.op"], tags[2]["cache.op"]] == ["read", "write"]
    assert (tags[1]["cache.cmd"], tags[1]["cache.key"]) == ("GET", "order:1")
    assert tags[3]["mq.topic"] == "order-created"


def test_ids_left_out_are_unique_and_a_segment_survives_the_wire() -> None:
    made = [traces.segment("a", "a-1", "GET:/", START_MS, 1) for _ in range(100)]

    assert len({one.traceSegmentId for one in made}) == 100
    assert SegmentObject.FromString(made[0].SerializeToString()) == made[0]
