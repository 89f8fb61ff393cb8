"""A page that nobody would turn to, and a list that nobody could read, are refused unread."""

from __future__ import annotations

import pytest

from skyfarer.oap.query import limits

DURATION = {"start": "2026-11-15 080000", "end": "2026-11-15 082900", "step": "SECOND"}
MINUTES = {"start": "2026-11-15 0800", "end": "2026-11-15 0829", "step": "MINUTE"}
PAGED = {
    "traces": (
        "query ($c: TraceQueryCondition) { queryBasicTraces(condition: $c) { traces { start } } }",
        {"queryDuration": DURATION, "traceState": "ALL", "queryOrder": "BY_START_TIME"},
    ),
    "logs": (
        "query ($c: LogQueryCondition) { queryLogs(condition: $c) { logs { content } } }",
        {"queryDuration": DURATION},
    ),
    "events": (
        "query ($c: EventQueryCondition) { queryEvents(condition: $c) { events { uuid } } }",
        {"time": MINUTES},
    ),
}
LISTS = {
    "sortMetrics": """query ($n: Int!, $d: Duration!) { sortMetrics(duration: $d, condition:
        {name: "service_cpm", normal: true, topN: $n, order: DES}) { id } }""",
    "getServiceTopN": """query ($n: Int!, $d: Duration!) { getServiceTopN(duration: $d,
        name: "service_cpm", topN: $n, order: DES) { id } }""",
}
FAR = (10**9, 2**31 - 1)


@pytest.mark.parametrize("what", PAGED)
def test_a_page_within_reach_is_read(oap, what):
    """So that the others are refused for where they are."""
    oap.reader.failure = AssertionError("storage was asked")
    query, condition = PAGED[what]
    paging = {"pageNum": 1, "pageSize": 20}
    [message] = oap.errors(query, c={**condition, "paging": paging})
    assert "internal error" in message


@pytest.mark.parametrize(
    "paging",
    [
        *({"pageNum": number, "pageSize": 20} for number in FAR),
        *({"pageNum": 1, "pageSize": size} for size in FAR),
        {"pageNum": limits.REACH_MAX // 20 + 1, "pageSize": 20},
        {"pageNum": 1, "pageSize": limits.PAGE_MAX + 1},
    ],
    ids=str,
)
@pytest.mark.parametrize("what", PAGED)
def test_a_page_out_of_reach_is_refused_before_anything_is_read(oap, what, paging):
    oap.reader.failure = AssertionError("storage was asked")
    query, condition = PAGED[what]
    [message] = oap.errors(query, c={**condition, "paging": paging})
    assert "internal error" not in message
    assert any(word in message for word in ("page", "reach", "at most")), message


@pytest.mark.parametrize("what", LISTS)
@pytest.mark.parametrize("entries", [*FAR, limits.TOP_N_MAX + 1])
def test_a_list_of_too_many_is_refused_before_anything_is_read(oap, what, entries):
    oap.reader.failure = AssertionError("storage was asked")
    [message] = oap.errors(LISTS[what], n=entries, d=MINUTES)
    assert message == f"a list has at most {limits.TOP_N_MAX} entries, not {entries}"
    [message] = oap.errors(LISTS[what], n=10, d=MINUTES)
    assert "internal error" in message, "it is read when it is short"


def test_a_top_of_too_many_is_told_in_its_error(oap):
    oap.reader.failure = AssertionError("storage was asked")
    found = oap.ask(
        """query ($d: Duration!) { execExpression(duration: $d, entity: {},
        expression: "top_n(service_cpm, 1000000000, des)") { error } }""",
        d=MINUTES,
    )["execExpression"]
    assert str(limits.TOP_N_MAX) in found["error"]


def test_endpoints_are_listed_up_to_a_bound(oap):
    service = oap.reader.add_service("shop")
    for number in range(limits.ENDPOINTS_MAX + 5):
        oap.reader.add_endpoint(service, f"/{number}")
    query = """query ($id: ID!, $n: Int!) { findEndpoint(serviceId: $id, keyword: "", limit: $n) {
        id } }"""
    found = oap.ask(query, id=service, n=10**9)["findEndpoint"]
    assert len(found) == limits.ENDPOINTS_MAX
