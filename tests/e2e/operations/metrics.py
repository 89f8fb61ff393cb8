"""Metrics of the shop: what was sold is what is charted, by every protocol alike."""

from __future__ import annotations

from typing import Any, Final

from e2e.operations.stage import (
    DATABASE,
    INSTANCE,
    INSTANCE_ID,
    SHOP,
    SHOP_ID,
    STATEMENT,
    Answer,
    Checks,
    Stage,
    endpoint_id,
)
from skyfarer.oap.core import ids

ENTITY: Final = {"scope": "Service", "serviceName": SHOP, "normal": True}
CALLS: Final = {"name": "service_cpm", "entity": ENTITY}
RANKS: Final = {"name": "service_percentile", "entity": ENTITY}
MINUTE_MS: Final = 60_000
NO_STEPS: Final = {"name": "no_such_histogram", "entity": ENTITY}
SLOWEST: Final = {"topN": 5, "order": "DES"}
MOST: Final = {"topN": 100, "order": "DES"}
DATABASE_ID: Final = ids.service_id(DATABASE, normal=False)


def evaluated(stage: Stage, expression: str, **names: str) -> list[Answer]:
    asked = {"expression": expression, "entity": ENTITY | names, "duration": stage.minutes}
    answer = stage.ask("execExpression", **asked)
    assert (answer["type"], answer["error"]) == ("TIME_SERIES_VALUES", None)
    (series,) = answer["results"]
    values: list[Answer] = series["values"]
    return values


def mean(stage: Stage, metric: str, **names: str) -> int:
    told = [int(one["value"]) for one in evaluated(stage, metric, **names) if one["value"]]
    return sum(told) // len(told)


def expression(stage: Stage) -> None:
    values = evaluated(stage, "service_cpm")
    at_ms = [int(one["id"]) for one in values]
    assert at_ms == list(range(at_ms[0], at_ms[-1] + 1, MINUTE_MS))
    assert sum(int(one["value"] or 0) for one in values) == stage.total
    for page, calls in stage.calls.items():
        series = evaluated(stage, "endpoint_cpm", endpointName=page)
        assert sum(int(one["value"] or 0) for one in series) == calls
    asked = {"expression": "top_n(endpoint_cpm,9,des)", "entity": ENTITY}
    listed = stage.ask("execExpression", **asked, duration=stage.minutes)
    assert listed["type"] == "SORTED_LIST"
    owners = {one["owner"]["endpointName"] for one in listed["results"][0]["values"]}
    assert owners == stage.calls.keys()
    wrong = stage.ask("execExpression", **asked | {"expression": "nothing"}, duration=stage.minutes)
    assert wrong["type"] == "UNKNOWN" and "does not exist" in wrong["error"]


def metric_types(stage: Stage) -> None:
    names = ("service_cpm", "service_percentile", "top_n_database_statement", "none")
    types = [stage.ask("typeOfMetrics", name=name) for name in names]
    assert types == ["REGULAR_VALUE", "LABELED_VALUE", "SAMPLED_RECORD", "UNKNOWN"]


def metric_list(stage: Stage) -> None:
    (one,) = stage.ask("listMetrics", regex="service_cp.")
    assert one == {"name": "service_cpm", "type": "REGULAR_VALUE", "catalog": "SERVICE"}


def summed(stage: Stage, points: list[Answer]) -> None:
    assert sum(point["value"] for point in points) == stage.total
    assert all(point["value"] == 0 for point in points if point["isEmptyValue"])


def ranked(stage: Stage, lines: list[list[Answer]]) -> None:
    """Of the same minutes as the calls, and each percentile at least as long as the one before."""
    told = [one["value"] is not None for one in evaluated(stage, "service_cpm")]
    for line in lines:
        assert [not point["isEmptyValue"] for point in line] == told
    for points in zip(*lines, strict=True):
        values = [point["value"] for point in points]
        assert values == sorted(values)


def ranks_of_labels(stage: Stage) -> None:
    asked = {"condition": RANKS, "duration": stage.minutes}
    lines = stage.ask("readLabeledMetricsValues", **asked, labels=["0", "4"])
    assert [line["label"] for line in lines] == ["0", "4"]
    ranked(stage, [line["values"]["values"] for line in lines])


def ranks_by_number(stage: Stage) -> None:
    metric = {"name": "service_percentile", "id": SHOP_ID}
    asked = {"metric": metric, "duration": stage.minutes}
    all_five = stage.ask("getMultipleLinearIntValues", **asked, numOfLinear=5)
    assert len(all_five) == 5
    ranked(stage, [line["values"] for line in all_five])


def ranks_picked(stage: Stage) -> None:
    metric = {"name": "service_percentile", "id": SHOP_ID}
    asked = {"metric": metric, "duration": stage.minutes}
    last, first = stage.ask("getSubsetOfMultipleLinearIntValues", **asked, linearIndex=[4, 0])
    ranked(stage, [first["values"], last["values"]])


def mean_value(stage: Stage) -> None:
    found = stage.ask("readMetricsValue", condition=CALLS, duration=stage.minutes)
    assert found == mean(stage, "service_cpm")


def nullable_value(stage: Stage) -> None:
    found = stage.ask("readNullableMetricsValue", condition=CALLS, duration=stage.minutes)
    assert found == {"value": mean(stage, "service_cpm"), "isEmptyValue": False}
    nobody = {"name": "service_cpm", "entity": {**ENTITY, "serviceName": "asked by nobody"}}
    nothing = stage.ask("readNullableMetricsValue", condition=nobody, duration=stage.minutes)
    assert nothing == {"value": 0, "isEmptyValue": True}


def values_by_id(stage: Stage) -> None:
    metric = {"name": "service_cpm", "ids": [SHOP_ID, "none"]}
    found = stage.ask("getValues", metric=metric, duration=stage.minutes)["values"]
    assert [(one["id"], one["value"], one["isEmptyValue"]) for one in found] == [
        (SHOP_ID, mean(stage, "service_cpm"), False),
        ("none", 0, True),
    ]


def line_by_id(stage: Stage) -> None:
    asked = {"metric": {"name": "service_cpm", "id": SHOP_ID}, "duration": stage.minutes}
    points = stage.ask("getLinearIntValues", **asked)["values"]
    assert all(point["id"].endswith(f"_{SHOP_ID}") for point in points)
    summed(stage, points)


def heat_map(stage: Stage) -> None:
    """Every call is in one of its steps."""
    found = stage.ask("readHeatMap", condition=RANKS, duration=stage.minutes)
    assert len(found["values"]) == len(evaluated(stage, "service_cpm"))
    columns = [column["values"] for column in found["values"]]
    assert {len(counts) for counts in columns} == {len(found["buckets"])}
    assert sum(sum(counts) for counts in columns) == stage.total
    nothing = stage.ask("readHeatMap", condition=NO_STEPS, duration=stage.minutes)
    assert {count for column in nothing["values"] for count in column["values"]} == {0}


def thermodynamic(stage: Stage) -> None:
    metric = {"name": RANKS["name"], "id": SHOP_ID}
    found = stage.ask("getThermodynamic", metric=metric, duration=stage.minutes)
    assert found["axisYStep"] > 0
    assert sum(count for _, _, count in found["nodes"]) == stage.total


def means_of_pages(stage: Stage) -> dict[str, int]:
    return {page: mean(stage, "endpoint_cpm", endpointName=page) for page in stage.calls}


def sorted_pages(stage: Stage) -> None:
    of = {"name": "endpoint_cpm", "parentService": SHOP, "normal": True}
    found = stage.ask("sortMetrics", condition=of | MOST, duration=stage.minutes)
    assert {one["name"]: int(one["value"]) for one in found} == means_of_pages(stage)
    values = [int(one["value"]) for one in found]
    assert values == sorted(values, reverse=True)


def top(stage: Stage, operation: str, metric: str, **asked: Any) -> dict[str, int]:
    found = stage.ask(operation, name=metric, **MOST, **asked, duration=stage.minutes)
    return {one["id"]: one["value"] for one in found}


def top_services(stage: Stage) -> None:
    found = top(stage, "getServiceTopN", "service_cpm")
    assert found[SHOP_ID] == mean(stage, "service_cpm")


def top_instances(stage: Stage, operation: str, **asked: str) -> None:
    found = top(stage, operation, "service_instance_cpm", **asked)
    expected = mean(stage, "service_instance_cpm", serviceInstanceName=INSTANCE)
    assert found[INSTANCE_ID] == expected
    assert not asked or len(found) == 1


def top_pages(stage: Stage, operation: str, **asked: str) -> None:
    found = top(stage, operation, "endpoint_cpm", **asked)
    expected = {endpoint_id(page): value for page, value in means_of_pages(stage).items()}
    assert {key: found[key] for key in expected} == expected
    assert not asked or found == expected


def slow_statements(stage: Stage, operation: str, **condition: Any) -> None:
    """The one that took 900 ms."""
    asked = {"name": "top_n_database_statement", **SLOWEST, **condition}
    (one,) = stage.ask(operation, condition=asked, duration=stage.minutes)
    assert one.pop("id")
    assert one == {"name": STATEMENT, "value": "900", "refId": "asked-trace"}


def top_records(stage: Stage) -> None:
    asked = {"metricName": "top_n_database_statement", "serviceId": DATABASE_ID, **SLOWEST}
    found = stage.ask("getTopNRecords", condition=asked | {"duration": stage.minutes})
    assert found == [{"statement": STATEMENT, "latency": 900, "traceId": "asked-trace"}]


def series(stage: Stage) -> None:
    found = stage.ask("readMetricsValues", condition=CALLS, duration=stage.minutes)
    summed(stage, found["values"]["values"])


def mqe_type(stage: Stage) -> None:
    assert stage.ask("returnTypeOfMQE", expression="avg(service_cpm)") == "SINGLE_VALUE"


CHECKS: Final[Checks] = {
    "typeOfMetrics": metric_types,
    "listMetrics": metric_list,
    "returnTypeOfMQE": mqe_type,
    "execExpression": expression,
    "readMetricsValue": mean_value,
    "readNullableMetricsValue": nullable_value,
    "readMetricsValues": series,
    "readLabeledMetricsValues": ranks_of_labels,
    "sortMetrics": sorted_pages,
    "readHeatMap": heat_map,
    "readSampledRecords": lambda stage: slow_statements(
        stage, "readSampledRecords", parentService=DATABASE, normal=False
    ),
    "readRecords": lambda stage: slow_statements(
        stage, "readRecords", parentEntity={"serviceName": DATABASE, "normal": False}
    ),
    "getValues": values_by_id,
    "getLinearIntValues": line_by_id,
    "getMultipleLinearIntValues": ranks_by_number,
    "getSubsetOfMultipleLinearIntValues": ranks_picked,
    "getThermodynamic": thermodynamic,
    "getServiceTopN": top_services,
    "getAllServiceInstanceTopN": lambda stage: top_instances(stage, "getAllServiceInstanceTopN"),
    "getServiceInstanceTopN": lambda stage: top_instances(
        stage, "getServiceInstanceTopN", serviceId=SHOP_ID
    ),
    "getAllEndpointTopN": lambda stage: top_pages(stage, "getAllEndpointTopN"),
    "getEndpointTopN": lambda stage: top_pages(stage, "getEndpointTopN", serviceId=SHOP_ID),
    "getTopNRecords": top_records,
}
