from __future__ import annotations

import sys

import pytest

from satellite.processors.passes import Pass, made
from skyfarer.base.errors import ConfigError
from skyfarer.satellite.contracts import Verdict
from skyfarer.satellite.processors.sampler import REMEMBERED_MAX, Budget, Sampler, trace_hash
from skyfarer.testing.traces import Exit, segment
from skyfarer.wire.messages import SegmentObject, SpanAttachedEvent
from skyfarer.wire.rpc import Kind

SLOW = {"keep_errors": False, "keep_slow": "100ms"}
PLAIN = {"keep_errors": False, "keep_slow": "0"}


def seg(
    trace_id: str, service: str = "order", latency_ms: int = 10, **more: object
) -> SegmentObject:
    return segment(service, "i", "GET:/", 1_700_000_000_000, latency_ms, trace_id=trace_id, **more)  # type: ignore[arg-type]


def kept(passing: Pass, segments: list[SegmentObject]) -> list[str]:
    payloads = passing.payloads(Kind.SEGMENT, segments)
    return [SegmentObject.FromString(payload).traceId for payload in payloads]


@pytest.mark.parametrize(
    "name", [lambda n: f"{n:032x}.1.{n}", lambda n: f"trace-{n}", lambda n: str(n * 4096)]
)
@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5])
def test_the_part_of_traces_kept_is_the_rate_whatever_ids_look_like(name, rate) -> None:  # type: ignore[no-untyped-def]
    count = 20_000
    chosen = sum(trace_hash(name(n).encode()) < rate * 2**32 for n in range(count))

    assert abs(chosen - count * rate) < 5 * (count * rate * (1 - rate)) ** 0.5


def test_a_trace_has_the_same_hash_in_every_process_and_version() -> None:
    assert trace_hash(b"8c3e2b1f.63.17000000000000001") == 505_496_746


def test_a_trace_is_kept_or_dropped_whole_by_every_satellite() -> None:
    ids = [f"t{n}" for n in range(200)]
    first = kept(Pass(made(Sampler, rate=0.3, **PLAIN)), [seg(one, "order") for one in ids])
    second = kept(Pass(made(Sampler, rate=0.3, **PLAIN)), [seg(one, "pay") for one in ids[::-1]])

    assert set(first) == set(second)
    assert 30 < len(first) < 90


def test_a_lower_rate_keeps_a_subset_of_what_a_higher_one_keeps() -> None:
    segments = [seg(f"t{n}") for n in range(300)]
    few = kept(Pass(made(Sampler, rate=0.1, **PLAIN)), segments)
    many = kept(Pass(made(Sampler, rate=0.5, **PLAIN)), segments)

    assert set(few) < set(many)


def test_segments_with_an_error_are_kept_at_any_rate() -> None:
    failing_exit = Exit("call", "db:1", 0, 1, error=True)
    segments = [seg("a"), seg("b", error=True), seg("c", exits=[failing_exit])]

    assert kept(Pass(made(Sampler, rate=0, keep_slow="0")), segments) == ["b", "c"]


def test_slow_segments_are_kept_at_any_rate() -> None:
    segments = [seg("fast", latency_ms=99), seg("slow", latency_ms=100), SegmentObject(traceId="e")]

    assert kept(Pass(made(Sampler, rate=0, **SLOW)), segments) == ["slow"]


def test_what_a_trace_id_decides_is_decided_without_decoding() -> None:
    undecodable_behind_its_id = b"\x0a\x01t" + b"\xff\xff"

    done = Pass(made(Sampler, rate=0, **PLAIN)).of(Kind.SEGMENT, [undecodable_behind_its_id])

    assert [loss.reason for loss in done.losses] == ["filter:f0"]


def test_a_trace_id_that_does_not_stand_first_is_found_all_the_same() -> None:
    one = seg("trace-7")
    service_first = SegmentObject(service="order").SerializeToString() + one.SerializeToString()
    passing = Pass(made(Sampler, rate=0.5, **PLAIN))

    straight = passing.of(Kind.SEGMENT, [one.SerializeToString()])
    shuffled = passing.of(Kind.SEGMENT, [service_first])

    assert len(straight.losses) == len(shuffled.losses)


def test_an_event_attached_to_a_span_shares_the_fate_of_its_trace() -> None:
    ids = [f"t{n}" for n in range(100)]
    passing = Pass(made(Sampler, rate=0.4))
    events = [
        SpanAttachedEvent(event="e", traceContext=SpanAttachedEvent.SpanReference(traceId=one))
        for one in ids
    ]
    attached = [
        SpanAttachedEvent.FromString(one).traceContext.traceId
        for one in passing.payloads(Kind.SPAN_ATTACHED_EVENT, events)
    ]

    assert attached == kept(passing, [seg(one) for one in ids])


@pytest.mark.parametrize(("policy", "left"), [("pass", 1), ("drop", 0)])
def test_a_segment_without_a_trace_id_follows_the_policy(policy: str, left: int) -> None:
    passing = Pass(made(Sampler, rate=0.5, on_failure=policy))

    assert len(passing.payloads(Kind.SEGMENT, [SegmentObject(service="order")])) == left
    assert 'reason="no_trace_id"} 1' in passing.registry.render()


def test_so_many_new_traces_pass_in_a_second_and_their_later_segments_too() -> None:
    passing = Pass(made(Sampler, traces_per_second=3, **PLAIN))

    assert kept(passing, [seg(one) for one in "abcde"]) == ["a", "b", "c"]
    assert kept(passing, [seg(one) for one in "edcba"]) == ["c", "b", "a"]
    passing.clock.seconds += 1
    assert kept(passing, [seg(one) for one in "vwxyz"]) == ["v", "w", "x"]
    passing.clock.seconds += 3600
    assert len(kept(passing, [seg(f"burst {n}") for n in range(10)])) == 3


def test_errors_pass_beyond_the_limit() -> None:
    passing = Pass(made(Sampler, traces_per_second=1))

    assert kept(passing, [seg("a"), seg("b"), seg("c", error=True)]) == ["a", "c"]


def test_the_memory_of_decided_traces_has_a_bound() -> None:
    budget = Budget(REMEMBERED_MAX * 2)

    for trace in range(REMEMBERED_MAX * 2):
        budget.admits(trace, 0.0)

    assert len(budget._decided) == REMEMBERED_MAX


def test_a_sampler_that_keeps_all_looks_at_nothing_and_other_kinds_are_never_its_own() -> None:
    assert made(Sampler, rate=1).verdict(Kind.SEGMENT) is Verdict.PASS
    assert made(Sampler, rate=0.5).verdict(Kind.SEGMENT) is Verdict.LOOK
    assert made(Sampler, rate=0).verdict(Kind.LOG) is Verdict.PASS


def test_without_protobuf_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "skyfarer.wire.messages", None)

    with pytest.raises(ConfigError, match=r"filter 'sampler' .* pip install 'skyfarer\[filters\]'"):
        made(Sampler, rate=0.5)


@pytest.mark.parametrize("wrong", [{"rate": 1.5}, {"traces_per_second": -1}, {"keep_slow": "soon"}])
def test_a_wrong_value_is_refused_at_start(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"test\.yaml"):
        made(Sampler, **wrong)
