"""execExpression: values, buckets and the ways it says no."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from skyfarer.oap.core.storage import Accumulators, Scope

EXEC = """
query queryData($expression: String!, $entity: Entity!, $duration: Duration!) {
  expression00: execExpression(
    expression: $expression, entity: $entity, duration: $duration, debug: false, dumpDBRsp: false
  ) {
    type
    results {
      metric { labels { key value } }
      values {
        name: id
        value
        refId: traceID
        owner {
          scope serviceID serviceName normal
          serviceInstanceID serviceInstanceName endpointID endpointName
        }
      }
    }
    error
    debuggingTrace { traceId }
  }
}"""

CART = {"serviceName": "cart", "normal": True}
CART_ID = "Y2FydA==.1"


def minutes(start: str, end: str) -> dict[str, str]:
    return {"start": f"2026-11-15 {start}", "end": f"2026-11-15 {end}", "step": "MINUTE"}


def run(oap: Any, expression: str, duration: dict[str, str], entity: Any = CART) -> Any:
    data = oap.ask(EXEC, expression=expression, entity=entity, duration=duration)
    return data["expression00"]


def values(result: dict[str, Any]) -> list[str | None]:
    assert result["type"] == "TIME_SERIES_VALUES", result
    [series] = result["results"]
    assert series["metric"] == {"labels": []}
    return [value["value"] for value in series["values"]]


def test_one_value_per_minute_in_order_with_null_where_nothing_was_recorded(oap, zone):
    oap.reader.put(Scope.SERVICE, CART_ID, 202611150859, Accumulators(7, 100, 1))
    oap.reader.put(Scope.SERVICE, CART_ID, 202611150901, Accumulators(3, 50, 0))
    result = run(oap, "service_cpm", minutes("0858", "0901"))
    assert values(result) == [None, "7", None, "3"]
    first = int(datetime(2026, 11, 15, 8, 58, tzinfo=zone).timestamp() * 1000)
    shown = result["results"][0]["values"]
    assert [value["name"] for value in shown] == [str(first + n * 60_000) for n in range(4)]
    assert {value["owner"] for value in shown} == {value["refId"] for value in shown} == {None}
    assert result["error"] is None and result["debuggingTrace"] is None


@pytest.mark.parametrize(
    ("metric", "value"),
    [("service_cpm", "7"), ("service_resp_time", "14"), ("service_sla", "8571")],
)
def test_averages_and_shares_are_truncated(oap, metric, value):
    oap.reader.put(Scope.SERVICE, CART_ID, 202611150859, Accumulators(7, 104, 1))
    assert values(run(oap, metric, minutes("0859", "0859"))) == [value]


def test_a_row_without_calls_has_a_rate_and_no_average(oap):
    oap.reader.put(Scope.SERVICE, CART_ID, 202611150859, Accumulators(0, 0, 0))
    assert values(run(oap, "service_cpm", minutes("0859", "0859"))) == ["0"]
    assert values(run(oap, "service_resp_time", minutes("0859", "0859"))) == [None]
    assert values(run(oap, "service_sla", minutes("0859", "0859"))) == [None]


def test_instances_and_endpoints_have_the_same_metrics_under_their_own_names(oap):
    instance = oap.reader.add_instance(CART_ID, "cart-1", "go", (0, 0))
    endpoint = oap.reader.add_endpoint(CART_ID, "GET:/cart")
    oap.reader.put(Scope.INSTANCE, instance, 202611150859, Accumulators(4, 44, 1))
    oap.reader.put(Scope.ENDPOINT, endpoint, 202611150859, Accumulators(2, 60, 0))
    now = minutes("0859", "0859")
    at_instance = {**CART, "serviceInstanceName": "cart-1"}
    at_endpoint = {**CART, "endpointName": "GET:/cart"}
    found = [
        values(run(oap, f"service_instance_{name}", now, at_instance))
        for name in ("cpm", "resp_time", "sla")
    ] + [
        values(run(oap, f"endpoint_{name}", now, at_endpoint))
        for name in ("cpm", "resp_time", "sla")
    ]
    assert found == [["4"], ["11"], ["7500"], ["2"], ["30"], ["10000"]]


def test_hours_and_days_are_added_up_before_they_are_divided(oap):
    oap.reader.put(Scope.SERVICE, CART_ID, 202611150800, Accumulators(100, 1000, 0))
    oap.reader.put(Scope.SERVICE, CART_ID, 202611150859, Accumulators(50, 2000, 1))
    oap.reader.put(Scope.SERVICE, CART_ID, 202611151000, Accumulators(1, 9, 0))
    hours = {"start": "2026-11-15 08", "end": "2026-11-15 10", "step": "HOUR"}
    assert values(run(oap, "service_cpm", hours)) == ["2", None, "0"]
    assert values(run(oap, "service_resp_time", hours)) == ["20", None, "9"]
    days = {"start": "2026-11-14", "end": "2026-11-15", "step": "DAY"}
    assert values(run(oap, "service_cpm", days)) == [None, "0"]
    assert values(run(oap, "service_resp_time", days)) == [None, "19"]
    assert values(run(oap, "service_sla", days)) == [None, "9933"]


def test_many_days_are_read_in_windows_and_none_is_missed(oap):
    for day in range(1, 31):
        bucket = (20261100 + day) * 10_000 + 2359
        oap.reader.put(Scope.SERVICE, CART_ID, bucket, Accumulators(1440 * day, 0, 0))
    days = {"start": "2026-11-01", "end": "2026-11-30", "step": "DAY"}
    assert values(run(oap, "service_cpm", days)) == [str(day) for day in range(1, 31)]


def test_five_hundred_points_are_answered_and_one_more_is_an_error(oap):
    assert len(values(run(oap, "service_cpm", minutes("0000", "0819")))) == 500
    variables = {"expression": "service_cpm", "entity": CART}
    errors = oap.errors(EXEC, **variables, duration=minutes("0000", "0820"))
    assert errors == ["duration has more than 500 minutes"]
    endless = {"start": "1970-01-01 0000", "end": "9998-12-31 2359", "step": "MINUTE"}
    assert oap.errors(EXEC, **variables, duration=endless) == errors


@pytest.mark.parametrize(
    ("start", "end", "step"),
    [
        ("2026-11-15 0801", "2026-11-15 0800", "MINUTE"),
        ("2026-11-15 0860", "2026-11-15 0900", "MINUTE"),
        ("2026-02-30", "2026-03-01", "DAY"),
        ("2026-11-15", "2026-11-15", "MINUTE"),
        ("2026-11-15 08:00", "2026-11-15 09:00", "MINUTE"),
        ("0001-01-01", "0001-01-01", "DAY"),
        ("9999-12-31", "9999-12-31", "DAY"),
        ("٢٠٢٦-11-15", "2026-11-15", "DAY"),
        ("", "", "HOUR"),
        ("2026-11-15 080000", "2026-11-15 080001", "SECOND"),
    ],
)
def test_a_duration_that_cannot_be_answered_is_an_error_of_the_request(oap, start, end, step):
    duration = {"start": start, "end": end, "step": step}
    variables = {"expression": "service_cpm", "entity": CART, "duration": duration}
    assert len(oap.errors(EXEC, **variables)) == 1


@pytest.mark.parametrize(
    "expression",
    [
        "no_such_metric",
        "avg(service_cpm)",
        "service_sla/100",
        "service_percentile{p='50'}",
        "top_n(service_cpm,10,des)",
        "",
        "service_cpm service_cpm",
        "'; DROP TABLE service; --",
        "x" * 100_000,
        "\u0000\uffff😀",
    ],
)
def test_an_expression_beyond_a_metric_name_is_unknown_with_its_error_beside_it(oap, expression):
    result = run(oap, expression, minutes("0800", "0801"))
    assert result["type"] == "UNKNOWN"
    assert result["results"] == []
    assert 0 < len(result["error"]) < 200


def test_one_bad_expression_leaves_the_others_of_the_request_alone(oap):
    oap.reader.put(Scope.SERVICE, CART_ID, 202611150859, Accumulators(7, 104, 1))
    query = """query ($entity: Entity!, $duration: Duration!) {
      good: execExpression(expression: "service_cpm", entity: $entity, duration: $duration) {
        type, results { values { id, value, }, }, error,
      },
      bad: execExpression(expression: "nope", entity: $entity, duration: $duration) { type error },
    }"""
    data = oap.ask(query, entity=CART, duration=minutes("0859", "0859"))
    assert data["good"]["results"][0]["values"][0]["value"] == "7"
    assert data["bad"] == {"type": "UNKNOWN", "error": "Metric: [nope] does not exist."}


@pytest.mark.parametrize(
    ("metric", "entity"),
    [
        ("service_cpm", {}),
        ("service_cpm", {"serviceName": "cart"}),
        ("service_cpm", {"serviceName": "", "normal": True}),
        ("service_instance_cpm", CART),
        ("endpoint_cpm", {**CART, "endpointName": ""}),
    ],
)
def test_an_entity_without_the_names_its_metric_needs_gives_an_empty_result(oap, metric, entity):
    result = run(oap, metric, minutes("0800", "0801"), entity)
    assert (result["type"], result["results"], result["error"]) == ("UNKNOWN", [], None)


def test_a_conjectured_service_of_the_same_name_is_another_one(oap):
    oap.reader.put(Scope.SERVICE, "Y2FydA==.0", 202611150859, Accumulators(5, 5, 0))
    now = minutes("0859", "0859")
    assert values(run(oap, "service_cpm", now)) == [None]
    assert values(run(oap, "service_cpm", now, {"serviceName": "cart", "normal": False})) == ["5"]
