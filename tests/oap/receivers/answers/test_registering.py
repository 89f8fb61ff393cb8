"""Services, instances and endpoints of v2 agents."""

from __future__ import annotations

import json

import pytest

from oap.receivers.answers.agent import NOW_MS, Agent, pairs
from skyfarer.base.errors import PermanentError
from skyfarer.oap.core.inventory import InventoryScope
from skyfarer.oap.receivers.answers.naming import NameLengths
from skyfarer.oap.receivers.answers.registering import NAMES_MAX
from skyfarer.wire.messages import v2_register

SERVICES = "/Register/doServiceRegister"
INSTANCES = "/Register/doServiceInstanceRegister"
ENDPOINTS = "/Register/doEndpointRegister"


def services(
    *names: str, kind: v2_register.ServiceType = v2_register.normal
) -> v2_register.Services:
    return v2_register.Services(
        services=[v2_register.Service(serviceName=name, type=kind) for name in names]
    )


def endpoints(
    service_id: int, *names: str, of: v2_register.DetectPoint = v2_register.server
) -> v2_register.Endpoints:
    request = v2_register.Endpoints()
    for name in names:
        one = request.endpoints.add(serviceId=service_id, endpointName=name)
        setattr(one, "from", of)
    return request


def test_an_unknown_name_is_kept_once_and_answered_without_an_id_until_it_is_stored() -> None:
    agent = Agent()
    first = agent.ask(SERVICES, services("shop", "shop"))
    assert [(one.name, one.register_time, one.heartbeat_time) for one in first.keep] == [
        ("shop", NOW_MS, NOW_MS)
    ]
    second = agent.ask(SERVICES, services("shop"))
    assert (second.keep, second.complete, second.payload) == ((), False, b"")
    agent.store(first.keep)
    third = agent.ask(SERVICES, services("shop"))
    assert (third.keep, third.complete) == ((), True)
    answer = v2_register.ServiceRegisterMapping.FromString(third.payload)
    assert pairs(answer.services) == {"shop": 2}


def test_what_has_an_id_is_answered_beside_what_has_none() -> None:
    agent = Agent()
    agent.service("shop")
    outcome = agent.ask(SERVICES, services("shop", "cart"))
    answer = v2_register.ServiceRegisterMapping.FromString(outcome.payload)
    assert pairs(answer.services) == {"shop": 2}
    assert [one.name for one in outcome.keep] == ["cart"]
    assert not outcome.complete


def test_a_name_whose_record_was_lost_is_kept_again_after_a_while() -> None:
    agent = Agent()
    assert agent.ask(SERVICES, services("shop")).keep
    agent.clock.seconds += 9
    assert not agent.ask(SERVICES, services("shop")).keep
    agent.clock.seconds += 2
    assert agent.ask(SERVICES, services("shop")).keep


def test_names_whose_keeper_is_gone_are_kept_again_at_once() -> None:
    agent = Agent()
    agent.ask(SERVICES, services("shop"))
    agent.desk.forget()
    assert agent.ask(SERVICES, services("shop")).keep


def test_a_name_on_its_way_costs_no_read_of_storage_until_storage_changes() -> None:
    agent = Agent()
    kept = agent.ask(SERVICES, services("shop")).keep
    reads = agent.shelf.reads
    for _ in range(1000):
        agent.ask(SERVICES, services("shop"))
    assert agent.shelf.reads == reads
    agent.store(kept)
    assert agent.ask(SERVICES, services("shop")).complete


def test_an_id_that_another_node_gave_is_seen_after_a_second() -> None:
    agent = Agent()
    agent.shelf.store(*agent.ask(SERVICES, services("shop")).keep)
    assert not agent.ask(SERVICES, services("shop")).complete
    agent.clock.seconds += 1.1
    assert agent.ask(SERVICES, services("shop")).complete


@pytest.mark.parametrize(
    ("kind", "node_type"),
    [
        (v2_register.normal, 0),
        (v2_register.database, 1),
        (v2_register.mq, 4),
        (v2_register.cache, 5),
        (v2_register.browser, 6),
    ],
)
def test_the_type_of_a_service_becomes_its_node_type(
    kind: v2_register.ServiceType, node_type: int
) -> None:
    (kept,) = Agent().ask(SERVICES, services("shop", kind=kind)).keep
    assert kept.node_type == node_type


def test_a_long_name_is_cut_and_answered_as_it_was_written() -> None:
    agent = Agent(NameLengths(service=4))
    assert agent.service("shop-of-horrors") == 2
    assert agent.service("shop") == 2
    assert [one.name for one in agent.shelf.rows.values()] == ["shop"]


def test_an_empty_name_gets_no_id_and_no_record() -> None:
    outcome = Agent().ask(SERVICES, services(""))
    assert (outcome.keep, outcome.complete) == ((), False)


def test_only_so_many_names_of_one_request_are_handled_at_once() -> None:
    agent = Agent()
    names = [f"service-{number}" for number in range(NAMES_MAX + 5)]
    assert len(agent.ask(SERVICES, services(*names)).keep) == NAMES_MAX


def test_an_instance_is_named_by_service_process_and_host() -> None:
    agent = Agent()
    shop = agent.service("shop")
    number = agent.instance(
        shop, "4a1c", process_no="17", host_name="node-3", language="JAVA", os_name="Linux", odd="x"
    )
    stored = agent.shelf.rows[InventoryScope.SERVICE_INSTANCE, f"{shop}_4a1c_0_0"]
    assert (number, stored.name) == (2, "shop-pid:17@node-3")
    assert json.loads(stored.properties) == {
        "process_no": "17",
        "host_name": "node-3",
        "language": "java",
        "os_name": "Linux",
    }
    assert stored.register_time == NOW_MS - 5


def test_addresses_of_an_instance_are_one_property_with_a_list() -> None:
    agent = Agent()
    shop = agent.service("shop")
    ipv4 = [v2_register.KeyStringValuePair(key="ipv4", value=ip) for ip in ("10.0.0.1", "10.0.0.2")]
    one = v2_register.ServiceInstance(serviceId=shop, instanceUUID="4a1c", properties=ipv4)
    (kept,) = agent.ask(INSTANCES, v2_register.ServiceInstances(instances=[one])).keep
    assert json.loads(json.loads(kept.properties)["ipv4s"]) == ["10.0.0.1", "10.0.0.2"]


def test_an_instance_that_was_given_a_name_has_it() -> None:
    agent = Agent()
    shop = agent.service("shop")
    agent.instance(shop, "NAME:till-1", process_no="17")
    stored = agent.shelf.rows[InventoryScope.SERVICE_INSTANCE, f"{shop}_NAME:till-1_0_0"]
    assert stored.name == "till-1"


@pytest.mark.parametrize("told_ms", [0, -1, NOW_MS + 86_400_000])
def test_an_instance_that_tells_no_time_of_the_past_is_registered_now(told_ms: int) -> None:
    agent = Agent()
    one = v2_register.ServiceInstance(
        serviceId=agent.service("shop"), instanceUUID="4a1c", time=told_ms
    )
    (kept,) = agent.ask(INSTANCES, v2_register.ServiceInstances(instances=[one])).keep
    assert (kept.register_time, kept.heartbeat_time) == (NOW_MS, NOW_MS)


def test_an_instance_of_a_service_that_does_not_exist_gets_no_id_and_no_record() -> None:
    one = v2_register.ServiceInstance(serviceId=99, instanceUUID="4a1c")
    outcome = Agent().ask(INSTANCES, v2_register.ServiceInstances(instances=[one]))
    assert (outcome.keep, outcome.complete) == ((), False)


def test_a_served_endpoint_gets_an_id_of_its_service() -> None:
    agent = Agent()
    shop = agent.service("shop")
    answer = v2_register.EndpointMapping()
    (element,) = agent.settle(ENDPOINTS, endpoints(shop, "/buy"), answer).elements
    assert (element.serviceId, element.endpointName, element.endpointId) == (shop, "/buy", 2)
    assert getattr(element, "from") == v2_register.server


@pytest.mark.parametrize("point", [v2_register.client, v2_register.proxy])
def test_an_endpoint_that_is_not_served_is_neither_kept_nor_waited_for(
    point: v2_register.DetectPoint,
) -> None:
    agent = Agent()
    outcome = agent.ask(ENDPOINTS, endpoints(agent.service("shop"), "/buy", of=point))
    assert (outcome.keep, outcome.complete, outcome.payload) == ((), True, b"")


def test_an_endpoint_of_a_service_that_does_not_exist_is_not_kept() -> None:
    outcome = Agent().ask(ENDPOINTS, endpoints(99, "/buy"))
    assert (outcome.keep, outcome.complete) == ((), False)


@pytest.mark.parametrize("path", [SERVICES, INSTANCES, ENDPOINTS])
def test_bytes_that_are_no_request_are_refused_for_good(path: str) -> None:
    with pytest.raises(PermanentError, match=r"is no skywalking\.v2"):
        Agent().desk.handlers[path](b"\x0a\xff\xff")
