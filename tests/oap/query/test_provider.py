"""The query module as the program makes it: from the environment, through the HTTP door."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from golden.documents import documents
from skyfarer.oap.boot.config import load_application
from skyfarer.oap.boot.effective import effective
from skyfarer.oap.boot.providers.analysis import Books
from skyfarer.oap.boot.providers.core import CoreProvider, Node
from skyfarer.oap.boot.providers.query import QueryProvider
from skyfarer.oap.boot.providers.receivers import Posted
from skyfarer.oap.boot.settings import CoreConfig, GraphQLConfig
from skyfarer.oap.core.cluster import Coordinator
from skyfarer.oap.core.expiry import RetentionOverride
from skyfarer.oap.core.inventory import InventoryReader
from skyfarer.oap.core.modules import ModuleHolder, Offer, Services
from skyfarer.oap.core.storage import Reader
from skyfarer.oap.core.tasks import TaskTables
from skyfarer.oap.core.templates import TemplateTables
from skyfarer.oap.oal.plan import Plan
from skyfarer.oap.storage.embedded import EmbeddedStorage

MINE = json.dumps({"name": "Mine", "layer": "GENERAL", "entity": "Service", "children": []})
CANARY = "s3cr3t-canary"
Ask = Callable[..., Any]


class Alone:
    """A coordinator without others."""

    def nodes(self) -> list[Any]:
        return []


@pytest.fixture
def started(tmp_path: Path, plan: Plan, zone: Any) -> Iterator[Callable[..., httpx.Client]]:
    """Starts the module with an environment; everything it needs is real but the cluster."""
    storage = EmbeddedStorage()
    storage.start(tmp_path / "skyfarer.duckdb", zone)
    stops: list[Callable[[], object]] = [storage.stop]

    def start(**environ: str) -> httpx.Client:
        given = {"SKYFARER_DATA_DIR": str(tmp_path), "SW_CORE_REST_PORT": "0", **environ}
        application = load_application(None, given)
        core = CoreProvider(application.config(CoreConfig))
        core.effective = effective(application)
        offer = Offer(core)
        core.prepare(offer)
        node = offer.complete()[Node]
        assert isinstance(node, Node)
        node.health.started()
        kept = dict.fromkeys((Reader, InventoryReader, TemplateTables, TaskTables), storage)
        query = QueryProvider(application.config(GraphQLConfig))
        services: dict[str, dict[type, object]] = {
            "core": {Node: node},
            "storage": {**kept, RetentionOverride: RetentionOverride()},
            "agent-analyzer": {Books: Books(), Plan: plan},
            "receiver-sharing-server": {Posted: Posted()},
            "cluster": {Coordinator: Alone()},
        }
        running = {name: Services(name, offered) for name, offered in services.items()}
        query.listen(ModuleHolder(query, running))
        stops.insert(0, lambda: query.stop(5))
        return httpx.Client(base_url=f"http://127.0.0.1:{query.port}", trust_env=False, timeout=60)

    yield start
    for stop in stops:
        stop()


def asking(http: httpx.Client) -> Ask:
    def ask(operation: str, **variables: Any) -> Any:
        body = {"query": documents()[operation].text, "variables": variables}
        answer = http.post("/graphql", json=body).json()
        assert "errors" not in answer, answer
        return answer["data"][operation]

    return ask


def test_dashboards_are_saved_where_the_environment_says_so(started) -> None:
    with started(SW_ENABLE_UPDATE_UI_TEMPLATE="true") as http:
        ask = asking(http)
        added = ask("addTemplate", setting={"configuration": MINE})
        assert added["status"] is True
        assert ask("getTemplate", id=added["id"])["configuration"] == MINE
        other = MINE.replace("Mine", "Other")
        setting = {"id": added["id"], "configuration": other}
        assert ask("changeTemplate", setting=setting)["status"] is True
        assert setting in ask("getAllTemplates")
        assert ask("disableTemplate", id=added["id"])["status"] is True
        assert ask("getTemplate", id=added["id"]) is None


def test_dashboards_are_not_saved_unless_it_does(started) -> None:
    with started() as http:
        ask = asking(http)
        before = ask("getAllTemplates")
        answers = (
            ask("addTemplate", setting={"configuration": MINE}),
            ask("changeTemplate", setting=before[0]),
            ask("disableTemplate", id=before[0]["id"]),
        )
        assert [answer["status"] for answer in answers] == [False] * 3
        assert ask("getAllTemplates") == before


def test_no_secret_of_the_environment_comes_through_the_door(started) -> None:
    told = {
        "SW_STORAGE": "postgresql",
        "SW_DATA_SOURCE_PASSWORD": CANARY,
        "SW_JDBC_URL": f"jdbc:postgresql://db/apm?password={CANARY}&ssl=true",
        "SW_AUTHENTICATION": CANARY,
    }
    with started(**told) as http:
        for accept in ("application/json", "text/plain"):
            shown = http.get("/debugging/config/dump", headers={"accept": accept}).text
            assert CANARY not in shown
            assert "storage.postgresql.properties.jdbcUrl" in shown and "ssl=true" in shown
