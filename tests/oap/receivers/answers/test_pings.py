"""Signs of life of v2 instances."""

from __future__ import annotations

from oap.receivers.answers.agent import NOW_MS, Agent
from skyfarer.oap.core.inventory import InventoryScope
from skyfarer.wire.messages import v2_register

PING = "/ServiceInstancePing/doPing"


def ping(number: int, at_ms: int = 0) -> v2_register.ServiceInstancePingPkg:
    return v2_register.ServiceInstancePingPkg(serviceInstanceId=number, time=at_ms)


def test_a_ping_counts_for_the_instance_and_its_service() -> None:
    agent = Agent()
    till = agent.instance(agent.service("shop"), "4a1c", os_name="Linux")
    agent.clock.seconds += 60
    outcome = agent.ask(PING, ping(till, NOW_MS + 59_000))
    assert (outcome.complete, outcome.payload) == (True, b"")
    assert [(one.scope, one.heartbeat_time) for one in outcome.keep] == [
        (InventoryScope.SERVICE_INSTANCE, NOW_MS + 59_000),
        (InventoryScope.SERVICE, NOW_MS + 59_000),
    ]
    assert all(not one.properties and not one.register_time for one in outcome.keep)
    before = dict(agent.shelf.rows)
    agent.store(outcome.keep)
    assert before.keys() == agent.shelf.rows.keys()
    assert {one.heartbeat_time for one in agent.shelf.rows.values()} == {NOW_MS + 59_000}


def test_pings_in_short_order_are_one_record() -> None:
    agent = Agent()
    till = agent.instance(agent.service("shop"), "4a1c")
    assert len(agent.ask(PING, ping(till)).keep) == 2
    agent.clock.seconds += 9
    assert not agent.ask(PING, ping(till)).keep
    agent.clock.seconds += 2
    assert len(agent.ask(PING, ping(till)).keep) == 2


def test_instances_of_one_service_beat_once_for_it() -> None:
    agent = Agent()
    shop = agent.service("shop")
    tills = [agent.instance(shop, uuid) for uuid in ("4a1c", "5b2d")]
    kept = [one.scope for till in tills for one in agent.ask(PING, ping(till)).keep]
    assert kept.count(InventoryScope.SERVICE) == 1
    assert kept.count(InventoryScope.SERVICE_INSTANCE) == 2


def test_a_ping_of_tomorrow_counts_for_now() -> None:
    agent = Agent()
    till = agent.instance(agent.service("shop"), "4a1c")
    kept = agent.ask(PING, ping(till, NOW_MS + 86_400_000)).keep
    assert {one.heartbeat_time for one in kept} == {NOW_MS}


def test_an_instance_that_does_not_exist_is_told_to_register_anew() -> None:
    agent = Agent()
    serials = set()
    for _ in range(2):
        outcome = agent.ask(PING, ping(99))
        assert (outcome.keep, outcome.complete) == ((), True)
        (command,) = v2_register.Commands.FromString(outcome.payload).commands
        assert command.command == "ServiceMetadataReset"
        (serial,) = command.args
        assert serial.key == "SerialNumber"
        serials.add(serial.value)
    assert len(serials) == 2 and all(serials)
