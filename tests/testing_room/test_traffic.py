from __future__ import annotations

from collections import Counter, defaultdict
from random import Random

from skyfarer.base.clock import SystemClock
from skyfarer.testing.expected import MINUTE_MS, Entity, Totals
from skyfarer.testing.traffic import INSTANCES, DemoTraffic
from skyfarer.wire.messages import SegmentObject, SpanLayer, SpanType

START_MS = 1_700_000_040_000
TRACES = 2_000


def many(seed: int = 7) -> tuple[DemoTraffic, list[list[SegmentObject]]]:
    traffic = DemoTraffic(Random(seed), SystemClock())
    return traffic, [traffic.trace(START_MS + 50 * number) for number in range(TRACES)]


def test_a_seed_repeats_the_traffic() -> None:
    assert many(3)[1] == many(3)[1]
    assert many(3)[1] != many(4)[1]


def test_all_segments_of_a_trace_hang_together() -> None:
    for segments in many()[1]:
        known = {(s.traceSegmentId, span.spanId): span for s in segments for span in s.spans}
        (origin,) = [s for s in segments if not s.spans[-1].refs]
        assert origin.service == "gateway"
        assert len({s.traceId for s in segments}) == 1
        for segment in segments:
            root = segment.spans[-1]
            assert (root.spanId, root.spanType) == (0, SpanType.Entry)
            for reference in root.refs:
                parent = known[reference.parentTraceSegmentId, reference.parentSpanId]
                assert parent.spanType == SpanType.Exit
                assert parent.peer == reference.networkAddressUsedAtPeer
                assert parent.startTime <= root.startTime


def test_synchronous_calls_end_within_their_callers() -> None:
    for segments in many()[1]:
        known = {(s.traceSegmentId, span.spanId): span for s in segments for span in s.spans}
        for segment in segments:
            root = segment.spans[-1]
            if root.spanLayer == SpanLayer.MQ:
                continue
            for reference in root.refs:
                parent = known[reference.parentTraceSegmentId, reference.parentSpanId]
                assert root.endTime <= parent.endTime
            assert all(span.endTime <= root.endTime for span in segment.spans)


def test_every_kind_of_thing_happens() -> None:
    traffic, batches = many()
    spans = [span for segments in batches for s in segments for span in s.spans]
    layers = Counter(span.spanLayer for span in spans)
    instances = {(s.service, s.serviceInstance) for segments in batches for s in segments}

    for layer in (SpanLayer.Http, SpanLayer.Database, SpanLayer.Cache, SpanLayer.MQ):
        assert layers[layer] > 100
    assert any(span.isError for span in spans)
    assert any(span.endTime - span.startTime > 300 for span in spans)
    assert instances == {(name, one) for name, some in INSTANCES.items() for one in some}
    assert len(traffic.expected.entities("endpoint")) == 8
    assert {one.service for one in traffic.properties()} == set(INSTANCES)
    assert len(traffic.pings()) == len(instances)


def test_expected_totals_are_those_of_the_entry_spans_by_their_own_minute() -> None:
    traffic, batches = many()
    counted: dict[tuple[str, int], Totals] = defaultdict(Totals)
    for segment in (segment for segments in batches for segment in segments):
        root = segment.spans[-1]
        total = counted[segment.service, root.startTime // MINUTE_MS]
        total.calls += 1
        total.latency_sum += root.endTime - root.startTime
        total.errors += root.isError

    first, last = traffic.expected.minutes
    assert last > first
    for entity in traffic.expected.entities("service"):
        for minute, total in traffic.expected.series(entity).items():
            assert total == counted[entity.service, minute]
    for scope in ("service_instance", "endpoint"):
        calls = sum(
            total.calls
            for entity in traffic.expected.entities(scope)
            for total in traffic.expected.series(entity).values()
        )
        assert calls == sum(total.calls for total in counted.values())


def test_one_call_is_counted_for_its_service_its_instance_and_its_endpoint() -> None:
    traffic = DemoTraffic(Random(1), SystemClock())
    (root,) = [s for s in traffic.trace(START_MS) if not s.spans[-1].refs]

    minute, endpoint = START_MS // MINUTE_MS, root.spans[-1].operationName
    for entity in (
        Entity("service", "gateway"),
        Entity("service_instance", "gateway", instance=root.serviceInstance),
        Entity("endpoint", "gateway", endpoint=endpoint),
    ):
        assert traffic.expected.totals[entity, minute].calls == 1
