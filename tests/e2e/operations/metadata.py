"""Who is there: services, instances, endpoints, the server, and what its page is built of."""

from __future__ import annotations

import json
import re
from typing import Final

from e2e.operations.stage import (
    DATABASE,
    INSTANCE,
    INSTANCE_ID,
    SHOP,
    SHOP_ID,
    SLOW,
    TILL,
    VISIBLE_WITHIN_S,
    WEB,
    Answer,
    Checks,
    Stage,
    endpoint_id,
)
from skyfarer.oap.core import ids
from skyfarer.testing.programs import eventually

TTL_DAYS: Final = 3650
"""Of an OAP that tests start."""
NAMED: Final = {"serviceName": SHOP}
SERVICE: Final = {
    "id": SHOP_ID,
    "name": SHOP,
    "group": "",
    "shortName": SHOP,
    "layers": ["GENERAL"],
    "normal": True,
}


def shown(found: Answer, expected: Answer) -> None:
    """What was asked for of the expected, whatever its alias."""
    names = {"value": "name", "label": "name"}
    assert found == {key: expected[names.get(key, key)] for key in found}


def only(found: list[Answer], name: str) -> Answer:
    (one,) = [each for each in found if each["name"] == name]
    return one


def version(stage: Stage) -> None:
    assert re.match(r"10\.\d+\.\d+-skyfarer-", stage.ask("version"))


def health(stage: Stage) -> None:
    """A part that a busy machine kept waiting is well again."""
    well = {"score": 0, "details": ""}
    eventually(lambda: bool(stage.ask("checkHealth") == well), VISIBLE_WITHIN_S, "health")


def clock(stage: Stage) -> None:
    told = stage.ask("getTimeInfo")
    assert told["timezone"] == "+0000"
    assert stage.now_ms <= told["currentTimestamp"] < stage.now_ms + 3_600_000


def records_kept(stage: Stage) -> None:
    kept = stage.ask("getRecordsTTL")
    assert {kept[name] for name in ("normal", "trace", "log", "browserErrorLog")} == {TTL_DAYS}
    assert {days for name, days in kept.items() if name.startswith("cold")} == {-1}


def metrics_kept(stage: Stage) -> None:
    kept = stage.ask("getMetricsTTL")
    assert {kept[name] for name in ("minute", "hour", "day")} == {TTL_DAYS}
    assert {days for name, days in kept.items() if name.startswith("cold")} == {-1}


def layers(stage: Stage) -> None:
    found = stage.ask("listLayers")
    assert {"GENERAL", "MESH", "VIRTUAL_DATABASE", "BROWSER"} <= set(found)
    assert "UNDEFINED" not in found


def services(stage: Stage) -> None:
    found = stage.ask("listServices", layer="GENERAL")
    shown(only(found, SHOP), SERVICE)
    names = {one["name"] for one in found}
    assert {SHOP, TILL} <= names and not {WEB, DATABASE} & names
    (database,) = [one for one in stage.ask("listServices") if one["name"] == DATABASE]
    assert (database["layers"], database["normal"]) == (["VIRTUAL_DATABASE"], False)


def instances(stage: Stage, found: list[Answer]) -> None:
    (one,) = found
    attributes = {pair["name"]: pair["value"] for pair in one.pop("attributes")}
    assert attributes["python_implementation"] == "CPython" and attributes["Process No."]
    told = {"id": INSTANCE_ID, "name": INSTANCE, "language": "PYTHON", "instanceUUID": INSTANCE_ID}
    shown(one, told)


def endpoints(stage: Stage, found: list[Answer], keyword: str = "") -> None:
    expected = {page for page in stage.calls if keyword in page}
    assert {one["id"]: one["name"] for one in found} == {
        endpoint_id(page): page for page in expected
    }


def endpoints_found(stage: Stage) -> None:
    asked = {"serviceId": SHOP_ID, "limit": 20}
    endpoints(stage, stage.ask("findEndpoint", **asked, keyword="", duration=stage.minutes))
    endpoints(stage, stage.ask("findEndpoint", **asked, keyword="stock"), "stock")
    assert len(stage.ask("findEndpoint", serviceId=SHOP_ID, limit=2, keyword="")) == 2


def all_services(stage: Stage) -> None:
    found = stage.ask("getAllServices", duration=stage.minutes)
    shown(only(found, SHOP), SERVICE)
    assert {WEB, DATABASE, TILL} <= {one["name"] for one in found}


def browser_services(stage: Stage, operation: str, **asked: str) -> None:
    found = stage.ask(operation, duration=stage.minutes, **asked)
    assert only(found, WEB)["layers"] == ["BROWSER"]
    assert SHOP not in {one["name"] for one in found}


def databases(stage: Stage) -> None:
    found = stage.ask("getAllDatabases", duration=stage.minutes)
    assert only(found, DATABASE)["id"] == ids.service_id(DATABASE, normal=False)


def menu(stage: Stage) -> None:
    (general,) = [one for one in stage.ask("getMenuItems") if one["title"] == "General Service"]
    active = {one["layer"]: one["activate"] for one in general["subItems"]}
    assert general["activate"] and general["layer"] == ""
    assert active["GENERAL"] and active["VIRTUAL_DATABASE"]


def templates(stage: Stage) -> None:
    found = {one["id"]: json.loads(one["configuration"]) for one in stage.ask("getAllTemplates")}
    roots = [one for one in found.values() if one["layer"] == "GENERAL" and one.get("isRoot")]
    assert [one["entity"] for one in roots] == ["All"]
    assert all(one["name"] for one in found.values())


def template(stage: Stage) -> None:
    first = stage.ask("getAllTemplates")[0]
    assert stage.ask("getTemplate", id=first["id"]) == first
    assert stage.ask("getTemplate", id="none") is None


def closed(stage: Stage, operation: str, **asked: object) -> None:
    """No dashboard can be saved, unless the setting says so."""
    before = stage.ask("getAllTemplates")
    answer = stage.ask(operation, **asked)
    assert not answer["status"] and "SW_ENABLE_UPDATE_UI_TEMPLATE" in answer["message"]
    assert stage.ask("getAllTemplates") == before


def _some_template(stage: Stage) -> dict[str, str]:
    found: dict[str, str] = stage.ask("getAllTemplates")[0]
    return found


CHECKS: Final[Checks] = {
    "version": version,
    "checkHealth": health,
    "getTimeInfo": clock,
    "getRecordsTTL": records_kept,
    "getMetricsTTL": metrics_kept,
    "listLayers": layers,
    "listServices": services,
    "getService": lambda stage: shown(stage.ask("getService", serviceId=SHOP_ID), SERVICE),
    "findService": lambda stage: shown(stage.ask("findService", serviceName=SHOP), SERVICE),
    "listInstances": lambda stage: instances(
        stage, stage.ask("listInstances", duration=stage.minutes, serviceId=SHOP_ID)
    ),
    "listInstancesByName": lambda stage: instances(
        stage, stage.ask("listInstancesByName", duration=stage.minutes, service=NAMED)
    ),
    "getInstance": lambda stage: instances(
        stage, [stage.ask("getInstance", instanceId=INSTANCE_ID)]
    ),
    "findEndpoint": endpoints_found,
    "findEndpointByName": lambda stage: endpoints(
        stage, stage.ask("findEndpointByName", service=NAMED, keyword="", limit=20)
    ),
    "getEndpointInfo": lambda stage: shown(
        stage.ask("getEndpointInfo", endpointId=endpoint_id(SLOW)),
        {"id": endpoint_id(SLOW), "name": SLOW, "serviceId": SHOP_ID, "serviceName": SHOP},
    ),
    "getAllServices": all_services,
    "searchServices": lambda stage: shown(
        only(stage.ask("searchServices", duration=stage.minutes, keyword="asked-s"), SHOP), SERVICE
    ),
    "searchService": lambda stage: shown(stage.ask("searchService", serviceCode=SHOP), SERVICE),
    "getAllBrowserServices": lambda stage: browser_services(stage, "getAllBrowserServices"),
    "searchBrowserServices": lambda stage: browser_services(
        stage, "searchBrowserServices", keyword="asked"
    ),
    "searchBrowserService": lambda stage: shown(
        stage.ask("searchBrowserService", serviceCode=WEB),
        {
            **SERVICE,
            "id": ids.service_id(WEB),
            "name": WEB,
            "shortName": WEB,
            "layers": ["BROWSER"],
        },
    ),
    "getServiceInstances": lambda stage: instances(
        stage, stage.ask("getServiceInstances", duration=stage.minutes, serviceId=SHOP_ID)
    ),
    "searchEndpoint": lambda stage: endpoints(
        stage, stage.ask("searchEndpoint", serviceId=SHOP_ID, keyword="s", limit=20), "s"
    ),
    "getAllDatabases": databases,
    "getMenuItems": menu,
    "getAllTemplates": templates,
    "getTemplate": template,
    "addTemplate": lambda stage: closed(
        stage, "addTemplate", setting={"configuration": _some_template(stage)["configuration"]}
    ),
    "changeTemplate": lambda stage: closed(stage, "changeTemplate", setting=_some_template(stage)),
    "disableTemplate": lambda stage: closed(
        stage, "disableTemplate", id=_some_template(stage)["id"]
    ),
}
