"""One service, instance or endpoint by its id or name, and what older clients ask instead."""

from __future__ import annotations

from typing import Any

import pytest

from skyfarer.oap.core import ids

MORNING = {"start": "2026-11-15 0800", "end": "2026-11-15 0830", "step": "MINUTE"}
SEEN = (202611150801, 202611150810)
SERVICE = "{ id name group shortName layers normal }"


@pytest.fixture(scope="module")
def shop(lasting_oap):
    """Two services, one that is conjectured, and one in a browser."""
    reader = lasting_oap.reader
    cart = reader.add_service("shop::cart")
    reader.add_service("mail")
    reader.add_service("db:5432", layers=("VIRTUAL_DATABASE",), normal=False)
    reader.add_service("page", layers=("BROWSER",))
    reader.add_instance(cart, "cart_1", "python", SEEN, [("OS Name", "Linux")])
    reader.add_instance(cart, "cart-2", "java", (202611140000, 202611140001))
    reader.add_endpoint(cart, "GET:/cart_items")
    reader.add_endpoint(cart, "POST:/cart", SEEN)
    return lasting_oap


def named(found: list[dict[str, Any]]) -> list[str]:
    return [one["name"] for one in found]


def test_a_service_is_had_by_its_id_with_the_fields_the_page_selects(shop):
    query = """query queryService($serviceId: String!) {
      service: getService(serviceId: $serviceId) {
        id value: name label: name group layers normal
      }
    }"""
    assert shop.ask(query, serviceId=ids.service_id("shop::cart"))["service"] == {
        "id": "c2hvcDo6Y2FydA==.1",
        "value": "shop::cart",
        "label": "shop::cart",
        "group": "shop",
        "layers": ["GENERAL"],
        "normal": True,
    }
    assert shop.ask(query, serviceId=ids.service_id("db:5432", False))["service"] is not None
    for strange in (ids.service_id("db:5432"), "no id", ""):
        assert shop.ask(query, serviceId=strange) == {"service": None}


def test_a_service_found_by_name_is_a_real_one(shop):
    query = f"query ($name: String!) {{ one: findService(serviceName: $name) {SERVICE} }}"
    assert shop.ask(query, name="mail")["one"]["id"] == ids.service_id("mail")
    assert shop.ask(query, name="db:5432") == {"one": None}


def test_an_instance_is_had_by_its_id_whenever_it_was_seen(shop):
    query = """query queryInstance($instanceId: String!) {
      instance: getInstance(instanceId: $instanceId) {
        id value: name label: name language instanceUUID attributes { name value }
      }
    }"""
    identifier = ids.instance_id(ids.service_id("shop::cart"), "cart_1")
    assert shop.ask(query, instanceId=identifier)["instance"] == {
        "id": identifier,
        "value": "cart_1",
        "label": "cart_1",
        "language": "PYTHON",
        "instanceUUID": identifier,
        "attributes": [{"name": "OS Name", "value": "Linux"}],
    }
    long_gone = ids.instance_id(ids.service_id("shop::cart"), "cart-2")
    assert shop.ask(query, instanceId=long_gone)["instance"]["value"] == "cart-2"
    for strange in (ids.service_id("shop::cart"), f"{identifier}x", "", "_"):
        assert shop.ask(query, instanceId=strange) == {"instance": None}


def test_an_endpoint_is_what_its_id_says(shop):
    query = """query queryEndpoint($endpointId: ID!) {
      endpoint: getEndpointInfo(endpointId: $endpointId) {
        id value: name label: name serviceId serviceName
      }
    }"""
    service = ids.service_id("shop::cart")
    identifier = ids.endpoint_id(service, "GET:/cart_items")
    assert shop.ask(query, endpointId=identifier)["endpoint"] == {
        "id": identifier,
        "value": "GET:/cart_items",
        "label": "GET:/cart_items",
        "serviceId": service,
        "serviceName": "shop::cart",
    }
    for strange in (service, "no id", "_", "eA==.1_%%%"):
        assert shop.ask(query, endpointId=strange) == {"endpoint": None}


def test_instances_and_endpoints_are_listed_by_the_name_of_their_service(shop):
    query = """query ($service: ServiceCondition!, $duration: Duration!) {
      instances: listInstancesByName(service: $service, duration: $duration) { name }
      all: findEndpointByName(service: $service, keyword: "cart", limit: 9) { name }
      one: findEndpointByName(service: $service, limit: 1, duration: $duration) { name }
    }"""
    found = shop.ask(query, service={"serviceName": "shop::cart"}, duration=MORNING)
    assert named(found["instances"]) == ["cart_1"]
    assert named(found["all"]) == ["GET:/cart_items", "POST:/cart"]
    assert len(found["one"]) == 1
    virtual = {"serviceName": "shop::cart", "layer": "VIRTUAL_MQ"}
    assert shop.ask(query, service=virtual, duration=MORNING)["instances"] == []


def test_older_clients_find_services_by_group_keyword_and_code(shop):
    query = """query ($duration: Duration!) {
      all: getAllServices(duration: $duration) { name }
      group: getAllServices(duration: $duration, group: "shop") { name }
      found: searchServices(duration: $duration, keyword: "a") { name }
      code: searchService(serviceCode: "mail") { id name }
      nobody: searchService(serviceCode: "nobody") { id }
    }"""
    found = shop.ask(query, duration=MORNING)
    assert named(found["all"]) == ["shop::cart", "mail", "db:5432", "page"]
    assert named(found["group"]) == ["shop::cart"]
    assert named(found["found"]) == ["shop::cart", "mail", "page"]
    assert found["code"] == {"id": ids.service_id("mail"), "name": "mail"}
    assert found["nobody"] is None


def test_older_clients_find_browsers_databases_instances_and_endpoints(shop):
    query = """query ($duration: Duration!, $id: ID!) {
      browsers: getAllBrowserServices(duration: $duration) { name }
      pages: searchBrowserServices(duration: $duration, keyword: "ag") { name }
      none: searchBrowserServices(duration: $duration, keyword: "cart") { name }
      page: searchBrowserService(serviceCode: "page") { name }
      databases: getAllDatabases(duration: $duration) { id name type }
      instances: getServiceInstances(duration: $duration, serviceId: $id) { name language }
      endpoints: searchEndpoint(keyword: "POST", serviceId: $id, limit: 10) { name }
    }"""
    assert shop.ask(query, duration=MORNING, id=ids.service_id("shop::cart")) == {
        "browsers": [{"name": "page"}],
        "pages": [{"name": "page"}],
        "none": [],
        "page": {"name": "page"},
        "databases": [{"id": ids.service_id("db:5432", False), "name": "db:5432", "type": ""}],
        "instances": [{"name": "cart_1", "language": "PYTHON"}],
        "endpoints": [{"name": "POST:/cart"}],
    }


def test_how_long_data_is_kept_is_told_and_there_is_no_cold_stage(shop):
    query = """query {
      getMetricsTTL { metadata minute hour day coldMinute coldHour coldDay }
      getRecordsTTL {
        normal trace zipkinTrace log browserErrorLog
        coldNormal coldTrace coldZipkinTrace coldLog coldBrowserErrorLog
      }
    }"""
    found = shop.ask(query)
    metrics = {"metadata": 7, "minute": 7, "hour": 7, "day": 7}
    assert found["getMetricsTTL"] == {**metrics, "coldMinute": -1, "coldHour": -1, "coldDay": -1}
    assert {key for key, days in found["getRecordsTTL"].items() if days == 3} == {
        *("normal", "trace", "zipkinTrace", "log", "browserErrorLog")
    }
    assert list(found["getRecordsTTL"].values()).count(-1) == 5


def test_there_are_no_processes_alarms_and_relations_of_layers(shop):
    query = """query ($duration: Duration!, $paging: Pagination!) {
      listProcesses(duration: $duration, instanceId: "x") { id name attributes { name } labels }
      getProcess(processId: "x") { id }
      estimateProcessScale(serviceId: "x", labels: [])
      getAlarm(
        duration: $duration, paging: $paging, tags: [{key: "level", value: "1"}], keyword: "k"
      ) {
        msgs {
          id key: id message startTime recoveryTime scope name tags { key value }
          events { uuid source { service } name } snapshot { expression metrics { name } }
        }
      }
      queryAlarmTagAutocompleteKeys(duration: $duration)
      queryAlarmTagAutocompleteValues(duration: $duration, tagKey: "level")
      getServiceHierarchy(serviceId: "x", layer: "GENERAL") {
        relations { upperService { id name layer normal } lowerService { id } }
      }
      getInstanceHierarchy(instanceId: "x", layer: "GENERAL") {
        relations { upperInstance { id serviceId } lowerInstance { id layer } }
      }
    }"""
    assert shop.ask(query, duration=MORNING, paging={"pageNum": 1, "pageSize": 21}) == {
        "listProcesses": [],
        "getProcess": None,
        "estimateProcessScale": 0,
        "getAlarm": {"msgs": []},
        "queryAlarmTagAutocompleteKeys": [],
        "queryAlarmTagAutocompleteValues": [],
        "getServiceHierarchy": {"relations": []},
        "getInstanceHierarchy": {"relations": []},
    }


def test_layers_have_levels(shop):
    levels = shop.ask("{ listLayerLevels { layer level } }")["listLayerLevels"]
    known = set(shop.ask("{ listLayers }")["listLayers"])
    assert {one["layer"] for one in levels} <= known
    assert {"layer": "GENERAL", "level": 3} in levels
    assert {"layer": "K8S_SERVICE", "level": 0} in levels
