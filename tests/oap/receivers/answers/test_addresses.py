"""Network addresses of v2 agents, and whose they are."""

from __future__ import annotations

import pytest

from oap.receivers.answers.agent import NOW_MS, Agent, pairs
from skyfarer.oap.core.inventory import Inventory, InventoryScope
from skyfarer.oap.receivers.answers.naming import NameLengths
from skyfarer.wire.messages import v2_register

ADDRESSES = "/Register/doNetworkAddressRegister"
MAPPINGS = "/Register/doServiceAndNetworkAddressMappingRegister"


def mapping(
    service_id: int = 0, instance_id: int = 0, address: str = "", address_id: int = 0
) -> v2_register.ServiceAndNetworkAddressMappings:
    one = v2_register.ServiceAndNetworkAddressMapping(
        serviceId=service_id,
        serviceInstanceId=instance_id,
        networkAddress=address,
        networkAddressId=address_id,
    )
    return v2_register.ServiceAndNetworkAddressMappings(mappings=[one])


def test_an_address_is_answered_when_it_its_service_and_its_instance_have_ids() -> None:
    agent, request = Agent(), v2_register.NetAddresses(addresses=["db:3306"])
    steps: list[tuple[InventoryScope, str, bool, int, int]] = []
    for _ in range(3):
        outcome = agent.ask(ADDRESSES, request)
        assert (outcome.complete, outcome.payload) == (False, b"")
        (one,) = outcome.keep
        steps.append((one.scope, one.name, one.is_address, one.address_id, one.service_id))
        assert not agent.ask(ADDRESSES, request).keep
        agent.store(outcome.keep)
    assert steps == [
        (InventoryScope.NETWORK_ADDRESS, "db:3306", False, 0, 0),
        (InventoryScope.SERVICE, "db:3306", True, 2, 0),
        (InventoryScope.SERVICE_INSTANCE, "db:3306", True, 2, 2),
    ]
    last = agent.ask(ADDRESSES, request)
    answer = v2_register.NetAddressMapping.FromString(last.payload)
    assert (last.keep, last.complete, pairs(answer.addressIds)) == ((), True, {"db:3306": 2})


def test_a_service_with_the_name_of_an_address_is_another_one() -> None:
    agent = Agent()
    assert agent.service("db:3306") == 2
    agent.address("db:3306")
    numbers = {one.sequence for (scope, _), one in agent.shelf.rows.items() if scope == 14}
    assert numbers == {2, 3}


def test_a_long_address_is_cut_and_answered_as_it_was_written() -> None:
    agent = Agent(NameLengths(service=4))
    assert agent.address("kafka-1:9092;kafka-2:9092") == agent.address("kafk") == 2


@pytest.mark.parametrize("by_instance", [False, True])
@pytest.mark.parametrize("by_name", [False, True])
def test_an_address_is_mapped_to_the_service_that_has_it(by_instance: bool, by_name: bool) -> None:
    agent = Agent()
    agent.service("other")
    shop, address = agent.service("shop"), agent.address("shop:80")
    till = agent.instance(shop, "4a1c")
    request = mapping(
        service_id=0 if by_instance else shop,
        instance_id=till if by_instance else 0,
        address="shop:80" if by_name else "",
        address_id=0 if by_name else address,
    )
    outcome = agent.ask(MAPPINGS, request)
    assert (outcome.complete, outcome.payload) == (True, b"")
    (kept,) = outcome.keep
    assert (kept.mapping_service_id, kept.mapping_time) == (shop, NOW_MS)
    assert not agent.ask(MAPPINGS, request).keep
    agent.store(outcome.keep)
    assert stand_in(agent, address).mapping_service_id == shop
    agent.clock.seconds += 3600
    assert not agent.ask(MAPPINGS, request).keep


def test_a_mapping_leaves_all_else_of_the_addresss_service_as_it_is() -> None:
    agent = Agent()
    shop, address = agent.service("shop"), agent.address("shop:80")
    before = stand_in(agent, address)
    agent.store(agent.ask(MAPPINGS, mapping(shop, address_id=address)).keep)
    after = stand_in(agent, address)
    assert after != before
    assert (after.heartbeat_time, after.register_time) == (NOW_MS, NOW_MS)


@pytest.mark.parametrize(
    "request_of_strangers",
    [
        mapping(service_id=99, address_id=2),
        mapping(instance_id=99, address_id=2),
        mapping(service_id=2, address_id=99),
        mapping(service_id=2, address="nowhere:1"),
        mapping(address_id=2),
        mapping(service_id=2),
    ],
)
def test_a_mapping_of_what_does_not_exist_is_left_out(
    request_of_strangers: v2_register.ServiceAndNetworkAddressMappings,
) -> None:
    agent = Agent()
    assert (agent.service("shop"), agent.address("shop:80")) == (2, 2)
    outcome = agent.ask(MAPPINGS, request_of_strangers)
    assert (outcome.keep, outcome.complete, outcome.payload) == ((), True, b"")


def stand_in(agent: Agent, address_id: int) -> Inventory:
    return agent.shelf.rows[InventoryScope.SERVICE, f"1_{address_id}"]
