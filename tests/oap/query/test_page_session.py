"""SkyWalking's page, from its first load to the pages of a service: request by request, in its
order and with its fields, through the HTTP door on stored data.

The documents are of our own writing; shapes are the page's: a body of query and variables alone,
aliases, commas wherever they may stand, and one request for the expressions of six widgets.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import httpx
import pytest

from golden.documents import documents
from oap.query.sessions import CART, SHOP, fill
from skyfarer.oap.core import ids

Answer = Any
WIDGETS_A_REQUEST, ENTITIES_A_REQUEST = 6, 20
OWNER = """owner { scope, serviceID, serviceName, normal, serviceInstanceID, serviceInstanceName,
  endpointID, endpointName, }"""
RESULT = f"""{{ type, results {{ metric {{ labels {{ key, value, }} }},
  values {{ name: id, value, refId: traceID, {OWNER} }} }}, error, }}"""


@dataclass
class Page:
    """A tab of the browser: what it has asked, and what it was told."""

    http: httpx.Client
    asked: list[str] = field(default_factory=list)
    zone: timezone = UTC
    now_ms: int = 0

    def send(self, query: str, **variables: Any) -> Answer:
        answer = self.http.post("/graphql", json={"query": query, "variables": variables})
        assert answer.status_code == 200
        told = answer.json()
        assert "errors" not in told, (query, told["errors"])
        self.asked += told["data"]
        return told["data"]

    def golden(self, operation: str, **variables: Any) -> Answer:
        return self.send(documents()[operation].text, **variables)[operation]

    def duration(self, step: str = "MINUTE") -> dict[str, Any]:
        """The last half hour by the server's clock, in its zone."""
        shape = {"MINUTE": "%Y-%m-%d %H%M", "SECOND": "%Y-%m-%d %H%M%S"}[step]
        end = datetime.fromtimestamp(self.now_ms / 1000, self.zone)
        start = end - timedelta(minutes=30)
        times = {"start": start.strftime(shape), "end": end.strftime(shape)}
        return {**times, "step": step, "coldStage": False}

    def charted(
        self, widgets: Sequence[Sequence[str]], entities: Sequence[dict[str, Any]]
    ) -> dict[tuple[int, str], Answer]:
        """`queryData`, six widgets or twenty entities at a time; by entity and expression."""
        found: dict[tuple[int, str], Answer] = {}
        for some in batched(list(enumerate(entities)), ENTITIES_A_REQUEST):
            for together in batched(widgets, WIDGETS_A_REQUEST):
                found |= self._charted(together, some)
        return found

    def _charted(
        self, widgets: Sequence[Sequence[str]], entities: Sequence[tuple[int, dict[str, Any]]]
    ) -> dict[tuple[int, str], Answer]:
        variables: dict[str, Any] = {"duration": self.duration()}
        heads, fields, places = ["$duration: Duration!"], list[str](), dict[str, tuple[int, str]]()
        for number, entity in entities:
            variables[f"entity{number}"] = entity
            heads.append(f"$entity{number}: Entity!")
            for widget, expressions in enumerate(widgets):
                for metric, expression in enumerate(expressions):
                    key = f"expression{number}{widget}{metric}x"
                    variables[key], places[key] = expression, (number, expression)
                    heads.append(f"${key}: String!")
                    fields.append(
                        f"{key}: execExpression(expression: ${key}, entity: $entity{number}, "
                        f"duration: $duration) {RESULT}"
                    )
        document = f"query queryData({', '.join(heads)}) {{ {', '.join(fields)} }}"
        told = self.send(document, **variables)
        return {places[key]: told[key] for key in told}


def batched(of: Sequence[Any], size: int) -> list[Sequence[Any]]:
    return [of[at : at + size] for at in range(0, len(of), size)]


@pytest.fixture(scope="module")
def page(shelf: Any, plan: Any, zone: Any) -> Iterator[Page]:
    fill(shelf, plan, zone)
    return Page(shelf.http)


WHO = {"serviceName": "page-shop", "normal": True}


def first_load(page: Page) -> tuple[dict[str, Answer], list[Answer]]:
    """Dashboards by layer, entity and name, and the services of the first page."""
    menu = page.send(documents()["getMenuItems"].text)["getMenuItems"]
    (general,) = [one for one in menu if one["title"] == "General Service"]
    assert general["activate"] is True and general["layer"] == "" and general["subItems"]
    (services,) = [one for one in general["subItems"] if one["layer"] == "GENERAL"]
    assert services["activate"] is True
    told = page.send(
        "query queryOAPTimeInfo { timeInfo: getTimeInfo { timezone currentTimestamp } }"
    )
    hours = int(told["timeInfo"]["timezone"]) / 100
    page.zone, page.now_ms = timezone(timedelta(hours=hours)), told["timeInfo"]["currentTimestamp"]
    assert page.send("query version { version }")["version"].startswith("10.")
    page.golden("getMetricsTTL")
    assert page.golden("hasQueryTracesV2Support") is False, "so it asks for segments"
    stored = [page.golden("getAllTemplates") for _ in range(2)]
    assert stored[0] == stored[1]
    page.golden("getRecordsTTL")
    listed = page.send(
        """query queryServices($layer: String!) { services: listServices(layer: $layer) {
        id, value: name, label: name, group, layers, normal, shortName, } }""",
        layer="GENERAL",
    )["services"]
    read = [json.loads(one["configuration"]) for one in stored[0]]
    return {f"{one['layer']}_{one['entity']}_{one['name']}": one for one in read}, listed


def widgets(part: Any) -> Iterator[dict[str, Any]]:
    """Those with expressions, at any depth, as they come."""
    if part.get("expressions") and part.get("type") == "Widget":
        yield part
    for child in part.get("children", ()):
        yield from widgets(child)


def test_the_page_loads_and_shows_the_services_with_their_figures(page: Page) -> None:
    page.asked.clear()
    dashboards, services = first_load(page)
    assert page.asked == [
        *("getMenuItems", "timeInfo", "version", "getMetricsTTL", "hasQueryTracesV2Support"),
        *("getAllTemplates", "getAllTemplates", "getRecordsTTL", "services"),
    ]
    assert {one["value"]: (one["id"], one["normal"], one["shortName"]) for one in services} == {
        "page-shop": (SHOP, True, "page-shop"),
        "page-cart": (CART, True, "page-cart"),
    }
    (root,) = [d for d in dashboards.values() if d["layer"] == "GENERAL" and d["isRoot"]]
    (table,) = [one for one in widgets(root) if one["graph"]["type"] == "ServiceList"]
    entities = [{"serviceName": one["value"], "normal": one["normal"]} for one in services]
    found = page.charted([table["expressions"], table["subExpressions"]], entities)
    at = [one["serviceName"] for one in entities].index("page-shop")
    assert {one["error"] for one in found.values()} == {None}
    single = found[at, "avg(service_cpm)"]
    assert (single["type"], single["results"][0]["values"][0]["value"]) == ("SINGLE_VALUE", "4")
    series = found[at, "service_cpm"]["results"][0]["values"]
    assert len(series) == 31, "the page draws by position: a value a bucket"
    assert [one["value"] for one in series if one["value"] is not None] == ["6", "2"]
    assert int(series[-1]["name"]) <= page.now_ms


def test_the_page_of_a_service_is_drawn_widget_by_widget(page: Page) -> None:
    dashboards, _ = first_load(page)
    golden = page.golden("getService", serviceId=SHOP)
    assert golden["id"] == SHOP
    whole = dashboards["GENERAL_Service_General-Service"]
    drawn = [one for one in widgets(whole) if not one["graph"]["type"].endswith("List")]
    tops = [one for one in widgets(whole) if one["graph"]["type"] == "TopList"]
    found = page.charted([one["expressions"] for one in (*drawn, *tops)], [WHO])
    assert {one["error"] for one in found.values()} == {None}
    assert "UNKNOWN" not in {one["type"] for one in found.values()}
    for widget in tops:
        (listed,) = [found[0, one] for one in widget["expressions"]]
        assert listed["results"][0]["values"] is not None, "the page reads results[0].values"
    (busiest,) = found[0, "top_n(service_instance_cpm,10,des)"]["results"]
    assert [(one["owner"]["serviceInstanceName"], one["value"]) for one in busiest["values"]] == [
        ("shop-1", "6"),
        ("shop-2", "2"),
    ]
    ranks = next(one for (_, text), one in found.items() if "service_percentile" in text)
    labels = [one["metric"]["labels"] for one in ranks["results"]]
    assert [{"key": "percentile", "value": "50"}] in labels and len(labels) == 5
    nothing = found[0, "top_n(top_n_service_database_statement,20,des)"]
    assert (nothing["type"], nothing["results"][0]["values"]) == ("RECORD_LIST", [])


def test_instances_and_endpoints_are_listed_with_their_figures(page: Page) -> None:
    dashboards, _ = first_load(page)
    whole = dashboards["GENERAL_Service_General-Service"]
    tables = {one["graph"]["type"]: one for one in widgets(whole)}
    listed = page.send(
        """query queryInstances($serviceId: ID!, $duration: Duration!) {
        pods: listInstances(duration: $duration, serviceId: $serviceId) { id, value: name,
        label: name, language, instanceUUID, attributes { name, value, } } }""",
        serviceId=SHOP,
        duration=page.duration(),
    )["pods"]
    assert sorted(one["value"] for one in listed) == ["shop-1", "shop-2"]
    table = tables["InstanceList"]
    entities = [WHO | {"serviceInstanceName": one["value"]} for one in listed]
    found = page.charted([table["expressions"], table["subExpressions"]], entities)
    loads = {
        entities[at]["serviceInstanceName"]: one["results"][0]["values"][0]["value"]
        for (at, text), one in found.items()
        if text == "avg(service_instance_cpm)"
    }
    assert loads == {"shop-1": "6", "shop-2": "2"}
    listed = page.send(
        """query queryEndpoints($serviceId: ID!, $keyword: String!, $limit: Int!,
        $duration: Duration) { pods: findEndpoint(serviceId: $serviceId, keyword: $keyword,
        limit: $limit, duration: $duration) { id, value: name, label: name, } }""",
        serviceId=SHOP,
        keyword="",
        limit=20,
        duration=page.duration(),
    )["pods"]
    assert [one["label"] for one in listed] == ["/pay"]
    table = tables["EndpointList"]
    found = page.charted([table["expressions"]], [WHO | {"endpointName": "/pay"}])
    assert found[0, "avg(endpoint_cpm)"]["results"][0]["values"][0]["value"] == "8"


def test_the_map_is_asked_for_again_with_its_neighbours_and_drawn_with_figures(page: Page) -> None:
    first_load(page)
    asked = {"serviceIds": [SHOP], "duration": page.duration()}
    around = page.golden("getServicesTopology", **asked)
    (call,) = around["calls"]
    assert (call["source"], call["target"]) == (SHOP, CART)
    assert sorted(call["detectPoints"]) == ["CLIENT", "SERVER"]
    neighbours = [one["id"] for one in around["nodes"]]
    again = page.golden("getServicesTopology", **asked | {"serviceIds": neighbours})
    assert {one["id"] for one in again["nodes"]} == {SHOP, CART}
    nodes = [{"serviceName": one["name"], "normal": one["isReal"]} for one in again["nodes"]]
    found = page.charted([["avg(service_cpm)", "avg(service_sla)/100"]], nodes)
    assert {one["error"] for one in found.values()} == {None}
    link = WHO | {"destServiceName": "page-cart", "destNormal": True}
    found = page.charted([["avg(service_relation_client_cpm)"]], [link])
    value = found[0, "avg(service_relation_client_cpm)"]["results"][0]["values"][0]["value"]
    assert value == "4"


def test_a_link_leads_to_the_map_of_instances_and_an_endpoint_to_those_it_calls(page: Page) -> None:
    """The page names the first service of a link as the server; endpoints are asked for by alias,
    their ids written into the document."""
    first_load(page)
    ends = {"clientServiceId": CART, "serverServiceId": SHOP}
    found = page.golden("getServiceInstanceTopology", **ends, duration=page.duration())
    names = {one["id"]: (one["serviceName"], one["name"]) for one in found["nodes"]}
    assert [(names[one["source"]], names[one["target"]]) for one in found["calls"]] == [
        (("page-shop", "shop-1"), ("page-cart", "cart-1"))
    ]
    endpoints = [ids.endpoint_id(SHOP, "/pay"), ids.endpoint_id(CART, "/add")]
    fields = ", ".join(
        f"""endpointTopology{number}: getEndpointDependencies(endpointId: "{one}",
        duration: $duration) {{ nodes {{ id, name, serviceId, serviceName, type, isReal, }},
        calls {{ id, source, target, detectPoints, }} }}"""
        for number, one in enumerate(endpoints)
    )
    told = page.send(
        f"query queryData($duration: Duration!) {{ {fields} }}", duration=page.duration()
    )
    for one in told.values():
        (call,) = one["calls"]
        assert (call["source"], call["target"], call["detectPoints"]) == (*endpoints, ["SERVER"])
        assert {node["name"] for node in one["nodes"]} == {"/pay", "/add"}


def test_traces_and_logs_are_searched_with_what_the_page_leaves_unset(page: Page) -> None:
    first_load(page)
    second = page.duration("SECOND")
    assert "http.method" in page.golden("queryTraceTagAutocompleteKeys", duration=second)
    unset = {"minTraceDuration": None, "maxTraceDuration": None, "endpointId": None}
    condition = {
        "serviceId": SHOP,
        "traceState": "ALL",
        "queryOrder": "BY_START_TIME",
        "queryDuration": second,
        "paging": {"pageNum": 1, "pageSize": 20},
        "tags": [],
    }
    listed = page.golden("queryBasicTraces", condition=condition | unset)["traces"]
    assert [one["traceIds"] for one in listed] == [["page-t"]]
    whole = page.golden("queryTraces", condition=condition | unset)["traces"]
    (span,) = page.golden("queryTrace", traceId="page-t")["spans"]
    assert (span["endpointName"], span["isError"], span["refs"]) == ("/pay", True, [])
    assert [one["spanId"] for one in whole[0]["spans"]] == [span["spanId"]]
    assert page.golden("supportQueryLogsByKeywords") is True
    asked = {
        "serviceId": SHOP,
        "queryDuration": second,
        "paging": {"pageNum": 1, "pageSize": 21},
        "keywordsOfContent": [],
        "excludingKeywordsOfContent": [],
        "relatedTrace": None,
    }
    (said,) = page.golden("queryLogs", condition=asked)["logs"]
    assert (said["content"], said["traceId"]) == ("no money", "page-t")
    of_span = asked | {"relatedTrace": {"traceId": "page-t", "segmentId": "page-s", "spanId": 0}}
    assert len(page.golden("queryLogs", condition=of_span)["logs"]) == 1
