"""Lists of whole traces, through the HTTP door from a real storage."""

from __future__ import annotations

from typing import Any

import pytest

from skyfarer.oap.core import ids
from skyfarer.oap.query import limits
from skyfarer.testing.traces import Exit, caller, segment

QUERY = """
query ($condition: TraceQueryCondition) {
  queryTraces(condition: $condition) {
    traces { spans { traceId segmentId spanId parentSpanId refs { parentSegmentId } endpointName
      serviceCode isError attachedEvents { event } } }
    retrievedTimeRange { startTime endTime }
  }
}"""
MORNING = {"start": "2026-11-15 080000", "end": "2026-11-15 085959", "step": "SECOND"}


def condition(**other: Any) -> dict[str, Any]:
    return {
        "traceState": "ALL",
        "queryOrder": "BY_START_TIME",
        "queryDuration": MORNING,
        "paging": {"pageNum": 1, "pageSize": 20},
    } | other


def names(shelf, **asked: Any) -> list[list[str]]:
    found = shelf.ask(QUERY, condition=condition(**asked))["queryTraces"]["traces"]
    return [[span["endpointName"] for span in trace["spans"]] for trace in found]


def test_a_trace_that_has_a_segment_which_fits_is_shown_with_all_its_spans(shelf, eight, fresh):
    front = segment(
        fresh, "i", "/front", eight, 90, trace_id=fresh, exits=[Exit("/back", "b:80", 5, 20)]
    )
    back = segment(
        f"{fresh}-back",
        "i",
        "/back",
        eight + 6,
        9,
        True,
        trace_id=fresh,
        callers=[caller(front, 1)],
    )
    shelf.put(back, front)
    asked = condition(serviceId=ids.service_id(f"{fresh}-back"), traceState="ERROR")
    answer = shelf.ask(QUERY, condition=asked)["queryTraces"]
    (trace,) = answer["traces"]
    assert [(one["serviceCode"], one["endpointName"]) for one in trace["spans"]] == [
        (fresh, "/front"),
        (fresh, "/back"),
        (f"{fresh}-back", "/back"),
    ]
    assert {span["traceId"] for span in trace["spans"]} == {fresh}
    assert [len(span["refs"]) for span in trace["spans"]] == [0, 0, 1]
    assert answer["retrievedTimeRange"] == {"startTime": eight, "endTime": eight + 90}


def test_pages_count_traces_however_many_of_their_segments_fit(shelf, eight, fresh, monkeypatch):
    monkeypatch.setattr(limits, "PAGE_MAX", 4)
    for number in range(5):
        for part in range(3):
            trace, at_ms = f"{fresh}-{number}", eight + 10 * number + part
            shelf.put(segment(fresh, "i", f"/{number}", at_ms, 1 + number, trace_id=trace))

    def page(number: int, **asked: Any) -> list[list[str]]:
        paging = {"pageNum": number, "pageSize": 2}
        return names(shelf, serviceId=ids.service_id(fresh), paging=paging, **asked)

    assert [page(number) for number in (1, 2, 3, 4)] == [
        [["/4"] * 3, ["/3"] * 3],
        [["/2"] * 3, ["/1"] * 3],
        [["/0"] * 3],
        [],
    ]
    assert page(1, queryOrder="BY_DURATION", maxTraceDuration=3) == [["/2"] * 3, ["/1"] * 3]


def test_one_trace_is_asked_for_by_its_id(shelf, eight, fresh):
    shelf.put(segment(fresh, "i", "/a", eight, 1, trace_id=fresh))
    assert names(shelf, traceId=fresh, queryDuration=None) == [["/a"]]
    assert names(shelf, traceId=f"no {fresh}", queryDuration=None) == []
    nothing = shelf.ask(QUERY, condition=condition(traceId="none"))["queryTraces"]
    assert nothing == {"traces": [], "retrievedTimeRange": {"startTime": 0, "endTime": 0}}
    assert names(shelf, paging={"pageNum": 1, "pageSize": 0}) == []


def test_a_page_of_too_many_spans_is_refused_and_one_trace_of_them_is_cut(
    shelf, eight, fresh, monkeypatch
):
    for number in range(2):
        shelf.put(segment(fresh, "i", "/a", eight, 1, trace_id=f"{fresh}-{number}"))
    monkeypatch.setattr(limits, "TRACE_SPANS_MAX", 1)
    asked = condition(serviceId=ids.service_id(fresh))
    (error,) = shelf.errors(QUERY, condition=asked)
    assert error == "these 2 traces have more than 1 spans: ask for fewer at a time"
    paging = {"pageNum": 1, "pageSize": 1}
    assert names(shelf, serviceId=ids.service_id(fresh), paging=paging) == [["/a"]]


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"queryDuration": None}, "the condition needs a traceId or a queryDuration"),
        ({"paging": {"pageSize": 101}}, "a page of 101 traces is larger than 100"),
    ],
)
def test_a_condition_that_cannot_be_answered_says_why(shelf, asked, why):
    assert shelf.errors(QUERY, condition=condition(**asked)) == [why]
    assert shelf.errors(QUERY) == ["the condition is missing"]
    assert shelf.ask("{ hasQueryTracesV2Support }") == {"hasQueryTracesV2Support": False}
