"""Lists of segments, through the HTTP door from a real storage."""

from __future__ import annotations

from typing import Any

from skyfarer.oap.core import ids
from skyfarer.testing.traces import segment

# The fields that SkyWalking's page selects.
QUERY_TRACES = """
query queryTraces($condition: TraceQueryCondition) {
  data: queryBasicTraces(condition: $condition) {
    traces { key: segmentId endpointNames duration start isError traceIds }
  }
}"""
MORNING = {"start": "2026-11-15 080000", "end": "2026-11-15 085959", "step": "SECOND"}


def condition(**other: Any) -> dict[str, Any]:
    return {
        "traceState": "ALL",
        "queryOrder": "BY_START_TIME",
        "queryDuration": MORNING,
        "paging": {"pageNum": 1, "pageSize": 20},
        "minTraceDuration": None,
        "maxTraceDuration": None,
    } | other


def listed(shelf, **asked: Any) -> list[str]:
    data = shelf.ask(QUERY_TRACES, condition=condition(**asked))["data"]
    return [trace["key"] for trace in data["traces"]]


def test_a_segment_is_listed_with_the_fields_the_page_selects(shelf, eight, fresh):
    shelf.put(segment(fresh, "i", "GET:/_ü", eight, 42, True, trace_id="t1", segment_id=fresh))
    asked = condition(serviceId=ids.service_id(fresh))
    assert shelf.ask(QUERY_TRACES, condition=asked)["data"]["traces"] == [
        {
            "key": fresh,
            "endpointNames": ["GET:/_ü"],
            "duration": 42,
            "start": str(eight),
            "isError": True,
            "traceIds": ["t1"],
        }
    ]


def test_every_condition_narrows_the_list(shelf, eight, fresh):
    calm = segment(fresh, "i1", "/a", eight, 10, trace_id=fresh, segment_id=f"{fresh}a")
    slow = segment(fresh, "i2", "/b", eight + 1, 90, True, segment_id=f"{fresh}b")
    shelf.put(calm, slow)
    service = ids.service_id(fresh)
    a, b = f"{fresh}a", f"{fresh}b"
    assert listed(shelf, serviceId=service) == [b, a]
    assert listed(shelf, serviceId=service, traceState="ERROR") == [b]
    assert listed(shelf, serviceId=service, traceState="SUCCESS") == [a]
    assert listed(shelf, serviceId=service, minTraceDuration=11) == [b]
    assert listed(shelf, serviceId=service, maxTraceDuration=10) == [a]
    assert listed(shelf, serviceId=service, minTraceDuration=0, maxTraceDuration=0) == [b, a]
    assert listed(shelf, serviceInstanceId=ids.instance_id(service, "i2")) == [b]
    assert listed(shelf, endpointId=ids.endpoint_id(service, "/a")) == [a]
    assert listed(shelf, traceId=fresh) == listed(shelf, traceId=fresh, queryDuration=None) == [a]
    assert listed(shelf, serviceId="x' OR 1=1 --") == listed(shelf, traceId="%") == []


def test_durations_of_every_step_have_both_their_ends(shelf, eight, fresh):
    shelf.put(segment(fresh, "i", "/a", eight + 59_999, 1, segment_id=fresh))

    def within(step: str, start: str, end: str) -> bool:
        span = {"step": step, "start": f"2026-11-15{start}", "end": f"2026-11-15{end}"}
        return listed(shelf, serviceId=ids.service_id(fresh), queryDuration=span) == [fresh]

    assert within("SECOND", " 080059", " 080059")
    assert not within("SECOND", " 080000", " 080058")
    assert not within("SECOND", " 080100", " 085959")
    assert within("MINUTE", " 0800", " 0800")
    assert within("HOUR", " 08", " 08")
    assert within("DAY", "", "")


def test_the_longest_come_first_when_asked_for(shelf, eight, fresh):
    for number, latency_ms in enumerate((5, 70, 30)):
        shelf.put(segment(fresh, "i", "/a", eight, latency_ms, segment_id=f"{fresh}-{number}"))
    found = listed(shelf, serviceId=ids.service_id(fresh), queryOrder="BY_DURATION")
    assert found == [f"{fresh}-{number}" for number in (1, 2, 0)]


def test_pages_are_numbered_from_one(shelf, eight, fresh):
    shelf.put(
        *(segment(fresh, "i", "/", eight + n, 1, segment_id=f"{fresh}-{n}") for n in range(3))
    )

    def page(number: int | None, size: int = 2) -> list[str]:
        paging = {"pageNum": number, "pageSize": size}
        found = listed(shelf, serviceId=ids.service_id(fresh), paging=paging)
        return [key.removeprefix(f"{fresh}-") for key in found]

    assert page(1) == page(0) == page(None) == ["2", "1"]
    assert page(2) == ["0"]
    assert page(3) == page(1, 0) == []


def test_a_page_out_of_reach_is_refused_before_anything_is_read(shelf):
    for paging, why in (
        ({"pageNum": 10**9, "pageSize": 20}, "lies beyond the first"),
        ({"pageNum": 1, "pageSize": 10**6}, "is larger than"),
    ):
        (error,) = shelf.errors(QUERY_TRACES, condition=condition(paging=paging))
        assert why in error


def test_a_condition_that_cannot_be_answered_says_why(shelf):
    (error,) = shelf.errors(QUERY_TRACES, condition=condition(queryDuration=None))
    assert error == "the condition needs a traceId or a queryDuration"
    tags = [{"key": "http.method"}]
    (error,) = shelf.errors(QUERY_TRACES, condition=condition(tags=tags))
    assert error == "the tag 'http.method' needs a value to be searched for"
    many = [{"key": "k", "value": str(n)} for n in range(33)]
    (error,) = shelf.errors(QUERY_TRACES, condition=condition(tags=many))
    assert error == "33 tags are more than the 32 allowed"
    assert shelf.errors(QUERY_TRACES) == ["the condition is missing"]


def test_a_latency_that_no_int_holds_is_shown_as_the_largest(shelf, eight, fresh):
    shelf.put(segment(fresh, "i", "/a", eight, 2**40, segment_id=fresh))
    asked = condition(serviceId=ids.service_id(fresh))
    (trace,) = shelf.ask(QUERY_TRACES, condition=asked)["data"]["traces"]
    assert trace["duration"] == 2**31 - 1


def test_whole_traces_are_not_listed_so_far(shelf):
    assert shelf.ask("{ hasQueryTracesV2Support }") == {"hasQueryTracesV2Support": False}


def test_segments_are_searched_by_tags_and_tags_are_proposed(shelf, eight, fresh):
    for name, tags in (("a", {"db.type": "sql", fresh: "1"}), ("b", {fresh: "2"})):
        one = segment(fresh, "i", "/a", eight, 1, segment_id=f"{fresh}{name}")
        for key, value in tags.items():
            one.spans[0].tags.add(key=key, value=value)
        shelf.put(one)

    def having(*pairs: tuple[str, str]) -> list[str]:
        asked = [{"key": key, "value": value} for key, value in pairs]
        return listed(shelf, serviceId=ids.service_id(fresh), tags=asked)

    assert having((fresh, "1")) == having((fresh, "1"), ("db.type", "sql")) == [f"{fresh}a"]
    assert having((fresh, "1"), (fresh, "2")) == having((fresh, "3")) == []
    proposed = shelf.ask(
        """query ($key: String!, $duration: Duration!) {
          keys: queryTraceTagAutocompleteKeys(duration: $duration)
          values: queryTraceTagAutocompleteValues(tagKey: $key, duration: $duration)
        }""",
        key=fresh,
        duration=MORNING,
    )
    assert {"db.type", fresh} <= set(proposed["keys"])
    assert proposed["values"] == ["1", "2"]


def test_segments_may_be_asked_for_by_the_names_of_whom_they_are_of(shelf, eight, fresh):
    for name in ("a", "b"):
        one = segment(fresh, f"i-{name}", f"/{name}", eight, 1, segment_id=f"{fresh}{name}")
        shelf.put(one)
    query = QUERY_TRACES.replace("TraceQueryCondition", "TraceQueryConditionByName")
    query = query.replace("queryBasicTraces(", "queryBasicTracesByName(")

    def by_name(**asked: Any) -> set[str]:
        found = shelf.ask(query, condition=condition(**asked))["data"]["traces"]
        return {trace["key"].removeprefix(fresh) for trace in found}

    service = {"serviceName": fresh}
    assert by_name(service=service) == {"a", "b"}
    assert by_name(instance={**service, "instanceName": "i-a"}) == {"a"}
    assert by_name(service=service, endpoint={**service, "endpointName": "/b"}) == {"b"}
    assert by_name(service={**service, "layer": "VIRTUAL_DATABASE"}) == set()
    assert shelf.errors(query) == ["the condition is missing"]
