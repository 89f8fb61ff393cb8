"""Whatever stands in a text that somebody asks with, storage takes it as a value.

Every root field is asked with every payload wherever the schema takes a text, of both storages as
they are. Nothing is found by it, nothing fails in a way that nobody thought of, and the tables have
the rows that they had.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from contracts import event_contract, log_contract
from contracts.storage_contract import NOON, batch, delta, segment
from oap.query.conftest import NOW_MS, PLAN, ZONE
from oap.query.faults import asking
from skyfarer.oap.query import QueryServer
from skyfarer.oap.query.dashboards import SavedDashboards
from skyfarer.oap.storage.embedded import EmbeddedStorage
from skyfarer.oap.storage.postgresql import PostgresStorage
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.clock import HandClock
from skyfarer.testing.memory_reader import MemoryReader
from third_parties.postgresql import Server

SECRET = "nobody-asked-for-me"
PAYLOADS = (
    "' OR '1'='1",
    "x'; DROP TABLE service_traffic; --",
    '" OR ""="',
    "$1",
    "%(first)s %s {} %",
    "x') UNION SELECT 'a', 'b', 'c', 'd' --",
    "\\'; ATTACH 'x' AS y; --",
    '{"query": {"match_all": {}}}',
    "a\u0000b",
)
QUERIES = asking.fields(asking.SCHEMA.query_type)
MUTATIONS = asking.fields(asking.SCHEMA.mutation_type)
# A regular expression, which finds what fits it; and dashboards that are shipped.
FINDS = ("listMetrics", "getAllTemplates", "getMenuItems")


@dataclass
class Under:
    """A query server on a storage with something in it."""

    http: httpx.Client
    storage: Any

    def counts(self) -> dict[str, int]:
        """Every table's rows."""
        if isinstance(self.storage, EmbeddedStorage):
            cursor = self.storage._cursor()
            tables = [name for (name,) in cursor.execute("SHOW TABLES").fetchall()]
            return {
                name: cursor.execute(f'SELECT count(*) FROM "{name}"').fetchall()[0][0]
                for name in tables
            }
        self.storage.fold()  # which would move rows between two looks
        with self.storage._reading() as cursor:
            cursor.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1"
            )
            tables = [name for (name,) in cursor.fetchall()]
            found = {}
            for name in tables:
                cursor.execute(f'SELECT count(*) FROM "{name}"')
                found[name] = cursor.fetchall()[0][0]
        return found


def filled(storage: Any) -> None:
    calls = [delta(NOON // 60_000, service=SECRET, instance=SECRET, endpoint=SECRET)]
    row = segment(SECRET, NOON, trace_id=SECRET, service=SECRET, endpoint=SECRET)
    storage.apply(batch(0, 1, [row], calls))
    log_contract.apply(storage, log_contract.log(SECRET, NOON, service=SECRET, trace_id=SECRET))
    event_contract.apply(storage, event_contract.event(SECRET, service=SECRET))


@pytest.fixture(scope="module", params=["embedded", "postgresql"])
def under(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Under]:
    if request.param == "embedded":
        yield from serving(started(tmp_path_factory.mktemp("storage")))
        return
    server = Server()
    try:
        storage = PostgresStorage(server.start().space())
        storage.start(ZONE)
        yield from serving(storage)
    finally:
        server.close()


def started(directory: Path) -> EmbeddedStorage:
    storage = EmbeddedStorage()
    storage.start(directory / "skyfarer.duckdb", ZONE)
    return storage


def serving(storage: Any) -> Iterator[Under]:
    filled(storage)
    health, clock = Health(), HandClock(NOW_MS)
    health.started()
    server = QueryServer(
        *(socket.create_server(("127.0.0.1", 0)), storage, MemoryReader().ledger),
        *(health, Registry(), clock, ZONE),
        plan=PLAN,
        inventories=storage,
        dashboards=SavedDashboards(storage, True),
    )
    server.start()
    try:
        url = f"http://127.0.0.1:{server.port}"
        with httpx.Client(base_url=url, trust_env=False, timeout=60) as http:
            yield Under(http, storage)
    finally:
        server.stop(5)
        storage.stop()


def asked(under: Under, document: str, variables: dict[str, Any]) -> dict[str, Any]:
    response = under.http.post("/graphql", json={"query": document, "variables": variables})
    assert response.status_code == 200, (document, response.text)
    answer: dict[str, Any] = response.json()
    for error in answer.get("errors", ()):
        assert "internal error" not in error["message"], (document, variables)
    return answer


def test_what_is_stored_is_found_by_whoever_asks_for_it(under: Under) -> None:
    """So that not to find it means something."""
    document = "query ($id: ID!) { queryTrace(traceId: $id) { spans { traceId } } }"
    answer = asked(under, document, {"id": SECRET})
    assert len(answer["data"]["queryTrace"]["spans"]) == 1
    answer = asked(under, "{ listServices { name } }", {})
    assert [one["name"] for one in answer["data"]["listServices"]] == [SECRET]
    assert {"service_traffic", "segment_20261115"} <= under.counts().keys()


@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_text_finds_what_it_does_not_name_or_changes_a_row(under: Under, payload: str) -> None:
    before, texts = under.counts(), 0
    for name, field in QUERIES.items():
        if not any(asking.says_text(argument.type) for argument in field.args.values()):
            continue
        texts += 1
        answer = asked(under, asking.document(name, field), asking.variables(field, payload))
        if name not in FINDS:
            assert SECRET not in list(asking.leaves(answer.get("data"))), (name, answer)
    assert texts > 40
    assert under.counts() == before


@pytest.mark.parametrize("payload", PAYLOADS)
def test_what_is_saved_with_such_a_text_is_saved_as_it_is(under: Under, payload: str) -> None:
    before = under.counts()
    for name, field in MUTATIONS.items():
        asked(under, asking.document(name, field, "mutation"), asking.variables(field, payload))
    after = under.counts()
    grown = {name for name in after if after[name] != before.get(name)}
    assert grown <= {"ui_template"}, grown
