"""What SkyWalking's page is built from, through the HTTP door."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from skyfarer.oap.core.slow import Slow
from skyfarer.oap.query import QueryServer, limits
from skyfarer.oap.query.dashboards import SavedDashboards
from skyfarer.oap.query.dashboards.resolver import shipped
from skyfarer.oap.storage.embedded import EmbeddedStorage
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.clock import HandClock
from skyfarer.testing.memory_reader import MemoryReader

MENU = """query menuItems { getMenuItems {
  title icon layer activate description documentLink i18nKey
  subItems { title icon layer activate description documentLink i18nKey }
} }"""
ALL = "query templates { getAllTemplates { id configuration } }"
ONE = "query ($id: String!) { getTemplate(id: $id) { id configuration } }"
ADD = """mutation ($setting: NewDashboardSetting!) {
  changed: addTemplate(setting: $setting) { id status message }
}"""
CHANGE = """mutation ($setting: DashboardSetting!) {
  changed: changeTemplate(setting: $setting) { id status message }
}"""
DISABLE = "mutation ($id: String!) { changed: disableTemplate(id: $id) { id status message } }"
MINE = json.dumps({"name": "Mine", "layer": "GENERAL", "entity": "Service", "children": []})


class Page:
    """The page, as far as it asks for dashboards."""

    def __init__(self, http: httpx.Client, reader: MemoryReader) -> None:
        self.http = http
        self.reader = reader

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        sent = {"query": query, "variables": variables}
        answer = self.http.post("/graphql", json=sent).json()
        assert "errors" not in answer, answer
        data = answer["data"]
        assert isinstance(data, dict)
        return data

    def shown(self) -> dict[str, str]:
        return {one["id"]: one["configuration"] for one in self.ask(ALL)["getAllTemplates"]}

    def change(self, query: str, **variables: Any) -> dict[str, Any]:
        changed = self.ask(query, **variables)["changed"]
        assert isinstance(changed, dict)
        return changed


@pytest.fixture
def opened(tmp_path, plan, zone) -> Iterator[Any]:
    """Makes pages of one storage, on which dashboards may be saved or not."""
    storage, health, stops = EmbeddedStorage(), Health(), []
    storage.start(tmp_path / "skyfarer.duckdb", zone)
    health.started()

    def page(may_save: bool = True) -> Page:
        reader = MemoryReader()
        server = QueryServer(
            *(socket.create_server(("127.0.0.1", 0)), reader, reader.ledger, health, Registry()),
            *(HandClock(7), zone),
            plan=plan,
            dashboards=SavedDashboards(storage, may_save),
        )
        server.start()
        url = f"http://127.0.0.1:{server.port}"
        http = httpx.Client(base_url=url, trust_env=False, timeout=60)
        stops.extend((http.close, lambda: server.stop(5)))
        return Page(http, reader)

    yield page
    for stop in stops:
        stop()
    storage.stop()


def metrics_of(part: Any) -> Iterator[str]:
    """Names of metrics in every expression below."""
    if isinstance(part, list):
        for one in part:
            yield from metrics_of(one)
    elif isinstance(part, dict):
        for key, value in part.items():
            if key.lower().endswith("expressions"):
                for text in value:
                    bare = re.sub(r"'[^']*'|\bp=|\bpercentile=", "", text)
                    yield from re.findall(r"\b[a-z]\w*_\w+\b(?!\()", bare)
            else:
                yield from metrics_of(value)


def parts_of(part: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """What stands together on a page, at any depth."""
    if children := part.get("children"):
        if "x" in children[0]:
            yield children
        for child in children:
            yield from parts_of(child)


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_dashboard_is_whole_and_asks_for_metrics_that_there_are(name, plan):
    whole = json.loads(shipped()[name])
    assert whole["id"] == whole["name"] == name
    assert whole["isRoot"] == (whole["entity"] == "All")
    known = {metric.name for source in plan.sources for metric in source.metrics}
    known |= {kind.value for kind in Slow}
    asked = set(metrics_of(whole))
    assert asked and asked <= known
    for together in parts_of(whole):
        numbers = [part["i"] for part in together]
        assert len(set(numbers)) == len(numbers)
        places = [
            (part["x"] + x, part["y"] + y)
            for part in together
            for x in range(part["w"])
            for y in range(part["h"])
        ]
        assert len(set(places)) == len(places), "parts lie on each other"
        assert max(x for x, _ in places) < 24


def test_a_dashboard_leads_to_dashboards_that_there_are():
    for text in shipped().values():
        for name in re.findall(r'"(?:dashboard\w*|\w+Dashboard)":"([^"]+)"', text):
            assert name in shipped()


def test_every_layer_of_the_menu_has_a_root(lasting_oap):
    menu = lasting_oap.ask(MENU)["getMenuItems"]
    layers = {item["layer"] for group in menu for item in (group, *group["subItems"])} - {""}
    roots = {one["layer"] for one in map(json.loads, shipped().values()) if one["isRoot"]}
    assert layers == roots
    for group in menu:
        assert bool(group["layer"]) != bool(group["subItems"])
        for item in (group, *group["subItems"]):
            assert all(isinstance(value, (str, bool, list)) for value in item.values())


def test_an_item_is_active_when_its_layer_has_services_and_a_group_when_an_item_is(oap):
    def active() -> set[str]:
        menu = oap.ask(MENU)["getMenuItems"]
        items = [item for group in menu for item in (group, *group["subItems"])]
        return {item["title"] for item in items if item["activate"]}

    assert active() == set()
    oap.reader.add_service("db:5432", layers=("VIRTUAL_DATABASE",), normal=False)
    assert active() == {"General Service", "Virtual Database"}
    oap.reader.add_service("page", layers=("BROWSER",))
    assert active() == {"General Service", "Virtual Database", "Browser"}


def test_dashboards_are_given_out_as_text_with_what_the_page_keys_them_by(oap):
    found = oap.ask(ALL)["getAllTemplates"]
    keys = []
    for one in found:
        read = json.loads(one["configuration"])
        keys.append((read["layer"], read["entity"], read["name"]))
    assert len(set(keys)) == len(found) >= 4
    assert ("GENERAL", "All", "General-Root") in keys
    one = oap.ask(ONE, id="General-Root")["getTemplate"]
    assert one in found
    assert oap.ask(ONE, id="nobody's") == {"getTemplate": None}


def test_a_dashboard_is_added_changed_and_disabled(opened):
    page = opened()
    added = page.change(ADD, setting={"configuration": MINE})
    assert added["status"] is True and added["id"]
    assert page.shown()[added["id"]] == MINE
    other = MINE.replace("Mine", "Other")
    changed = page.change(CHANGE, setting={"id": added["id"], "configuration": other})
    assert changed == {"id": added["id"], "status": True, "message": ""}
    assert opened().shown()[added["id"]] == other
    assert page.change(DISABLE, id=added["id"])["status"] is True
    assert page.shown() == dict(shipped())
    assert page.change(DISABLE, id=added["id"])["message"] == "there is no dashboard of that id"


def test_a_shipped_dashboard_can_be_replaced_and_hidden(opened):
    page = opened()
    root = MINE.replace("Mine", "General-Root")
    page.change(CHANGE, setting={"id": "General-Root", "configuration": root})
    assert page.ask(ONE, id="General-Root")["getTemplate"]["configuration"] == root
    page.change(DISABLE, id="General-Root")
    assert page.shown().keys() == shipped().keys() - {"General-Root"}


def test_what_was_saved_is_shown_while_nothing_may_be_saved(opened):
    page, closed = opened(), opened(may_save=False)
    added = page.change(ADD, setting={"configuration": MINE})["id"]
    assert closed.shown()[added] == MINE
    for query, variables in (
        (ADD, {"setting": {"configuration": MINE}}),
        (CHANGE, {"setting": {"id": added, "configuration": "{}"}}),
        (DISABLE, {"id": added}),
    ):
        refused = closed.change(query, **variables)
        assert refused["status"] is False
        assert "SW_ENABLE_UPDATE_UI_TEMPLATE=true" in refused["message"]
    assert closed.shown()[added] == MINE


@pytest.mark.parametrize(
    ("configuration", "why"),
    [
        ("", "the configuration is not JSON"),
        ("[" * 100_000, "the configuration is not JSON"),
        ("[]", "the configuration is not a JSON object"),
        ('{"layer": "GENERAL", "entity": "All"}', "the configuration has no name"),
        ('{"name": " ", "layer": "GENERAL", "entity": "All"}', "the configuration has no name"),
        ('{"name": "n", "layer": 1, "entity": "All"}', "the configuration has no layer"),
        ('{"name": "n", "layer": "L"}', "the configuration has no entity"),
        (" " * (limits.TEMPLATE_CHARS_MAX + 1), "a dashboard has at most 524288 characters"),
    ],
)
def test_a_dashboard_that_the_page_could_not_show_is_not_saved(opened, configuration, why):
    page = opened()
    refused = page.change(ADD, setting={"configuration": configuration})
    assert (refused["status"], refused["message"]) == (False, why)
    assert page.shown() == dict(shipped())


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_mutation_that_any_web_page_could_send_is_refused(opened, kind):
    page = opened()
    variables = {"setting": {"configuration": MINE}}
    body = json.dumps({"query": ADD, "variables": variables})
    answer = page.http.post("/graphql", content=body, headers={"content-type": kind}).json()
    assert answer["errors"][0]["message"].startswith("a mutation is taken with the header")
    assert page.shown() == dict(shipped())
    questions = json.dumps({"query": "{ version }"})
    answer = page.http.post("/graphql", content=questions, headers={"content-type": kind}).json()
    assert "errors" not in answer
    proper = {"content-type": "application/json; charset=utf-8"}
    page.http.post("/graphql", content=body, headers=proper)
    assert len(page.shown()) == len(shipped()) + 1
