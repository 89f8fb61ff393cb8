"""Who calls whom: the user calls the shop, the shop itself and the depot, the till a database."""

from __future__ import annotations

from typing import Any, Final

from e2e.operations.stage import (
    DATABASE,
    DEPOT,
    DEPOT_ID,
    DEPOT_INSTANCE,
    INSTANCE,
    INSTANCE_ID,
    SHOP,
    SHOP_ID,
    TILL,
    Answer,
    Check,
    Checks,
    Stage,
    endpoint_id,
)
from skyfarer.oap.core import ids

NAMED: Final = {"serviceName": SHOP}
DEPOT_NAMED: Final = {"serviceName": DEPOT}
PAGE: Final = "/stock"
DEPOT_PAGE: Final = "/depot"
DEPOT_PAGE_ID: Final = ids.endpoint_id(DEPOT_ID, DEPOT_PAGE)
_BOTH, _SERVER = ["CLIENT", "SERVER"], ["SERVER"]


def drawn(found: Answer) -> dict[tuple[str, str], list[str]]:
    """The names at the ends of each call → where it was seen. An end must be among the nodes."""
    names = {node["id"]: node["name"] for node in found["nodes"]}
    assert len(names) == len(found["nodes"])
    return {
        (names[call["source"]], names[call["target"]]): sorted(call["detectPoints"])
        for call in found["calls"]
    }


def everything(stage: Stage) -> None:
    found = stage.ask("getGlobalTopology", duration=stage.minutes, layer="GENERAL")
    calls = drawn(found)
    assert calls["User", SHOP] == _SERVER and calls[SHOP, SHOP] == _BOTH
    assert calls[SHOP, DEPOT] == _BOTH
    assert calls[TILL, DATABASE] == ["CLIENT"]
    types = {node["name"]: (node["type"], node["isReal"]) for node in found["nodes"]}
    assert types[SHOP] == ("Flask", True) and types[DATABASE] == ("PostgreSQL", False)
    assert types["User"] == ("USER", False)
    (own,) = [call for call in found["calls"] if call["source"] == call["target"] == SHOP_ID]
    assert (own["sourceComponents"], own["targetComponents"]) == (["Requests"], ["Flask"])


def around_the_shop(stage: Stage, operation: str, **asked: Any) -> None:
    found = stage.ask(operation, **asked, duration=stage.minutes)
    assert drawn(found) == {("User", SHOP): _SERVER, (SHOP, SHOP): _BOTH, (SHOP, DEPOT): _BOTH}
    (node,) = [node for node in found["nodes"] if node["id"] == SHOP_ID]
    assert (node["type"], node["layers"], node["isReal"]) == ("Flask", ["GENERAL"], True)


def between_instances(stage: Stage, operation: str, **asked: Any) -> None:
    found = stage.ask(operation, **asked, duration=stage.minutes)
    assert drawn(found).keys() == {(INSTANCE, INSTANCE)}
    (node,) = found["nodes"]
    assert (node["id"], node["serviceId"], node["serviceName"]) == (INSTANCE_ID, SHOP_ID, SHOP)


def between_two(stage: Stage, operation: str, **asked: Any) -> None:
    found = stage.ask(operation, **asked, duration=stage.minutes)
    assert drawn(found).keys() == {(INSTANCE, DEPOT_INSTANCE)}
    nodes = {node["id"]: (node["serviceId"], node["serviceName"]) for node in found["nodes"]}
    depot = ids.instance_id(DEPOT_ID, DEPOT_INSTANCE)
    assert nodes == {INSTANCE_ID: (SHOP_ID, SHOP), depot: (DEPOT_ID, DEPOT)}
    (call,) = found["calls"]
    assert (call["source"], call["target"]) == (INSTANCE_ID, depot)


def around_a_page(stage: Stage, operation: str, **asked: Any) -> None:
    """The agent names the page that was called as the one that calls."""
    found = stage.ask(operation, **asked, duration=stage.minutes)
    assert drawn(found) == {(PAGE, PAGE): _SERVER}
    (node,) = found["nodes"]
    assert node["id"] == endpoint_id(PAGE) and node.get("serviceName", SHOP) == SHOP


def from_page_to_page(stage: Stage, operation: str, **asked: Any) -> None:
    """Of either end: what the shop calls and what is called there have one name in two services."""
    found = stage.ask(operation, **asked, duration=stage.minutes)
    (call,) = found["calls"]
    assert (call["source"], call["target"]) == (endpoint_id(DEPOT_PAGE), DEPOT_PAGE_ID)
    assert call["detectPoints"] == _SERVER
    names = {node["id"]: node["name"] for node in found["nodes"]}
    assert names == dict.fromkeys((endpoint_id(DEPOT_PAGE), DEPOT_PAGE_ID), DEPOT_PAGE)
    told = {node.get("serviceName", "") for node in found["nodes"]} - {""}
    assert told in ({SHOP, DEPOT}, set()), "the older shape has no service"


def all_of(*checks: Check) -> Check:
    def check(stage: Stage) -> None:
        for one in checks:
            one(stage)

    return check


CHECKS: Final[Checks] = {
    "getGlobalTopology": everything,
    "getServiceTopology": lambda stage: around_the_shop(
        stage, "getServiceTopology", serviceId=SHOP_ID
    ),
    "getServiceTopologyByName": lambda stage: around_the_shop(
        stage, "getServiceTopologyByName", service=NAMED
    ),
    "getServicesTopology": lambda stage: around_the_shop(
        stage, "getServicesTopology", serviceIds=[SHOP_ID]
    ),
    "getServicesTopologyByNames": lambda stage: around_the_shop(
        stage, "getServicesTopologyByNames", services=[NAMED]
    ),
    "getServiceInstanceTopology": all_of(
        lambda stage: between_instances(
            stage, "getServiceInstanceTopology", clientServiceId=SHOP_ID, serverServiceId=SHOP_ID
        ),
        lambda stage: between_two(
            stage, "getServiceInstanceTopology", clientServiceId=SHOP_ID, serverServiceId=DEPOT_ID
        ),
        lambda stage: between_two(
            stage, "getServiceInstanceTopology", clientServiceId=DEPOT_ID, serverServiceId=SHOP_ID
        ),
    ),
    "getServiceInstanceTopologyByName": all_of(
        lambda stage: between_instances(
            stage, "getServiceInstanceTopologyByName", clientService=NAMED, serverService=NAMED
        ),
        lambda stage: between_two(
            *(stage, "getServiceInstanceTopologyByName"),
            clientService=NAMED,
            serverService=DEPOT_NAMED,
        ),
    ),
    "getEndpointDependencies": all_of(
        lambda stage: around_a_page(stage, "getEndpointDependencies", endpointId=endpoint_id(PAGE)),
        *(
            lambda stage, one=one: from_page_to_page(  # type: ignore[misc]
                stage, "getEndpointDependencies", endpointId=one
            )
            for one in (endpoint_id(DEPOT_PAGE), DEPOT_PAGE_ID)
        ),
    ),
    "getEndpointDependenciesByName": all_of(
        lambda stage: around_a_page(
            stage, "getEndpointDependenciesByName", endpoint=NAMED | {"endpointName": PAGE}
        ),
        lambda stage: from_page_to_page(
            *(stage, "getEndpointDependenciesByName"),
            endpoint=DEPOT_NAMED | {"endpointName": DEPOT_PAGE},
        ),
    ),
    "getEndpointTopology": all_of(
        lambda stage: around_a_page(stage, "getEndpointTopology", endpointId=endpoint_id(PAGE)),
        lambda stage: from_page_to_page(stage, "getEndpointTopology", endpointId=DEPOT_PAGE_ID),
    ),
}
