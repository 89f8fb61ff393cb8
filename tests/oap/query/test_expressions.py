"""execExpression: values, buckets and the ways it says no."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from skyfarer.oap.core import ids
from skyfarer.oap.core.entities import ENTITIES
from skyfarer.oap.oal.compiler import shipped
from skyfarer.oap.oal.interpreter import accumulate
from skyfarer.oap.oal.plan import Plan, SourcePlan
from skyfarer.oap.oal.sources import SOURCES
from skyfarer.testing.memory_reader import row_of

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


@pytest.fixture
def oap(lasting_oap: Any) -> Any:
    lasting_oap.reader.forget()
    return lasting_oap


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


def source_plan(plan: Plan, source: str) -> SourcePlan:
    return next(one for one in plan.sources if one.source == source)


def put(
    oap: Any, plan: Plan, bucket: int, *rows: dict[str, Any], source: str = "Service", at=CART_ID
) -> None:
    """The bucket's row, made of these items as the plan says."""
    oap.reader.put(source, at, bucket, accumulate(source_plan(plan, source), rows))


def call(latency: int = 10, *, status: bool = True, **more: Any) -> dict[str, Any]:
    return {"name": "cart", "latency": latency, "status": status, "tag": {}, **more}


def labelled(result: dict[str, Any]) -> dict[str, list[str | None]]:
    """Series by their labels, in order."""
    assert result["type"] == "TIME_SERIES_VALUES", result
    found = {}
    for series in result["results"]:
        labels = ",".join(f"{each['key']}={each['value']}" for each in series["metric"]["labels"])
        found[labels] = [value["value"] for value in series["values"]]
    return found


def test_one_value_per_minute_in_order_with_null_where_nothing_was_recorded(oap, plan, zone):
    put(oap, plan, 202611150859, *[call()] * 7)
    put(oap, plan, 202611150901, *[call()] * 3)
    result = run(oap, "service_cpm", minutes("0858", "0901"))
    assert values(result) == [None, "7", None, "3"]
    first = int(datetime(2026, 11, 15, 8, 58, tzinfo=zone).timestamp() * 1000)
    shown = result["results"][0]["values"]
    assert [value["name"] for value in shown] == [str(first + n * 60_000) for n in range(4)]
    assert {value["owner"] for value in shown} == {value["refId"] for value in shown} == {None}
    assert result["error"] is None and result["debuggingTrace"] is None


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("service_cpm", "7"),
        ("service_resp_time", "114"),
        ("service_sla", "8571"),
        ("service_apdex", "7857"),
        ("service_mq_consume_count", "1"),
        ("service_mq_consume_latency", "42"),
        ("own_mean", "114.286"),
        ("own_most", "20"),
    ],
)
def test_each_function_is_derived_from_the_row_of_its_bucket(oap, plan, metric, value):
    """Averages and shares are truncated, and of a double there are three decimals at most."""
    consumed = call(20, type="MQ", tag={"transmission.latency": "42"})
    rows = [call(20), call(20), call(20), call(20), consumed, call(20, status=False), call(680)]
    put(oap, plan, 202611150859, *rows)
    assert values(run(oap, metric, minutes("0859", "0859"))) == [value]


def test_a_double_has_no_more_decimals_than_it_needs(oap, plan):
    for minute, latencies in enumerate(((1, 2), (2, 2), (0,), (1, 1, 2))):
        put(oap, plan, 202611150800 + minute, *map(call, latencies))
    assert values(run(oap, "own_mean", minutes("0800", "0803"))) == ["1.5", "2", "0", "1.333"]


def test_a_metric_that_no_item_has_reached_has_no_value_where_others_have(oap, plan):
    put(oap, plan, 202611150859, call())
    assert values(run(oap, "service_cpm", minutes("0859", "0859"))) == ["1"]
    assert values(run(oap, "service_mq_consume_count", minutes("0859", "0859"))) == [None]


def test_an_average_has_no_value_in_a_time_when_nothing_was_added_up_for_it(oap, plan):
    calls = row_of(plan, service_cpm={"total": 7})
    oap.reader.put("Service", CART_ID, 202611150859, calls)
    now = minutes("0859", "0859")
    found = [values(run(oap, f"service_{name}", now)) for name in ("cpm", "resp_time")]
    assert found == [["7"], [None]]


def test_percentiles_are_one_series_each_with_their_labels(oap, plan):
    latencies = (110, 90, 95, 99, 50, 50, 50, 50, 50, 75, 75)
    put(oap, plan, 202611150858, *map(call, latencies))
    put(oap, plan, 202611150900, call(90), call(110))
    assert labelled(run(oap, "service_percentile", minutes("0858", "0900"))) == {
        "p=50": ["70", None, "90"],
        "p=75": ["90", None, "110"],
        "p=90": ["90", None, "110"],
        "p=95": ["90", None, "110"],
        "p=99": ["110", None, "110"],
    }


def test_a_label_that_a_bucket_lacks_is_null_there(oap, plan):
    put(oap, plan, 202611150858, call(10, endpointName="/a"), call(5, endpointName="/{b},c=1"))
    put(oap, plan, 202611150859, call(2, endpointName="/a"), call(5, endpointName="/a"))
    two = minutes("0858", "0859")
    assert labelled(run(oap, "own_labels", two)) == {"n=/a": ["1", "2"], "n=/{b},c=1": ["1", None]}
    assert labelled(run(oap, "own_averages", two)) == {
        "n=/a": ["10", "3"],
        "n=/{b},c=1": ["5", None],
    }


def test_steps_of_a_histogram_and_ranks_stand_in_the_order_of_numbers(oap, plan):
    put(oap, plan, 202611150859, call(50), call(1000), call(150))
    now = minutes("0859", "0859")
    assert list(labelled(run(oap, "own_steps", now)).items()) == [
        ("_=0", ["1"]),
        ("_=100", ["1"]),
        ("_=200", ["1"]),
    ]
    assert list(labelled(run(oap, "own_ranks", now))) == [f"_={rank}" for rank in range(5)]


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        ("{p='50'}", ["p=50"]),
        ("{ p = '99, 50' }", ["p=50", "p=99"]),
        ('{p="75"}', ["p=75"]),
        ("{p='50',p='95'}", ["p=50", "p=95"]),
        ("{p='51'}", []),
        ("{q='50'}", []),
        ("{p='50',q='50'}", []),
        ("{}", ["p=50", "p=75", "p=90", "p=95", "p=99"]),
        ("{p=''}", ["p=50", "p=75", "p=90", "p=95", "p=99"]),
    ],
)
def test_labels_choose_among_the_series(oap, plan, labels, found):
    put(oap, plan, 202611150859, call())
    result = run(oap, f"service_percentile{labels}", minutes("0859", "0859"))
    assert list(labelled(result)) == found


def test_a_labelled_metric_without_a_value_has_no_series(oap):
    result = run(oap, "service_percentile", minutes("0859", "0859"))
    assert (result["type"], result["results"]) == ("TIME_SERIES_VALUES", [])


INSTANCE = {**CART, "serviceInstanceName": "cart-1"}
ENDPOINT = {**CART, "endpointName": "GET:/cart"}
STOCK = {"destServiceName": "stock:80", "destNormal": False}
STOCK_ID = "c3RvY2s6ODA=.0"


@pytest.mark.parametrize(
    ("metric", "source", "entity", "identifier"),
    [
        ("service_cpm", "Service", CART, CART_ID),
        ("service_instance_cpm", "ServiceInstance", INSTANCE, f"{CART_ID}_Y2FydC0x"),
        ("endpoint_cpm", "Endpoint", ENDPOINT, f"{CART_ID}_R0VUOi9jYXJ0"),
        (
            "service_relation_client_cpm",
            "ServiceRelation",
            CART | STOCK,
            f"{CART_ID}-{STOCK_ID}",
        ),
        (
            "service_instance_relation_client_cpm",
            "ServiceInstanceRelation",
            INSTANCE | STOCK | {"destServiceInstanceName": "s-1"},
            f"{CART_ID}_Y2FydC0x-{STOCK_ID}_cy0x",
        ),
        (
            "endpoint_relation_cpm",
            "EndpointRelation",
            ENDPOINT | STOCK | {"destEndpointName": "POST:/users"},
            f"{CART_ID}-R0VUOi9jYXJ0-{STOCK_ID}-UE9TVDovdXNlcnM=",
        ),
        ("database_access_cpm", "DatabaseAccess", {"serviceName": "db", "normal": False}, "ZGI=.0"),
        (
            "mq_endpoint_consume_cpm",
            "MQEndpointAccess",
            {"serviceName": "mq", "normal": False, "endpointName": "topic"},
            "bXE=.0_dG9waWM=",
        ),
    ],
)
def test_the_names_make_the_id_of_what_the_metric_speaks_of(
    oap, plan, metric, source, entity, identifier
):
    side = "SERVER" if source == "EndpointRelation" else "CLIENT"
    item = call(detectPoint=side, operation="Consume")
    put(oap, plan, 202611150859, item, item, source=source, at=identifier)
    assert values(run(oap, metric, minutes("0859", "0859"), entity)) == ["2"]


def test_both_ends_of_a_relation_have_metrics_of_their_own(oap, plan):
    rows = [call(10, detectPoint="CLIENT"), *[call(30, detectPoint="SERVER")] * 2]
    at = ids.relation_id(CART_ID, STOCK_ID)
    put(oap, plan, 202611150859, *rows, source="ServiceRelation", at=at)
    now = minutes("0859", "0859")
    found = [
        values(run(oap, f"service_relation_{name}", now, CART | STOCK))
        for name in ("client_cpm", "server_cpm", "client_resp_time", "server_resp_time")
    ]
    assert found == [["1"], ["2"], ["10"], ["30"]]


def test_every_metric_that_is_shipped_can_be_asked_for(oap, plan):
    everything = INSTANCE | ENDPOINT | STOCK
    everything |= {"destServiceInstanceName": "s-1", "destEndpointName": "/"}
    names = [metric.name for source in plan.sources for metric in source.metrics]
    assert len(shipped()) == 10 and len(names) > 210
    aliases = "\n".join(
        f'{name}: execExpression(expression: "{name}", entity: $entity, duration: $duration)'
        " { type error }"
        for name in names
    )
    query = f"query ($entity: Entity!, $duration: Duration!) {{ {aliases} }}"
    data = oap.ask(query, entity=everything, duration=minutes("0859", "0859"))
    assert list(data) == names
    assert all(one == {"type": "TIME_SERIES_VALUES", "error": None} for one in data.values())


def test_every_source_of_the_language_has_a_kind_of_entity():
    assert set(ENTITIES) == set(SOURCES)


def test_hours_and_days_are_read_from_rows_of_their_own_and_divided_once(oap, plan):
    fast, slow = [call(10)] * 100, [call(40)] * 49 + [call(40, status=False)]
    put(oap, plan, 2026111508, *fast, *slow)
    put(oap, plan, 2026111510, call(9))
    put(oap, plan, 20261115, *fast, *slow, call(9))
    put(oap, plan, 202611150800, *fast)
    hours = {"start": "2026-11-15 08", "end": "2026-11-15 10", "step": "HOUR"}
    assert values(run(oap, "service_cpm", hours)) == ["2", None, "0"]
    assert values(run(oap, "service_resp_time", hours)) == ["20", None, "9"]
    days = {"start": "2026-11-14", "end": "2026-11-15", "step": "DAY"}
    assert values(run(oap, "service_cpm", days)) == [None, "0"]
    assert values(run(oap, "service_resp_time", days)) == [None, "19"]
    assert values(run(oap, "service_sla", days)) == [None, "9933"]


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
        "service_percentile{p='50'",
        "service_percentile{p=50}",
        "service_percentile{p='50',}",
        "service_percentile{p='50' q='1'}",
        "service_percentile{'50'}",
        "",
        "service_cpm service_cpm",
        "'; DROP TABLE service; --",
        "x" * 100_000,
        "\u0000\uffff😀",
    ],
)
def test_what_is_no_expression_is_unknown_with_its_error_beside_it(oap, expression):
    result = run(oap, expression, minutes("0800", "0801"))
    assert result["type"] == "UNKNOWN"
    assert result["results"] == []
    assert 0 < len(result["error"]) < 200


def test_one_bad_expression_leaves_the_others_of_the_request_alone(oap, plan):
    put(oap, plan, 202611150859, *[call()] * 7)
    query = """query ($entity: Entity!, $duration: Duration!) {
      good: execExpression(expression: "service_cpm", entity: $entity, duration: $duration) {
        type, results { values { id, value, }, }, error,
      },
      bad: execExpression(expression: "nope", entity: $entity, duration: $duration) { type error },
    }"""
    data = oap.ask(query, entity=CART, duration=minutes("0859", "0859"))
    assert data["good"]["results"][0]["values"][0]["value"] == "7"
    error = "line 1, column 1: Metric: [nope] does not exist; listMetrics has the names of all"
    assert data["bad"] == {"type": "UNKNOWN", "error": error}


@pytest.mark.parametrize(
    ("metric", "entity"),
    [
        ("service_cpm", {}),
        ("service_cpm", {"serviceName": "cart"}),
        ("service_cpm", {"serviceName": "", "normal": True}),
        ("service_instance_cpm", CART),
        ("endpoint_cpm", {**CART, "endpointName": ""}),
        ("service_relation_client_cpm", CART),
        ("service_relation_client_cpm", {**CART, "destServiceName": "stock:80"}),
        ("service_instance_relation_client_cpm", INSTANCE | STOCK),
        ("endpoint_relation_cpm", ENDPOINT | STOCK),
    ],
)
def test_an_entity_without_the_names_its_metric_needs_gives_an_empty_result(oap, metric, entity):
    result = run(oap, metric, minutes("0800", "0801"), entity)
    assert (result["type"], result["results"], result["error"]) == ("UNKNOWN", [], None)


def test_a_conjectured_service_of_the_same_name_is_another_one(oap, plan):
    put(oap, plan, 202611150859, *[call()] * 5, at="Y2FydA==.0")
    now = minutes("0859", "0859")
    assert values(run(oap, "service_cpm", now)) == [None]
    assert values(run(oap, "service_cpm", now, {"serviceName": "cart", "normal": False})) == ["5"]
