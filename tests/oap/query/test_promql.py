"""The Prometheus API, asked by Prometheus' own promtool and by hand."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from golden.mqe.scripts import script
from golden.mqe.storing import store
from skyfarer.base.errors import RetryableError
from skyfarer.oap.query.promql import traffic
from skyfarer.telemetry.table import QUERY_REQUESTS
from third_parties.prometheus import queried

LOADED = """
load Service prom-shop
  0800 x7 latency=20
  0801 x4 latency=110 status=false
  0803 x1
load Service prom-cart
  0801 x2
load ServiceInstance prom-shop / shop-1
  0801 x5
load ServiceInstance prom-shop / shop-2
  0801 x3
load Endpoint prom-shop / /pay
  0801 x3
load ServiceRelation prom-shop -> prom-cart
  0801 x6
"""
SHOP = 'service="prom-shop",layer="GENERAL"'
CART = 'service="prom-cart",layer="GENERAL"'
EIGHT = datetime(2026, 7, 1, 0, 0, tzinfo=UTC)  # it is eight there


def at(minute: int) -> float:
    return (EIGHT + timedelta(minutes=minute)).timestamp()


@pytest.fixture(scope="module")
def prom(shelf: Any, plan: Any, zone: Any) -> Any:
    store(shelf.storage, plan, script("promql.txt", LOADED, date(2026, 7, 1)), zone)
    return shelf


def promtool(prom: Any, command: str, *arguments: str) -> list[str]:
    server = f"{prom.http.base_url}".rstrip("/") + "/prometheus"
    return queried(server, command, *arguments)


def asked(prom: Any, path: str, **parameters: Any) -> Any:
    response = prom.http.get(f"/prometheus/api/v1/{path}", params=parameters)
    body = response.json()
    assert (response.status_code, body["status"]) == (200, "success"), body
    return body["data"]


def refused(prom: Any, path: str, **parameters: Any) -> str:
    response = prom.http.get(f"/prometheus/api/v1/{path}", params=parameters)
    body = response.json()
    assert (response.status_code, body["status"], body["errorType"]) == (400, "error", "bad_data")
    error = body["error"]
    assert isinstance(error, str)
    return error


def values(prom: Any, query: str, minute: int = 1) -> dict[str, str]:
    """The labels that differ → value, at a minute."""
    data = asked(prom, "query", query=query, time=at(minute))
    assert data["resultType"] == "vector"
    return {_short(one["metric"]): one["value"][1] for one in data["result"]}


def _short(labels: dict[str, str]) -> str:
    own = {k: v for k, v in labels.items() if k not in ("__name__", "layer", "service")}
    return ",".join(f"{key}={value}" for key, value in own.items())


def test_promtool_asks_for_a_metric_at_a_time(prom):
    time = f"--time={at(1):.0f}"
    (line,) = promtool(prom, "instant", time, f"service_cpm{{{SHOP}}}")
    assert line == f'service_cpm{{layer="GENERAL", service="prom-shop"}} => 4 @[{at(1):.0f}]'
    assert promtool(prom, "instant", time, "1 + 2 * 3") == [f"scalar: 7 @[{at(1):.0f}]"]


def test_promtool_asks_for_a_metric_over_a_time(prom):
    span = [f"--start={at(0):.0f}", f"--end={at(3):.0f}", "--step=60s"]
    lines = promtool(prom, "range", *span, f"service_cpm{{{SHOP}}} * 2")
    assert lines == [
        '{layer="GENERAL", service="prom-shop"} =>',
        f"14 @[{at(0):.0f}]",
        f"8 @[{at(1):.0f}]",
        f"2 @[{at(3):.0f}]",
    ]


def test_promtool_finds_series_and_the_values_of_labels(prom):
    lines = promtool(prom, "series", '--match=service_traffic{layer="GENERAL",service=~"prom-.*"}')
    assert sorted(lines) == [
        f'{{__name__="service_traffic", layer="GENERAL", scope="Service", service="{name}"}}'
        for name in ("prom-cart", "prom-shop")
    ]
    names = promtool(prom, "labels", "__name__")
    assert {"service_cpm", "service_percentile", "endpoint_traffic"} < set(names)


def test_an_instant_value_is_the_latest_of_two_minutes(prom):
    assert values(prom, f"service_cpm{{{SHOP}}}", 3) == {"": "1"}
    assert values(prom, f"service_cpm{{{SHOP}}}", 2) == {"": "4"}
    assert values(prom, f"service_cpm{{{SHOP}}}", 6) == {}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (f"service_percentile{{{SHOP},p='50,99'}}", {"p=50": "110", "p=99": "110"}),
        (f"service_sla{{{SHOP}}} / 100", {"": "0"}),
        (f"-service_cpm{{{SHOP}}}", {"": "-4"}),
        (f"service_cpm{{{SHOP}}} / 3", {"": repr(4 / 3)}),
        (f"service_cpm{{{SHOP}}} / 0", {"": "+Inf"}),
        (f"service_cpm{{{SHOP}}} > 3", {"": "4"}),
        (f"service_cpm{{{SHOP}}} > 4", {}),
        (f"3 < service_cpm{{{SHOP}}}", {"": "4"}),
        (f"service_cpm{{{SHOP}}} > bool 4", {"": "0"}),
        (f"service_cpm{{{SHOP}}} == service_cpm{{{SHOP}}}", {"": "4"}),
        (f"service_cpm{{{SHOP}}} + service_cpm{{{CART}}}", {}),
        (f"sum(service_percentile{{{SHOP},p='50,99'}})", {"": "220"}),
        (f"max by (p) (service_percentile{{{SHOP},p='50'}})", {"p=50": "110"}),
        (f"avg without (p) (service_percentile{{{SHOP}}}) / 10", {"": "11"}),
        (f"min(service_percentile{{{SHOP}}}) by (layer) > 100", {"": "110"}),
        (
            f"service_instance_cpm{{{SHOP},service_instance='shop-1'}}",
            {"service_instance=shop-1": "5"},
        ),
        (f"endpoint_cpm{{{SHOP},endpoint='/pay'}}", {"endpoint=/pay": "3"}),
        (
            f"service_relation_client_cpm{{{SHOP},dest_service='prom-cart',dest_layer='GENERAL'}}",
            {"dest_service=prom-cart,dest_layer=GENERAL": "6"},
        ),
    ],
)
def test_an_expression_is_answered_as_prometheus_would(prom, query, found):
    assert values(prom, query) == found


def test_a_range_in_an_instant_query_gives_all_its_points(prom):
    data = asked(prom, "query", query=f"service_cpm{{{SHOP}}}[3m]", time=at(3))
    assert data["resultType"] == "matrix"
    assert data["result"][0]["values"] == [[at(0), "7"], [at(1), "4"], [at(3), "1"]]
    assert data["result"][0]["metric"]["__name__"] == "service_cpm"


def test_a_long_range_is_answered_by_the_hour_and_a_longer_by_the_day(prom):
    def points(days: int) -> list[Any]:
        end = at(0) + days * 86_400
        data = asked(
            prom, "query_range", query=f"service_resp_time{{{SHOP}}}", start=at(0), end=end, step=60
        )
        found: list[Any] = data["result"][0]["values"]
        return found

    assert points(1) == [[at(0), "49"]]
    assert points(40) == [[at(-480), "49"]]


def test_a_number_over_a_time_is_the_same_at_every_point(prom):
    data = asked(prom, "query_range", query="2 + 1", start=at(0), end=at(2), step=60)
    assert data["result"] == [{"metric": {}, "values": [[at(n), "3"] for n in range(3)]}]


def test_a_time_may_be_written_as_in_rfc_3339(prom):
    data = asked(prom, "query", query=f"service_cpm{{{SHOP}}}", time="2026-07-01T08:01:00+08:00")
    assert data["result"][0]["value"] == [at(1), "4"]


def test_a_form_may_be_posted(prom):
    form = {"query": f"service_cpm{{{SHOP}}}", "time": f"{at(1)}"}
    answer = prom.http.post("/prometheus/api/v1/query", data=form).json()
    assert answer["data"]["result"][0]["value"] == [at(1), "4"]


def test_lists_of_services_instances_and_endpoints_are_series(prom):
    span = {"start": at(0), "end": at(5)}
    found = asked(prom, "series", **span, **{"match[]": f"instance_traffic{{{SHOP}}}"})
    assert sorted(one["service_instance"] for one in found) == ["shop-1", "shop-2"]
    path, match = (
        "label/service_instance/values",
        f"instance_traffic{{{SHOP},service_instance!='shop-1'}}",
    )
    assert asked(prom, path, **span, **{"match[]": match}) == ["shop-2"]
    match = f"endpoint_traffic{{{SHOP},keyword='pa',limit='5'}}"
    assert asked(prom, "label/endpoint/values", **span, **{"match[]": match}) == ["/pay"]
    match = f"service_percentile{{{SHOP},p='50'}}"
    assert asked(prom, "label/p/values", **span, **{"match[]": match}) == ["50"]
    assert "GENERAL" in asked(prom, "label/layer/values")


def test_a_series_that_is_not_wanted_is_left_out(prom):
    match = "service_traffic{layer='GENERAL',service!~'prom-.*'}"
    assert asked(prom, "label/service/values", **{"match[]": match}) == []
    match = "service_traffic{layer='GENERAL',service='prom-cart'}"
    assert asked(prom, "label/service/values", **{"match[]": match}) == ["prom-cart"]


def test_what_storage_cannot_do_is_no_fault_of_the_query(oap):
    oap.reader.failure = RetryableError("storage is away; try again")
    query = {"query": "service_cpm{service='a',layer='GENERAL'}"}
    response = oap.http.get("/prometheus/api/v1/query", params=query)
    away = {"status": "error", "errorType": "unavailable", "error": "storage is away; try again"}
    assert (response.status_code, response.json()) == (503, away)
    oap.reader.failure = ValueError("a defect")
    response = oap.http.get("/prometheus/api/v1/query", params=query)
    error = {"status": "error", "errorType": "internal", "error": "the server's log has the reason"}
    assert (response.status_code, response.json()) == (500, error)
    counted = oap.registry.value(QUERY_REQUESTS, operation="promql query", outcome="failed")
    assert counted == 2


def test_labels_metadata_and_the_build_are_told(prom):
    assert asked(prom, "labels", **{"match[]": "service_instance_cpm"}) == [
        *("layer", "service", "service_instance"),
    ]
    assert "dest_endpoint" in asked(prom, "labels")
    gauge = [{"type": "gauge", "help": "", "unit": ""}]
    assert asked(prom, "metadata", metric="service_cpm") == {"service_cpm": gauge}
    assert len(asked(prom, "metadata", limit=3)) == 3
    assert asked(prom, "status/buildinfo")["version"] == "2.42.0"


@pytest.mark.parametrize(
    "query",
    [
        f'{{__name__="service_cpm",{SHOP}}}',
        f'{{{SHOP}, __name__="service_cpm",}}',
        f'sum({{__name__="service_cpm",{SHOP}}}) by (service)',
    ],
)
def test_the_name_of_a_metric_may_stand_among_its_labels(prom, query):
    assert values(prom, query) == {"": "4"}


def test_grafana_finds_an_oap_that_it_can_ask(prom):
    """What its Prometheus data source asks when it is saved, and when a panel is opened."""
    form = {"query": "1+1", "time": f"{at(1)}"}
    answer = prom.http.post("/prometheus/api/v1/query", data=form)
    assert answer.json()["data"] == {"resultType": "scalar", "result": [at(1), "2"]}
    assert asked(prom, "status/buildinfo").keys() >= {"version", "revision", "goVersion"}
    assert asked(prom, "rules") == {"groups": []}
    span = {"start": f"{at(0):.0f}", "end": f"{at(5):.0f}"}
    names = asked(prom, "label/__name__/values", **span)
    told = asked(prom, "metadata", limit="40000")
    assert "service_cpm" in names and told.keys() == {*names} - {*traffic.LABELS}
    assert all(one == [{"type": "gauge", "help": "", "unit": ""}] for one in told.values())


def test_grafanas_builder_fills_its_lists_one_after_another(prom):
    span = {"start": f"{at(0):.0f}", "end": f"{at(5):.0f}"}

    def listed(label: str, match: str) -> list[str]:
        found = asked(prom, f"label/{label}/values", **span, **{"match[]": match})
        assert isinstance(found, list)
        return found

    answer = prom.http.post(
        "/prometheus/api/v1/labels",
        data={**span, "match[]": '{__name__="service_instance_cpm"}'},
    )
    assert answer.json()["data"] == ["layer", "service", "service_instance"]
    assert "GENERAL" in listed("layer", '{__name__="service_instance_cpm"}')
    chosen = '{__name__="service_instance_cpm",layer="GENERAL"}'
    assert {"prom-cart", "prom-shop"} <= {*listed("service", chosen)}
    chosen = f"service_instance_cpm{{{SHOP}}}"
    assert sorted(listed("service_instance", chosen)) == ["shop-1", "shop-2"]
    assert listed("endpoint", chosen) == [], "it has no such label"
    whole = f'{{__name__="service_instance_cpm",{SHOP},service_instance="shop-1"}}'
    assert listed("service_instance", whole) == ["shop-1"]
    series = asked(prom, "series", **span, **{"match[]": whole})
    assert [(one["__name__"], one["service"]) for one in series] == [
        ("service_instance_cpm", "prom-shop")
    ]
    needed = refused(prom, "label/service/values", **{"match[]": '{__name__="service_cpm"}'})
    assert needed == "the values of service need the labels layer"


def test_grafanas_panel_posts_a_form_for_a_range(prom):
    form = {
        "query": f'{{__name__="service_cpm",{SHOP}}}',
        "start": f"{at(0)}",
        "end": f"{at(3)}",
        "step": "15",
    }
    answer = prom.http.post("/prometheus/api/v1/query_range", data=form)
    assert answer.headers["content-type"] == "application/json"
    (series,) = answer.json()["data"]["result"]
    assert series["metric"] == {
        "__name__": "service_cpm",
        "layer": "GENERAL",
        "service": "prom-shop",
    }
    assert series["values"] == [[at(0), "7"], [at(1), "4"], [at(3), "1"]]
    exemplars = prom.http.post("/prometheus/api/v1/query_exemplars", data=form).json()
    assert exemplars == {"status": "success", "data": []}


def test_a_limit_of_thousands_of_digits_bounds_nothing(prom):
    match = f"instance_traffic{{{SHOP},limit='{'9' * 5000}'}}"
    span = {"start": at(0), "end": at(5)}
    assert len(asked(prom, "series", **span, **{"match[]": match})) == 2
    match = f"instance_traffic{{{SHOP},limit='1'}}"
    assert len(asked(prom, "series", **span, **{"match[]": match})) == 1


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("{}", "a selector needs the name of a metric"),
        (f"{{{SHOP}}}", "a selector needs the name of a metric, or __name__="),
        ("{__name__=~'service_.*'}", "a metric is named once, by its name or by __name__="),
        ("service_cpm{__name__='service_sla'}", "a metric is named once"),
        ("{__name__='service_cpm' layer='GENERAL'}", "',' is expected here"),
        ("{", "the name of a label is expected here"),
        ("service_cpm", "line 1, column 1: service_cpm needs the labels layer, service"),
        ("service_cpm{", "the name of a label is expected here"),
        (f"nobody_knows{{{SHOP}}}", "does not exist"),
        (f"service_cpm{{{SHOP},service=~'a'}}", "is matched by = alone"),
        ("service_cpm{service='a',layer='NONE'}", "there is no layer 'NONE'"),
        (f"rate(service_cpm{{{SHOP}}}[5m])", "there is no function 'rate'"),
        (f"service_cpm{{{SHOP}}}[5y]", "is no duration"),
        ("1 > 2", "numbers are compared with '> bool'"),
        ("sum(1)", "takes series, not a number"),
        ("2 ^ 3", "'^' has no meaning here"),
        ("+".join("1" * 33), "more than 32 parts"),
        ("(" * 33, "nests more than 32 levels deep"),
        ("", "query is missing"),
    ],
)
def test_what_is_not_supported_is_refused_where_it_stands(prom, query, error):
    assert error in refused(prom, "query", query=query)


@pytest.mark.parametrize(
    ("path", "parameters", "error"),
    [
        ("query", {"query": "1", "time": "soon"}, "write seconds since 1970"),
        ("query", {"query": "1", "time": "nan"}, "is no time"),
        ("query_range", {"query": "1", "start": 1, "end": 0}, "start is after end"),
        ("query_range", {"query": "1", "start": 0, "end": 9e9}, "more than 500 days apart"),
        ("query_range", {"query": "1"}, "start is missing"),
        ("series", {}, "match[] is missing"),
        ("series", {"match[]": "service_traffic"}, "needs the labels layer"),
        ("series", {"match[]": "service_traffic{layer='GENERAL',x='y'}"}, "has no x"),
        (
            "series",
            {"match[]": "service_traffic{layer='GENERAL',service=~'('}"},
            "is no regular expression",
        ),
        ("series", {"match[]": "1 + 1"}, "a selector is expected"),
        ("labels", {"limit": "many"}, "write a whole number"),
    ],
)
def test_parameters_that_cannot_be_read_are_refused(prom, path, parameters, error):
    assert error in refused(prom, path, **parameters)
