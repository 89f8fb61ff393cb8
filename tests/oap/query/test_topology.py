"""Maps of services, through the HTTP door from a real storage, which the tests fill with calls."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.metrics_contract import address, called
from contracts.storage_contract import batch, deltas_of
from skyfarer.oap.core import ids
from skyfarer.oap.core.entities import ADDRESS_ALIAS, SERVICE_META
from skyfarer.oap.core.layers import Layer
from skyfarer.oap.query import limits

# The fields that swctl and SkyWalking's page select.
FIELDS = """{
  nodes { id name type isReal layers }
  calls { id source sourceComponents target targetComponents detectPoints }
}"""
GLOBAL = f"""query ($duration: Duration!, $layer: String) {{
  result: getGlobalTopology(duration: $duration, layer: $layer) {FIELDS}
}}"""
OF_SERVICE = f"""query ($serviceId: ID!, $duration: Duration!) {{
  result: getServiceTopology(serviceId: $serviceId, duration: $duration) {FIELDS}
}}"""
OF_SERVICES = f"""query queryTopology($serviceIds: [ID!]!, $duration: Duration!) {{
  result: getServicesTopology(duration: $duration, serviceIds: $serviceIds) {FIELDS}
}}"""
OF_INSTANCES = """query ($clientServiceId: ID!, $serverServiceId: ID!, $duration: Duration!) {
  result: getServiceInstanceTopology(
    clientServiceId: $clientServiceId, serverServiceId: $serverServiceId, duration: $duration
  ) {
    nodes { id name type isReal serviceName serviceId }
    calls { id source detectPoints target sourceComponents targetComponents }
  }
}"""
OF_ENDPOINT = """query ($duration: Duration!, $id: ID!) {
  result: getEndpointDependencies(endpointId: $id, duration: $duration) {
    nodes { id name serviceId serviceName type isReal }
    calls { id source target detectPoints sourceComponents targetComponents }
  }
}"""
MORNING = {"start": "2026-11-15 0800", "end": "2026-11-15 0830", "step": "MINUTE"}
TOMCAT, HTTP_CLIENT, MYSQL_CONNECTOR, SPRING_MVC, KAFKA_CONSUMER = 1, 2, 33, 14, 41
TCP, JEDIS = 110, 30
SERVER, CLIENT = "SERVER", "CLIENT"


@pytest.fixture
def minute(eight) -> int:
    return eight // 60_000


@pytest.fixture
def put(shelf, minute):
    """Puts rows of one source into storage; what they leave out is nobody's."""

    def apply(source: str, *rows: dict[str, Any]) -> None:
        at = shelf.storage.applied("queue-a")
        filled = [called(minute) | row for row in rows]
        shelf.storage.apply(batch(at, at + 1, metrics={source: deltas_of(filled, {})}))

    return apply


def call(source: str, target: str, component: int, seen: str, **other: Any) -> dict[str, Any]:
    """Between two services, which are real unless `other` has a layer of theirs."""
    ends = {"from_service": source, "service": target}
    return {**ends, "component": component, "detect_point": seen, **other}


def ask(shelf, query: str, duration: dict[str, Any] = MORNING, **variables: Any) -> dict[str, Any]:
    result = shelf.ask(query, duration=duration, **variables)["result"]
    assert isinstance(result, dict)
    return result


def around(shelf, *names: str, normal: bool = True) -> dict[str, Any]:
    return ask(shelf, OF_SERVICES, serviceIds=[ids.service_id(name, normal) for name in names])


def types(found: dict[str, Any]) -> dict[str, str | None]:
    return {node["name"]: node["type"] for node in found["nodes"]}


def test_a_call_seen_at_both_ends_is_one_with_the_components_of_each(shelf, put, fresh):
    front, back = f"{fresh}-front", f"{fresh}-back"
    put(
        "ServiceRelation",
        call(front, back, HTTP_CLIENT, CLIENT),
        call(front, back, TOMCAT, SERVER),
    )
    put("Service", {"service": back, "layer": Layer.GENERAL})
    source, target = ids.service_id(front), ids.service_id(back)
    expected = {
        "nodes": [
            {
                "id": target,
                "name": back,
                "type": "Tomcat",
                "isReal": True,
                "layers": ["GENERAL"],
            },
            {"id": source, "name": front, "type": None, "isReal": True, "layers": ["UNDEFINED"]},
        ],
        "calls": [
            {
                "id": f"{source}-{target}",
                "source": source,
                "sourceComponents": ["HttpClient"],
                "target": target,
                "targetComponents": ["Tomcat"],
                "detectPoints": ["CLIENT", "SERVER"],
            }
        ],
    }
    assert around(shelf, back) == ask(shelf, OF_SERVICE, serviceId=source) == expected


def test_every_component_of_a_call_is_told_once(shelf, put, fresh):
    seen = [call(fresh, f"{fresh}-b", component, SERVER) for component in (SPRING_MVC, TOMCAT)]
    put("ServiceRelation", *seen, *seen, call(fresh, f"{fresh}-b", HTTP_CLIENT, CLIENT))
    (only,) = around(shelf, fresh)["calls"]
    assert only["targetComponents"] == ["Tomcat", "SpringMVC"]
    assert only["sourceComponents"] == ["HttpClient"]


@pytest.mark.parametrize(
    ("component", "layer", "kind"),
    [
        (MYSQL_CONNECTOR, Layer.VIRTUAL_DATABASE, "Mysql"),
        (JEDIS, Layer.VIRTUAL_CACHE, "Redis"),
        (TOMCAT, Layer.UNDEFINED, "Tomcat"),
        (0, Layer.VIRTUAL_MQ, "Unknown"),
    ],
)
def test_what_is_conjectured_has_the_type_its_client_is_used_with(
    shelf, put, fresh, component, layer, kind
):
    put("ServiceRelation", call(fresh, f"{fresh}:1", component, CLIENT, layer=layer))
    put(SERVICE_META, {"service": f"{fresh}:1", "layer": layer})
    conjectured, caller = around(shelf, fresh)["nodes"]
    assert (conjectured["type"], conjectured["isReal"]) == (kind, False)
    assert conjectured["id"] == ids.service_id(f"{fresh}:1", False)
    assert conjectured["layers"] == [layer.name]
    assert caller["isReal"] is True


def test_an_address_that_nobody_knows_is_real_and_without_a_type(shelf, put, fresh):
    put("ServiceRelation", call(fresh, f"{fresh}:80", HTTP_CLIENT, CLIENT))
    unknown = around(shelf, fresh)["nodes"][0]
    assert unknown == {
        "id": ids.service_id(f"{fresh}:80"),
        "name": f"{fresh}:80",
        "type": None,
        "isReal": True,
        "layers": ["UNDEFINED"],
    }


def test_an_address_that_turned_out_to_be_a_service_is_that_service(shelf, put, minute, fresh):
    back = f"{fresh}-back"
    for layer in (Layer.GENERAL, Layer.UNDEFINED):
        put("ServiceRelation", call(fresh, f"{fresh}:80", HTTP_CLIENT, CLIENT, layer=layer))
    put("ServiceRelation", call(fresh, back, TOMCAT, SERVER))
    assert len(around(shelf, fresh)["nodes"]) == 4
    put(ADDRESS_ALIAS, address(minute, f"{fresh}:80", back, "back-1"))
    found = around(shelf, fresh)
    assert types(found) == {back: "Tomcat", fresh: None}
    (only,) = found["calls"]
    assert only["id"] == ids.relation_id(ids.service_id(fresh), ids.service_id(back))
    assert only["detectPoints"] == ["CLIENT", "SERVER"]
    assert only["sourceComponents"] == ["HttpClient"]


def test_the_user_is_of_a_type_of_its_own(shelf, put, fresh):
    put("ServiceRelation", call("User", fresh, TOMCAT, SERVER, from_layer=Layer.UNDEFINED))
    user, served = around(shelf, fresh)["nodes"]
    assert user == {
        "id": "VXNlcg==.0",
        "name": "User",
        "type": "USER",
        "isReal": False,
        "layers": ["UNDEFINED"],
    }
    assert served["type"] == "Tomcat"


def test_a_conjectured_caller_has_the_type_that_the_server_was_reached_with(shelf, put, fresh):
    queue = f"{fresh}:9092"
    row = call(queue, fresh, KAFKA_CONSUMER, SERVER, from_layer=Layer.VIRTUAL_MQ)
    put("ServiceRelation", row)
    assert types(around(shelf, fresh)) == {queue: "Kafka", fresh: "kafka-consumer"}


def test_a_service_has_the_type_of_the_highest_priority_and_of_equals_the_first(shelf, put, fresh):
    a, b, c = f"{fresh}-a", f"{fresh}-b", f"{fresh}-c"
    put(
        "ServiceRelation",
        *(call(fresh, a, component, SERVER) for component in (TCP, TOMCAT, SPRING_MVC)),
        *(call(fresh, b, component, SERVER) for component in (TOMCAT, TCP, HTTP_CLIENT)),
        *(call(fresh, c, component, SERVER) for component in (0, TCP)),
    )
    assert types(around(shelf, fresh)) == {fresh: None, a: "SpringMVC", b: "Tomcat", c: "tcp"}


def test_what_a_server_says_of_itself_is_worth_more_than_what_its_client_guessed(shelf, put, fresh):
    cache = f"{fresh}:6379"
    for component, seen in ((JEDIS, CLIENT), (TCP, SERVER)):
        row = call(fresh, cache, component, seen, layer=Layer.VIRTUAL_CACHE)
        put("ServiceRelation", row)
    assert types(around(shelf, fresh))[cache] == "tcp"


def test_a_caller_that_was_not_asked_for_has_its_type_nevertheless(shelf, put, fresh):
    put(
        "ServiceRelation",
        call("User", f"{fresh}-a", TOMCAT, SERVER, from_layer=Layer.UNDEFINED),
        call(f"{fresh}-a", f"{fresh}-b", HTTP_CLIENT, CLIENT),
    )
    found = around(shelf, f"{fresh}-b")
    assert types(found) == {f"{fresh}-b": None, f"{fresh}-a": "Tomcat"}
    assert len(found["calls"]) == 1


def test_a_map_may_be_of_a_layer_or_of_everything(shelf, put, fresh):
    mesh = f"{fresh}-mesh"
    put(
        "ServiceRelation",
        call(mesh, f"{fresh}-b", HTTP_CLIENT, CLIENT, from_layer=Layer.MESH),
        call(f"{fresh}-c", f"{fresh}-d", HTTP_CLIENT, CLIENT),
    )
    put("Service", {"service": mesh, "layer": Layer.MESH})

    def mine(**variables: Any) -> set[str]:
        names = types(ask(shelf, GLOBAL, **variables))
        return {name.removeprefix(fresh) for name in names if name.startswith(f"{fresh}-")}

    assert mine(layer="MESH") == {"-mesh", "-b"}
    assert mine() == mine(layer="") == {"-mesh", "-b", "-c", "-d"}
    assert ask(shelf, GLOBAL, layer="AIRFLOW") == {"nodes": [], "calls": []}


def test_a_map_has_the_calls_of_its_duration_by_every_step(shelf, put, fresh):
    put("ServiceRelation", call(fresh, f"{fresh}-b", TOMCAT, SERVER))

    def calls(step: str, start: str, end: str) -> int:
        span = {"step": step, "start": f"2026-11-15{start}", "end": f"2026-11-15{end}"}
        of = ids.service_id(fresh)
        return len(ask(shelf, OF_SERVICE, span, serviceId=of)["calls"])

    assert calls("SECOND", " 080000", " 080059") == calls("MINUTE", " 0800", " 0800") == 1
    assert calls("HOUR", " 08", " 08") == calls("DAY", "", "") == 1
    assert calls("MINUTE", " 0801", " 0900") == calls("HOUR", " 09", " 10") == 0


def test_services_may_be_asked_for_by_name_and_layer(shelf, put, fresh):
    base = f"{fresh}:3306"
    layer = Layer.VIRTUAL_DATABASE
    put("ServiceRelation", call(fresh, base, MYSQL_CONNECTOR, CLIENT, layer=layer))
    query = """query ($one: ServiceCondition!, $many: [ServiceCondition!]!, $duration: Duration!) {
      one: getServiceTopologyByName(service: $one, duration: $duration) { nodes { name } }
      many: getServicesTopologyByNames(services: $many, duration: $duration) { nodes { name } }
    }"""
    one, many = {"serviceName": fresh}, [{"serviceName": base, "layer": layer.name}]
    found = shelf.ask(query, one=one, many=many, duration=MORNING)
    nodes = {"nodes": [{"name": base}, {"name": fresh}]}
    assert found == {"one": nodes, "many": nodes}
    nameless = [{"serviceName": base}]
    assert shelf.ask(query, one=one, many=nameless, duration=MORNING)["many"] == {"nodes": []}


def test_instances_of_two_services_are_shown_with_the_calls_of_either_direction(shelf, put, fresh):
    front, back = f"{fresh}-f", f"{fresh}-b"
    there = call(front, back, HTTP_CLIENT, CLIENT, from_instance="f1", instance="b1")
    returned = call(back, front, TOMCAT, SERVER, from_instance="b1", instance="f2")
    elsewhere = call(front, f"{fresh}-x", TOMCAT, SERVER, from_instance="f1", instance="x1")
    put("ServiceInstanceRelation", there, there | {"detect_point": SERVER}, returned, elsewhere)
    f, b = ids.service_id(front), ids.service_id(back)
    found = ask(shelf, OF_INSTANCES, clientServiceId=f, serverServiceId=b)
    assert found == ask(shelf, OF_INSTANCES, clientServiceId=b, serverServiceId=f)
    f1, b1, f2 = ids.instance_id(f, "f1"), ids.instance_id(b, "b1"), ids.instance_id(f, "f2")
    assert found["nodes"][0] == {
        "id": f1,
        "name": "f1",
        "type": "",
        "isReal": True,
        "serviceName": front,
        "serviceId": f,
    }
    assert [node["id"] for node in found["nodes"]] == [f1, b1, f2]
    calls = {one["id"]: one["detectPoints"] for one in found["calls"]}
    assert calls == {f"{f1}-{b1}": ["CLIENT", "SERVER"], f"{b1}-{f2}": ["SERVER"]}
    for one in found["calls"]:
        assert one["sourceComponents"] == one["targetComponents"] == []
    assert around(shelf, front) == {"nodes": [], "calls": []}


def test_an_endpoint_is_shown_with_who_calls_it_and_whom_it_calls(shelf, put, fresh):
    a, b, c = (f"{fresh}-{letter}" for letter in "abc")
    put(
        "EndpointRelation",
        call(a, b, TOMCAT, SERVER, from_endpoint="/a_1", endpoint="/b"),
        call(b, c, TOMCAT, SERVER, from_endpoint="/b", endpoint="/c"),
        call(b, c, TOMCAT, SERVER, from_endpoint="/other", endpoint="/c"),
    )
    of_b = ids.endpoint_id(ids.service_id(b), "/b")
    found = ask(shelf, OF_ENDPOINT, id=of_b)
    of_a = ids.endpoint_id(ids.service_id(a), "/a_1")
    assert found["nodes"][0] == {
        "id": of_a,
        "name": "/a_1",
        "serviceId": ids.service_id(a),
        "serviceName": a,
        "type": "",
        "isReal": True,
    }
    of_c = ids.endpoint_id(ids.service_id(c), "/c")
    assert [node["id"] for node in found["nodes"]] == [of_a, of_b, of_c]
    first = ids.endpoint_relation_id(ids.service_id(a), "/a_1", ids.service_id(b), "/b")
    assert found["calls"][0] == {
        "id": first,
        "source": of_a,
        "target": of_b,
        "detectPoints": ["SERVER"],
        "sourceComponents": [],
        "targetComponents": [],
    }
    assert len(found["calls"]) == 2


def test_endpoints_may_be_asked_for_by_name_and_in_the_older_shape(shelf, put, fresh):
    row = call("User", fresh, TOMCAT, SERVER, from_endpoint="User", endpoint="/b")
    put("EndpointRelation", row | {"from_layer": Layer.UNDEFINED})
    query = """query ($endpoint: EndpointCondition!, $id: ID!, $duration: Duration!) {
      named: getEndpointDependenciesByName(endpoint: $endpoint, duration: $duration) {
        nodes { name isReal }
      }
      older: getEndpointTopology(endpointId: $id, duration: $duration) {
        nodes { name type isReal layers } calls { detectPoints }
      }
    }"""
    named = {"serviceName": fresh, "endpointName": "/b"}
    of = ids.endpoint_id(ids.service_id(fresh), "/b")
    found = shelf.ask(query, endpoint=named, id=of, duration=MORNING)
    assert found["named"]["nodes"] == [
        {"name": "User", "isReal": False},
        {"name": "/b", "isReal": True},
    ]
    assert found["older"] == {
        "nodes": [
            {"name": name, "type": "", "isReal": True, "layers": []} for name in ("User", "/b")
        ],
        "calls": [{"detectPoints": ["SERVER"]}],
    }


def test_there_are_no_processes(shelf):
    query = """query ($id: ID!, $named: InstanceCondition!, $duration: Duration!) {
      one: getProcessTopology(serviceInstanceId: $id, duration: $duration) {
        nodes { id name serviceId serviceName serviceInstanceId serviceInstanceName isReal }
        calls { id source target detectPoints }
      }
      other: getProcessTopologyByName(instance: $named, duration: $duration) { nodes { id } }
    }"""
    named = {"serviceName": "a", "instanceName": "b"}
    found = shelf.ask(query, id="x", named=named, duration=MORNING)
    assert found == {"one": {"nodes": [], "calls": []}, "other": {"nodes": []}}


def test_an_id_that_is_none_is_on_no_map(shelf):
    nothing = {"nodes": [], "calls": []}
    for strange in ("no id at all", "'; DROP TABLE x; --", "%", ""):
        assert ask(shelf, OF_SERVICE, serviceId=strange) == nothing
        assert ask(shelf, OF_ENDPOINT, id=strange) == nothing
        assert ask(shelf, OF_INSTANCES, clientServiceId=strange, serverServiceId="") == nothing
    assert ask(shelf, OF_SERVICES, serviceIds=[]) == nothing


def test_a_map_that_nobody_could_look_at_is_refused_with_what_to_do(shelf, put, fresh, monkeypatch):
    put(
        "ServiceRelation",
        *(call(fresh, f"{fresh}-{n}", TOMCAT, SERVER) for n in range(3)),
    )
    monkeypatch.setattr(limits, "TOPOLOGY_CALLS_MAX", 3)
    assert len(around(shelf, fresh)["calls"]) == 3
    monkeypatch.setattr(limits, "TOPOLOGY_CALLS_MAX", 2)
    (error,) = shelf.errors(OF_SERVICE, serviceId=ids.service_id(fresh), duration=MORNING)
    assert "more than 2 calls; ask for a shorter duration" in error


def test_what_is_asked_for_has_bounds(shelf):
    many = ["x"] * (limits.TOPOLOGY_SERVICES_MAX + 1)
    (error,) = shelf.errors(OF_SERVICES, serviceIds=many, duration=MORNING)
    assert error.startswith("1001 services are more than the 1000 of one map")
    ages = {"start": "1970-01-01", "end": "9998-01-01", "step": "DAY"}
    (error,) = shelf.errors(GLOBAL, duration=ages)
    assert error.endswith("days is longer than 3660; ask for a shorter duration")
    asked = " ".join(f"t{n}: getGlobalTopology(duration: $duration) {FIELDS}" for n in range(30))
    (error,) = shelf.errors(f"query ($duration: Duration!) {{ {asked} }}", duration=MORNING)
    assert "more than 6000" in error


def test_a_storage_without_calls_has_an_empty_map(lasting_oap):
    assert ask(lasting_oap, GLOBAL) == {"nodes": [], "calls": []}
