"""A duration of too many points, from back to front or in no known step starts no scan."""

from __future__ import annotations

import pytest

from skyfarer.oap.query.durations import POINTS_MAX

ENTITY = {"scope": "Service", "serviceName": "shop", "normal": True}
QUERIES = {
    "execExpression": (
        """query ($d: Duration!, $e: Entity!) { execExpression(expression: "service_cpm",
        entity: $e, duration: $d) { error results { values { value } } } }""",
        {"e": ENTITY},
    ),
    "top_n": (
        """query ($d: Duration!, $e: Entity!) { execExpression(
        expression: "top_n(service_cpm, 5, des)", entity: $e, duration: $d) { error
        results { values { value } } } }""",
        {"e": {}},
    ),
    "readMetricsValues": (
        """query ($d: Duration!, $c: MetricsCondition!) { readMetricsValues(condition: $c,
        duration: $d) { values { values { value } } } }""",
        {"c": {"name": "service_cpm", "entity": ENTITY}},
    ),
    "sortMetrics": (
        """query ($d: Duration!, $c: TopNCondition!) { sortMetrics(condition: $c, duration: $d) {
        id value } }""",
        {"c": {"name": "service_cpm", "normal": True, "topN": 5, "order": "DES"}},
    ),
}
GOOD = {"start": "2026-11-15 0800", "end": "2026-11-15 0810", "step": "MINUTE"}
BAD = {
    "ten years by the minute": {"start": "2016-11-15 0800", "end": "2026-11-15 0800"},
    "one point too many": {"start": "2026-11-15 0000", "end": "2026-11-15 0820"},
    "from back to front": {"start": "2026-11-15 0810", "end": "2026-11-15 0800"},
    "no time at all": {"start": "yesterday", "end": "2026-11-15 0800"},
    "written for another step": {"start": "2026-11-15", "end": "2026-11-16"},
    "a day that is not there": {"start": "2026-02-30 0800", "end": "2026-03-01 0800"},
    "year zero": {"start": "0000-01-01 0000", "end": "2026-03-01 0800"},
}


@pytest.mark.parametrize("query", QUERIES)
def test_a_good_duration_is_read(oap, query):
    """So that the others are refused for what they are."""
    oap.reader.failure = AssertionError("storage was asked")
    text, variables = QUERIES[query]
    [message] = oap.errors(text, d=GOOD, **variables)
    assert "internal error" in message


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("query", QUERIES)
def test_a_duration_that_cannot_be_answered_starts_no_scan(oap, query, bad):
    oap.reader.failure = AssertionError("storage was asked")
    text, variables = QUERIES[query]
    [message] = oap.errors(text, d={"step": "MINUTE", **BAD[bad]}, **variables)
    assert "internal error" not in message


def test_a_step_that_there_is_none_of_is_no_document(oap):
    text, variables = QUERIES["execExpression"]
    [message] = oap.errors(text, d={**GOOD, "step": "WEEK"}, **variables)
    assert "WEEK" in message


def test_as_many_points_as_there_may_be_are_answered(oap):
    minutes = POINTS_MAX - 1
    end = f"2026-11-15 {minutes // 60:02d}{minutes % 60:02d}"
    text, variables = QUERIES["execExpression"]
    found = oap.ask(text, d={"start": "2026-11-15 0000", "end": end, "step": "MINUTE"}, **variables)
    assert len(found["execExpression"]["results"][0]["values"]) == POINTS_MAX
