"""The older root fields of metrics, on a real storage: by names, by ids, and lists."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from golden.mqe.scripts import script
from golden.mqe.storing import store
from skyfarer.oap.core import ids
from skyfarer.oap.query import limits

DAY = "2026-05-01"
LOADED = """
load Service shop
  0800 x7 latency=20
  0801 x4 latency=110 status=false
load Service cart
  0800 x2 latency=250
load ServiceInstance shop / shop-1
  0800 x5
load ServiceInstance shop / shop-2
  0801 x9
load ServiceInstance cart / cart-1
  0800 x6
load Endpoint shop / /pay
  0800 x3
load Endpoint cart / /add
  0800 x8
load ServiceRelation shop -> cart
  0800 x4
load DATABASE pg
  0800 latency=300 statement='SELECT 1' trace=t-1
  0801 latency=900 statement='SELECT 2'
load InstanceHistogram shop / shop-1
  0800 meter='own' bucket='-9223372036854775808' count=3
  0800 meter='own' bucket='10' count=5
  0800 meter='own' bucket='250' count=0
  0801 meter='own' bucket='10' count=1
  0801 meter='own' bucket='250' count=2
"""
SHOP, CART = ids.service_id("shop"), ids.service_id("cart")
NOBODY = {"serviceName": "nobody", "normal": True}
INSTANCE = ids.instance_id(SHOP, "shop-1")
OF_INSTANCE = {"serviceName": "shop", "normal": True, "serviceInstanceName": "shop-1"}
OF_SHOP = {"serviceName": "shop", "normal": True}
KV = "values { id value isEmptyValue }"


def minutes(start: str, end: str) -> dict[str, str]:
    return {"start": f"{DAY} {start}", "end": f"{DAY} {end}", "step": "MINUTE"}


THREE = minutes("0800", "0802")


@pytest.fixture(scope="module")
def loaded(shelf: Any, plan: Any, zone: Any) -> Any:
    store(shelf.storage, plan, script("v2.txt", LOADED, date.fromisoformat(DAY)), zone)
    return shelf


def read(loaded: Any, field: str, shown: str, **arguments: Any) -> Any:
    """The answer of one root field; its arguments are of the types the schema has for them."""
    types = {
        "condition": "RecordCondition!" if field == "readRecords" else _CONDITIONS.get(field),
        "duration": "Duration!",
        "labels": "[String!]!",
        "metric": "BatchMetricConditions!" if field == "getValues" else "MetricCondition!",
        **dict.fromkeys(("numOfLinear", "topN"), "Int!"),
        "linearIndex": "[Int!]!",
        **dict.fromkeys(("name", "regex", "expression"), "String!"),
        "order": "Order!",
        "serviceId": "ID!",
    }
    declared = ", ".join(f"${name}: {types[name]}" for name in arguments)
    passed = ", ".join(f"{name}: ${name}" for name in arguments)
    query = f"query ({declared}) {{ answer: {field}({passed}) {shown} }}"
    return loaded.ask(query, **arguments)["answer"]


_CONDITIONS = {
    **dict.fromkeys(("sortMetrics", "readSampledRecords"), "TopNCondition!"),
    "getTopNRecords": "TopNRecordsCondition!",
    **dict.fromkeys(
        (
            *("readMetricsValue", "readNullableMetricsValue", "readMetricsValues"),
            *("readLabeledMetricsValues", "readHeatMap"),
        ),
        "MetricsCondition!",
    ),
}


def of(name: str, entity: dict[str, Any] = OF_SHOP) -> dict[str, Any]:
    return {"condition": {"name": name, "entity": entity}, "duration": THREE}


def values(points: dict[str, Any]) -> list[int | None]:
    return [None if one["isEmptyValue"] else one["value"] for one in points["values"]]


@pytest.mark.parametrize(
    ("name", "entity", "value"),
    [
        ("service_cpm", OF_SHOP, 5),
        ("service_resp_time", OF_SHOP, 65),
        ("service_sla", OF_SHOP, 5000),
        ("own_mean", OF_SHOP, 65),
        ("service_cpm", NOBODY, None),
        ("service_cpm", {"serviceName": "shop"}, None),
        ("service_percentile", OF_SHOP, None),
        ("no_such_metric", OF_SHOP, None),
        ("top_n_database_statement", OF_SHOP, None),
    ],
)
def test_a_value_is_the_mean_of_what_is_there_truncated(loaded, name, entity, value):
    assert read(loaded, "readMetricsValue", "", **of(name, entity)) == (value or 0)
    found = read(loaded, "readNullableMetricsValue", "{ value isEmptyValue }", **of(name, entity))
    assert found == {"value": value or 0, "isEmptyValue": value is None}


def test_a_series_has_a_point_for_each_bucket_named_by_bucket_and_entity(loaded):
    shown = f"{{ label values {{ {KV} }} }}"
    found = read(loaded, "readMetricsValues", shown, **of("service_cpm"))
    assert found["label"] is None
    assert found["values"]["values"] == [
        {"id": f"202605010800_{SHOP}", "value": 7, "isEmptyValue": False},
        {"id": f"202605010801_{SHOP}", "value": 4, "isEmptyValue": False},
        {"id": f"202605010802_{SHOP}", "value": 0, "isEmptyValue": True},
    ]


@pytest.mark.parametrize(
    ("name", "entity", "instead"),
    [
        ("no_such_metric", OF_SHOP, "UNKNOWN_METRIC_NAME"),
        ("service_cpm", {"serviceName": "shop"}, "ILLEGAL_ENTITY"),
    ],
)
def test_points_of_what_is_not_there_are_empty_and_say_why(loaded, name, entity, instead):
    shown = f"{{ label values {{ {KV} }} }}"
    found = read(loaded, "readMetricsValues", shown, **of(name, entity))["values"]
    assert [one["id"] for one in found["values"]] == [f"20260501080{n}_{instead}" for n in range(3)]
    assert values(found) == [None] * 3
    lines = read(loaded, "readLabeledMetricsValues", shown, **of(name, entity), labels=["a", "b"])
    assert [(one["label"], values(one["values"])) for one in lines] == [
        ("a", [None] * 3),
        ("b", [None] * 3),
    ]


@pytest.mark.parametrize(
    ("name", "labels", "lines"),
    [
        ("service_percentile", ["{p=50}", "{p=99}"], {"{p=50}": [20, 110], "{p=99}": [20, 110]}),
        ("service_percentile", ["1", "0"], {"0": [20, 110], "1": [20, 110]}),
        ("service_percentile", ["7"], {}),
        ("own_ranks", ["0", "9"], {"0": [20, 110], "9": [None, None]}),
        ("own_steps", ["0"], {"0": [7, 0]}),
        ("own_steps", [], {"0": [7, 0], "100": [0, 4], "200": [0, 0]}),
        ("service_cpm", ["0"], {}),
    ],
)
def test_lines_are_chosen_by_label_and_percentiles_by_index_too(loaded, name, labels, lines):
    shown = f"{{ label values {{ {KV} }} }}"
    found = read(loaded, "readLabeledMetricsValues", shown, **of(name), labels=labels)
    assert {one["label"]: values(one["values"])[:2] for one in found} == lines
    assert [one["label"] for one in found] == sorted(lines)


@pytest.mark.parametrize("name", ["service_percentile", "no_such_metric"])
def test_more_labels_than_anyone_draws_are_refused(loaded, name):
    query = """query ($condition: MetricsCondition!, $labels: [String!]!, $duration: Duration!) {
      readLabeledMetricsValues(condition: $condition, labels: $labels, duration: $duration) {
        label
      }
    }"""
    labels = ["0"] * limits.LINES_MAX
    assert loaded.ask(query, **of(name), labels=labels)["readLabeledMetricsValues"]
    refused = loaded.errors(query, **of(name), labels=[*labels, "0"])
    assert refused == ["101 labels are more than the 100 allowed"]


def test_a_heat_map_has_a_column_a_point_and_its_last_step_has_no_end(loaded):
    shown = "{ values { id values } buckets { min max } }"
    found = read(loaded, "readHeatMap", shown, **of("own_steps"))
    assert found["buckets"] == [
        {"min": "0", "max": "100"},
        {"min": "100", "max": "200"},
        {"min": "200", "max": "infinite+"},
    ]
    assert [one["values"] for one in found["values"]] == [[7, 0, 0], [0, 4, 0], [0, 0, 0]]
    assert found["values"][0]["id"] == f"202605010800_{SHOP}"
    silent = read(loaded, "readHeatMap", shown, **of("own_steps", NOBODY))
    assert (silent["buckets"], [one["values"] for one in silent["values"]]) == ([], [[]] * 3)
    assert read(loaded, "readHeatMap", shown, **of("service_cpm"))["buckets"] == []
    unknown = read(loaded, "readHeatMap", shown, **of("no_such_metric"))
    assert unknown["buckets"] == [{"min": "0", "max": "infinite+"}]
    assert [one["values"] for one in unknown["values"]] == [[0]] * 3


def test_a_heat_map_of_what_others_counted_may_have_a_bucket_without_a_beginning(loaded):
    shown = "{ values { values } buckets { min max } }"
    found = read(loaded, "readHeatMap", shown, **of("own_buckets", OF_INSTANCE))
    assert found["buckets"] == [
        {"min": "infinite-", "max": "10"},
        {"min": "10", "max": "250"},
        {"min": "250", "max": "infinite+"},
    ]
    assert [one["values"] for one in found["values"]] == [[3, 5, 0], [0, 1, 2], [0, 0, 0]]
    asked = {"metric": {"name": "own_buckets", "id": INSTANCE}, "duration": THREE}
    assert read(loaded, "getThermodynamic", "{ axisYStep }", **asked)["axisYStep"] == 2**31 - 1


@pytest.mark.parametrize("labels", [["{p=50}", "{p=99}"], ["0", "4"]])
def test_percentiles_of_what_others_counted_are_chosen_by_label_and_by_index(loaded, labels):
    shown = f"{{ label values {{ {KV} }} }}"
    asked = of("own_bucket_ranks", OF_INSTANCE) | {"labels": labels}
    found = read(loaded, "readLabeledMetricsValues", shown, **asked)
    lines = {one["label"]: values(one["values"]) for one in found}
    assert lines == dict(zip(labels, ([10, 250, None], [10, 250, None]), strict=True))


def test_a_heat_map_of_percentiles_has_what_they_are_reckoned_from(loaded):
    shown = "{ values { id values } buckets { min max } }"
    found = read(loaded, "readHeatMap", shown, **of("service_percentile"))
    edges = [int(one["min"]) for one in found["buckets"]]
    assert edges == [step * 100 for step in range(21)]
    assert found["buckets"][-1] == {"min": "2000", "max": "infinite+"}
    there = [
        {edge: count for edge, count in zip(edges, one["values"], strict=True) if count}
        for one in found["values"]
    ]
    assert there == [{0: 7}, {100: 4}, {}]
    silent = read(loaded, "readHeatMap", shown, **of("service_percentile", NOBODY))
    assert (silent["buckets"], [one["values"] for one in silent["values"]]) == ([], [[]] * 3)

    metric = {"name": "service_percentile", "id": CART}
    asked = {"metric": metric, "duration": minutes("0800", "0800")}
    told = read(loaded, "getThermodynamic", "{ nodes axisYStep }", **asked)
    assert told["axisYStep"] == 100
    assert [node for node in told["nodes"] if node[2]] == [[0, 2, 2]]


def top(name: str, count: int = 10, order: str = "DES", **more: Any) -> dict[str, Any]:
    condition = {"name": name, "topN": count, "order": order, **more}
    return {"condition": condition, "duration": THREE}


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (top("service_cpm"), [("shop", "5"), ("cart", "2")]),
        (top("service_cpm", 1, "ASC"), [("cart", "2")]),
        (top("service_cpm", 0), []),
        (
            top("service_instance_cpm"),
            [("shop - shop-2", "9"), ("cart - cart-1", "6"), ("shop - shop-1", "5")],
        ),
        (
            top("service_instance_cpm", parentService="shop", normal=True, scope="Service"),
            [("shop-2", "9"), ("shop-1", "5")],
        ),
        (top("service_instance_cpm", parentService="shop"), []),
        (top("endpoint_cpm", parentService="cart", normal=True), [("/add", "8")]),
        (top("service_relation_client_cpm"), [("Unknown", "4")]),
        (top("service_percentile"), []),
        (top("no_such_metric"), []),
    ],
)
def test_entities_are_sorted_by_their_mean(loaded, asked, found):
    records = read(loaded, "sortMetrics", "{ name id value refId }", **asked)
    assert [(one["name"], one["value"]) for one in records] == found
    assert all(one["refId"] is None for one in records)


def test_a_sorted_entity_has_its_id(loaded):
    found = read(loaded, "sortMetrics", "{ id }", **top("service_instance_cpm", 1))
    assert found == [{"id": ids.instance_id(SHOP, "shop-2")}]


PG = {"serviceName": "pg", "normal": False}


def test_records_of_a_service_are_read_three_ways(loaded):
    name, prefix = "top_n_database_statement", "v2.txt-8"
    asked = {"name": name, "topN": 5, "order": "DES"}
    expected = [
        {"name": "SELECT 2", "id": f"{prefix}-1", "value": "900", "refId": None},
        {"name": "SELECT 1", "id": f"{prefix}-0", "value": "300", "refId": "t-1"},
    ]
    shown = "{ name id value refId }"
    condition = {**asked, "parentEntity": PG}
    found = read(loaded, "readRecords", shown, condition=condition, duration=THREE)
    assert found == expected
    parent = {"parentService": "pg", "normal": False}
    condition = {**asked, **parent, "order": "ASC", "topN": 1}
    found = read(loaded, "readSampledRecords", shown, condition=condition, duration=THREE)
    assert found == expected[1:]
    condition = {"metricName": name, "topN": 1, "order": "DES", "duration": THREE}
    condition["serviceId"] = ids.service_id("pg", normal=False)
    found = read(loaded, "getTopNRecords", "{ statement latency traceId }", condition=condition)
    assert found == [{"statement": "SELECT 2", "latency": 900, "traceId": None}]


@pytest.mark.parametrize(
    "condition",
    [
        {"name": "top_n_database_statement", "parentEntity": {"serviceName": "pg"}},
        {"name": "top_n_database_statement", "parentEntity": NOBODY},
        {"name": "top_n_cache_read_command", "parentEntity": PG},
        {"name": "service_cpm", "parentEntity": PG},
        {"name": "no_such_metric", "parentEntity": PG},
    ],
)
def test_records_of_what_is_not_there_are_none(loaded, condition):
    condition = condition | {"topN": 5, "order": "DES"}
    assert read(loaded, "readRecords", "{ id }", condition=condition, duration=THREE) == []


def test_values_of_several_ids_come_in_their_order(loaded):
    asked = {"name": "service_cpm", "ids": [CART, "nobody", SHOP]}
    found = read(loaded, "getValues", f"{{ {KV} }}", metric=asked, duration=THREE)
    assert found["values"] == [
        {"id": CART, "value": 2, "isEmptyValue": False},
        {"id": "nobody", "value": 0, "isEmptyValue": True},
        {"id": SHOP, "value": 5, "isEmptyValue": False},
    ]


def test_lines_by_id_are_those_by_name(loaded):
    of_shop = {"name": "service_cpm", "id": SHOP}
    found = read(loaded, "getLinearIntValues", f"{{ {KV} }}", metric=of_shop, duration=THREE)
    assert values(found) == [7, 4, None]
    of_none = {"name": "service_cpm"}
    found = read(loaded, "getLinearIntValues", f"{{ {KV} }}", metric=of_none, duration=THREE)
    assert values(found) == [None] * 3


def test_percentiles_by_index_stand_in_the_order_asked_for(loaded):
    metric = {"name": "service_percentile", "id": SHOP}
    more = {"metric": metric, "duration": minutes("0800", "0801")}
    shown = f"{{ {KV} }}"
    found = read(loaded, "getMultipleLinearIntValues", shown, numOfLinear=7, **more)
    assert [values(one) for one in found] == [[20, 110]] * 5
    field = "getSubsetOfMultipleLinearIntValues"
    found = read(loaded, field, shown, linearIndex=[4, 9, 0], **more)
    assert [values(one) for one in found] == [[20, 110]] * 2
    assert read(loaded, "getMultipleLinearIntValues", shown, numOfLinear=0, **more) == []


def test_a_thermodynamic_has_a_node_a_point_and_step(loaded):
    metric = {"name": "own_steps", "id": SHOP}
    asked = {"metric": metric, "duration": minutes("0800", "0801")}
    found = read(loaded, "getThermodynamic", "{ nodes axisYStep }", **asked)
    nodes = [[0, 0, 7], [0, 1, 0], [0, 2, 0], [1, 0, 0], [1, 1, 4], [1, 2, 0]]
    assert found == {"nodes": nodes, "axisYStep": 100}
    asked["metric"] = {"name": "no_such_metric", "id": SHOP}
    found = read(loaded, "getThermodynamic", "{ nodes axisYStep }", **asked)
    assert found == {"nodes": [[0, 0, 0], [1, 0, 0]], "axisYStep": 200}


@pytest.mark.parametrize(
    ("field", "name", "more", "found"),
    [
        ("getServiceTopN", "service_cpm", {}, [("shop", 5), ("cart", 2)]),
        ("getServiceTopN", "service_instance_cpm", {}, []),
        ("getAllServiceInstanceTopN", "service_instance_cpm", {}, [("shop - shop-2", 9)]),
        ("getServiceInstanceTopN", "service_instance_cpm", {"serviceId": CART}, [("cart-1", 6)]),
        ("getAllEndpointTopN", "endpoint_cpm", {}, [("cart - /add", 8), ("shop - /pay", 3)]),
        ("getEndpointTopN", "endpoint_cpm", {"serviceId": SHOP}, [("/pay", 3)]),
    ],
)
def test_the_first_lists_of_entities_are_of_the_kind_they_name(loaded, field, name, more, found):
    asked = {"name": name, "topN": len(found) or 9, "order": "DES", "duration": THREE}
    records = read(loaded, field, "{ name id value }", **asked, **more)
    assert [(one["name"], one["value"]) for one in records] == found


SORTED = """query ($c: TopNCondition!, $d: Duration!) {
  sortMetrics(condition: $c, duration: $d) { id } }"""


@pytest.mark.parametrize(
    ("query", "asked", "sentence"),
    [
        (
            """query ($c: BatchMetricConditions!, $d: Duration!) {
              getValues(metric: $c, duration: $d) { values { id } } }""",
            {"name": "service_cpm", "ids": ["x"] * 101},
            "101 ids are more than the 100 allowed at once",
        ),
        (
            """query ($c: MetricCondition!, $d: Duration!) {
              getMultipleLinearIntValues(metric: $c, numOfLinear: 101, duration: $d) {
                values { id } } }""",
            {"name": "service_percentile", "id": SHOP},
            "101 lines are more than 100",
        ),
        (
            SORTED,
            top("service_cpm", 1001)["condition"],
            "a list has at most 1000 entries, not 1001",
        ),
        (
            SORTED,
            top("service_relation_client_cpm", parentService="shop", normal=True)["condition"],
            "service_relation_client_cpm is of two services; ask for its top without a service",
        ),
    ],
)
def test_what_is_too_much_is_refused_with_its_bound(loaded, query, asked, sentence):
    assert loaded.errors(query, c=asked, d=THREE) == [sentence]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("service_cpm", "REGULAR_VALUE"),
        ("service_percentile", "LABELED_VALUE"),
        ("own_steps", "HEATMAP"),
        ("own_buckets", "HEATMAP"),
        ("own_bucket_ranks", "LABELED_VALUE"),
        ("top_n_database_statement", "SAMPLED_RECORD"),
        ("no_such_metric", "UNKNOWN"),
    ],
)
def test_the_type_of_a_metric_says_how_it_can_be_read(loaded, name, kind):
    assert read(loaded, "typeOfMetrics", "", name=name) == kind


def test_metrics_are_listed_by_name_and_by_a_pattern_of_the_whole_name(loaded, plan):
    everything = loaded.ask("{ listMetrics { name type catalog } }")["listMetrics"]
    names = [one["name"] for one in everything]
    assert names == sorted(names)
    assert len(names) == sum(len(source.metrics) for source in plan.sources) + 4
    assert {one["catalog"] for one in everything} == {
        *("SERVICE", "SERVICE_INSTANCE", "ENDPOINT"),
        *("SERVICE_RELATION", "SERVICE_INSTANCE_RELATION", "ENDPOINT_RELATION"),
    }
    some = read(loaded, "listMetrics", "{ name type catalog }", regex="service_(cpm|percentile)")
    assert some == [
        {"name": "service_cpm", "type": "REGULAR_VALUE", "catalog": "SERVICE"},
        {"name": "service_percentile", "type": "LABELED_VALUE", "catalog": "SERVICE"},
    ]
    assert read(loaded, "listMetrics", "{ name }", regex="cpm") == []
    assert len(read(loaded, "listMetrics", "{ name }", regex="")) == len(names)


@pytest.mark.parametrize("regex", ["(", "a)|(b", "x" * 501, "(?<=a)b"])
def test_what_is_no_pattern_is_refused(loaded, regex):
    query = "query ($r: String) { listMetrics(regex: $r) { name } }"
    (error,) = loaded.errors(query, r=regex)
    assert "internal" not in error


def test_a_pattern_that_backtracks_is_answered_at_once(loaded):
    assert read(loaded, "listMetrics", "{ name }", regex="(([a-z_]+)+)+!") == []


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("service_cpm", "TIME_SERIES_VALUES"),
        ("avg(service_cpm) * 2", "SINGLE_VALUE"),
        ("top_n(service_cpm, 10, des) / 100", "SORTED_LIST"),
        ("top_n(top_n_database_statement, 10, des)", "RECORD_LIST"),
        ("view_as_seq(no_such_metric, service_cpm)", "TIME_SERIES_VALUES"),
        ("view_as_seq(avg(service_cpm), service_cpm)", "UNKNOWN"),
        ("is_present(no_such_metric)", "SINGLE_VALUE"),
        ("no_such_metric", "UNKNOWN"),
        ("(", "UNKNOWN"),
    ],
)
def test_the_type_of_an_expression_is_known_before_it_is_evaluated(loaded, expression, kind):
    assert read(loaded, "returnTypeOfMQE", "", expression=expression) == kind
