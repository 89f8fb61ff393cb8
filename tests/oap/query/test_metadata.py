"""The operations that say who is there, each through the HTTP door."""

from __future__ import annotations

import re
from typing import Any

from graphql import get_introspection_query

MORNING = {"start": "2026-11-15 0800", "end": "2026-11-15 0830", "step": "MINUTE"}

LIST_INSTANCES = """
query queryInstances($serviceId: ID!, $duration: Duration!) {
  pods: listInstances(duration: $duration, serviceId: $serviceId) {
    id, value: name, label: name, language, instanceUUID, attributes { name, value, },
  }
}"""

FIND_ENDPOINT = """
query queryEndpoints($serviceId: ID!, $keyword: String, $limit: Int!, $duration: Duration) {
  pods: findEndpoint(
    serviceId: $serviceId, keyword: $keyword, limit: $limit, duration: $duration
  ) { id value: name label: name }
}"""


def names(found: list[dict[str, Any]]) -> list[str]:
    return [entry["name"] for entry in found]


def test_version_begins_with_the_protocol_version_that_swctl_parses(oap):
    version = oap.ask("query version { version }")["version"]
    major, minor = map(int, re.match(r"(\d+)\.(\d+)", version).groups())
    assert (major, minor) >= (10, 2)


def test_health_is_zero_when_all_parts_are_well_and_names_those_that_are_not(oap):
    query = "query { result: checkHealth { score details } }"
    assert oap.ask(query)["result"] == {"score": 0, "details": ""}
    oap.health.set("storage", False, "disk full")
    assert oap.ask(query)["result"] == {"score": 1, "details": "storage: disk full"}


def test_time_info_gives_the_servers_offset_and_clock(oap):
    assert oap.ask("query queryOAPTimeInfo { getTimeInfo { timezone currentTimestamp } }") == {
        "getTimeInfo": {"timezone": "+0800", "currentTimestamp": 1794701862000}
    }


def test_layers_are_all_but_undefined(oap):
    layers = oap.ask("{ listLayers }")["listLayers"]
    assert "GENERAL" in layers and "VIRTUAL_DATABASE" in layers
    assert "UNDEFINED" not in layers


def test_services_of_a_layer_have_the_fields_the_ui_selects_under_its_aliases(oap):
    oap.reader.add_service("shop::cart")
    oap.reader.add_service("db:5432", layers=("VIRTUAL_DATABASE",), normal=False)
    query = """
    query queryServices($layer: String!) {
      services: listServices(layer: $layer) {
        id
        value: name
        label: name
        group
        layers
        normal
        shortName
      }
    }"""
    assert oap.ask(query, layer="GENERAL")["services"] == [
        {
            "id": "c2hvcDo6Y2FydA==.1",
            "value": "shop::cart",
            "label": "shop::cart",
            "group": "shop",
            "layers": ["GENERAL"],
            "normal": True,
            "shortName": "cart",
        }
    ]


def test_services_without_a_layer_are_all_of_them(oap):
    oap.reader.add_service("a")
    oap.reader.add_service("b", layers=("MESH",))
    assert names(oap.ask("{ listServices { name } }")["listServices"]) == ["a", "b"]
    assert oap.ask('{ listServices(layer: "NOPE") { name } }')["listServices"] == []


def test_instances_alive_in_the_duration_are_listed_with_language_and_attributes(oap):
    service = oap.reader.add_service("cart")
    seen = (202611150801, 202611150810)
    oap.reader.add_instance(service, "cart-1", "python", seen, [("OS Name", "Linux")])
    oap.reader.add_instance(service, "cart-0", "java", (202611140000, 202611150759))
    oap.reader.add_instance(service, "cart-2", "java", (202611150831, 202611150900))
    assert oap.ask(LIST_INSTANCES, serviceId=service, duration=MORNING)["pods"] == [
        {
            "id": "Y2FydA==.1_Y2FydC0x",
            "value": "cart-1",
            "label": "cart-1",
            "language": "PYTHON",
            "instanceUUID": "Y2FydA==.1_Y2FydC0x",
            "attributes": [{"name": "OS Name", "value": "Linux"}],
        }
    ]


def test_an_instance_in_a_language_nobody_knows_is_unknown(oap):
    service = oap.reader.add_service("cart")
    oap.reader.add_instance(service, "cart-1", "Brainf*ck", (202611150801, 202611150810))
    pods = oap.ask(LIST_INSTANCES, serviceId=service, duration=MORNING)["pods"]
    assert [pod["language"] for pod in pods] == ["UNKNOWN"]


def test_instances_may_be_asked_by_the_second_the_hour_and_the_day(oap):
    service = oap.reader.add_service("cart")
    oap.reader.add_instance(service, "cart-1", "go", (202611150801, 202611150810))
    for duration in (
        {"start": "2026-11-15 080959", "end": "2026-11-15 083000", "step": "SECOND"},
        {"start": "2026-11-15 08", "end": "2026-11-15 08", "step": "HOUR"},
        {"start": "2026-11-15", "end": "2026-11-15", "step": "DAY", "coldStage": False},
    ):
        pods = oap.ask(LIST_INSTANCES, serviceId=service, duration=duration)["pods"]
        assert [pod["value"] for pod in pods] == ["cart-1"], duration


def test_endpoints_are_found_by_keyword_up_to_the_limit(oap):
    service = oap.reader.add_service("cart")
    for path in ("GET:/cart", "POST:/cart", "GET:/items"):
        oap.reader.add_endpoint(service, path)

    def found(**variables: Any) -> list[str]:
        pods = oap.ask(FIND_ENDPOINT, serviceId=service, **variables)["pods"]
        return [pod["value"] for pod in pods]

    assert found(keyword="cart", limit=20, duration=MORNING) == ["GET:/cart", "POST:/cart"]
    assert found(keyword="", limit=2) == ["GET:/cart", "POST:/cart"]
    assert found(keyword=None, limit=20, duration=None) == ["GET:/cart", "POST:/cart", "GET:/items"]
    assert found(limit=0) == []
    assert found(limit=-5) == []


def test_endpoints_that_were_called_within_the_duration_are_found(oap):
    service = oap.reader.add_service("cart")
    for path, seen in (
        ("/before", (202611140000, 202611150759)),
        ("/until", (202611140000, 202611150800)),
        ("/within", (202611150810, 202611150811)),
        ("/around", (202611140000, 202611160000)),
        ("/from", (202611150830, 202611160000)),
        ("/after", (202611150831, 202611160000)),
    ):
        oap.reader.add_endpoint(service, path, seen)

    def found(duration: dict[str, str] | None) -> list[str]:
        pods = oap.ask(FIND_ENDPOINT, serviceId=service, limit=20, duration=duration)["pods"]
        return [pod["value"] for pod in pods]

    assert found(MORNING) == ["/until", "/within", "/around", "/from"]
    assert len(found(None)) == 6


def test_an_id_that_is_none_finds_nothing(oap):
    assert oap.ask(LIST_INSTANCES, serviceId="no id at all", duration=MORNING)["pods"] == []
    assert oap.ask(FIND_ENDPOINT, serviceId="'; DROP TABLE x; --", limit=9)["pods"] == []


def test_a_standard_introspection_query_is_within_the_limits(oap):
    types = oap.ask(get_introspection_query())["__schema"]["types"]
    assert {"Service", "ExpressionResult", "Duration"} <= set(names(types))
