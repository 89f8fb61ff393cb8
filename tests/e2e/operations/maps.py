"""Who calls whom: the user calls the shop, the shop itself, the till a database."""

from __future__ import annotations

from typing import Any, Final

from e2e.operations.stage import (
    DATABASE,
    INSTANCE,
    INSTANCE_ID,
    SHOP,
    SHOP_ID,
    TILL,
    Answer,
    Checks,
    Stage,
    endpoint_id,
)

NAMED: Final = {"serviceName": SHOP}
PAGE: Final = "/stock"
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
    assert calls[TILL, DATABASE] == ["CLIENT"]
    types = {node["name"]: (node["type"], node["isReal"]) for node in found["nodes"]}
    assert types[SHOP] == ("Flask", True) and types[DATABASE] == ("PostgreSQL", False)
    assert types["User"] == ("USER", False)
    (own,) = [call for call in found["calls"] if call["source"] == call["target"] == SHOP_ID]
    assert (own["sourceComponents"], own["targetComponents"]) == (["Requests"], ["Flask"])


def around_the_shop(stage: Stage, operation: str, **asked: Any) -> None:
    found = stage.ask(operation, **asked, duration=stage.minutes)
    assert drawn(found) == {("User", SHOP): _SERVER, (SHOP, SHOP): _BOTH}
    (node,) = [node for node in found["nodes"] if node["id"] == SHOP_ID]
    assert (node["type"], node["layers"], node["isReal"]) == ("Flask", ["GENERAL"], True)


def between_instances(stage: Stage, operation: str, **asked: Any) -> None:
    found = stage.ask(operation, **asked, duration=stage.minutes)
    assert drawn(found).keys() == {(INSTANCE, INSTANCE)}
    (node,) = found["nodes"]
    assert (node["id"], node["serviceId"], node["serviceName"]) == (INSTANCE_ID, SHOP_ID, SHOP)


def around_a_page(stage: Stage, operation: str, **asked: Any) -> None:
    """The agent names the page that was called as the one that calls."""
    found = stage.ask(operation, **asked, duration=stage.minutes)
    assert drawn(found) == {(PAGE, PAGE): _SERVER}
    (node,) = found["nodes"]
    assert node["id"] == endpoint_id(PAGE) and node.get("serviceName", SHOP) == SHOP


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
    "getServiceInstanceTopology": lambda stage: between_instances(
        stage, "getServiceInstanceTopology", clientServiceId=SHOP_ID, serverServiceId=SHOP_ID
    ),
    "getServiceInstanceTopologyByName": lambda stage: between_instances(
        stage, "getServiceInstanceTopologyByName", clientService=NAMED, serverService=NAMED
    ),
    "getEndpointDependencies": lambda stage: around_a_page(
        stage, "getEndpointDependencies", endpointId=endpoint_id(PAGE)
    ),
    "getEndpointDependenciesByName": lambda stage: around_a_page(
        stage, "getEndpointDependenciesByName", endpoint=NAMED | {"endpointName": PAGE}
    ),
    "getEndpointTopology": lambda stage: around_a_page(
        stage, "getEndpointTopology", endpointId=endpoint_id(PAGE)
    ),
}
