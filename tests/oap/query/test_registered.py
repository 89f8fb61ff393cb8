"""The registry of the v2 protocol through the HTTP door, on a real storage."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import httpx
import pytest

from contracts.inventory_contract import ADDRESS, ENDPOINT, INSTANCE, SERVICE, apply
from skyfarer.oap.core.inventory import Inventory
from skyfarer.oap.oal.compiler import plan_of, shipped
from skyfarer.oap.query import QueryServer
from skyfarer.oap.query.limits import NAME_CHARS_MAX, PROPERTIES_CHARS_MAX
from skyfarer.oap.storage.embedded import EmbeddedStorage
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.clock import HandClock
from skyfarer.testing.memory_reader import MemoryReader

HOSTILE = "<script>alert('1')</script>\"%_"
LONG = "x" * 1_000_000
REGISTERED = (
    Inventory(SERVICE, "shop", node_type=3, properties='{"a": "1"}', register_time=4_000),
    Inventory(ADDRESS, "10.0.0.1:80", node_type=1),
    Inventory(SERVICE, "10.0.0.1:80", is_address=True, address_id=2, mapping_service_id=2),
    Inventory(SERVICE, HOSTILE),
    Inventory(SERVICE, LONG, properties=LONG, node_type=99),
    Inventory(INSTANCE, "shop-pid:1@host", 2, "ab", heartbeat_time=5_000),
    Inventory(INSTANCE, "of nobody", 77, "cd"),
    Inventory(ENDPOINT, "/pay", 2, detect_point=1),
    Inventory(ENDPOINT, "/other", 2, detect_point=0),
)


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    storage, reader, health = EmbeddedStorage(), MemoryReader(), Health()
    directory: Path = tmp_path_factory.mktemp("storage")
    storage.start(directory / "skyfarer.duckdb", UTC)
    for one in REGISTERED:
        apply(storage, [one])
    health.started()
    server = QueryServer(
        *(socket.create_server(("127.0.0.1", 0)), reader, reader.ledger, health, Registry()),
        *(HandClock(0), UTC),
        plan=plan_of(shipped()),
        inventories=storage,
    )
    server.start()
    url = f"http://127.0.0.1:{server.port}"
    with httpx.Client(base_url=url, trust_env=False, timeout=60) as client:
        yield client
    server.stop(5)
    storage.stop()


def rows(http: httpx.Client, **asked: str | int):
    answer = http.get("/status/registry", params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()["rows"]


def test_services_stand_by_id_with_their_type_and_what_an_address_turned_out_to_be(http):
    shop, address, *_ = rows(http)
    assert shop == {
        "id": 2,
        "name": "shop",
        "type": "Http",
        "registered": 4_000,
        "heartbeat": 0,
        "mapping": None,
        "address": None,
        "properties": '{"a": "1"}',
    }
    assert address["mapping"] == {"id": 2, "name": "shop"}
    assert address["address"] == {"id": 2, "name": "10.0.0.1:80"}


def test_instances_and_endpoints_have_the_name_of_their_service(http):
    one, lost = rows(http, kind="instance")
    assert (one["name"], one["uuid"]) == ("shop-pid:1@host", "ab")
    assert one["service"] == {"id": 2, "name": "shop"}
    assert lost["service"] == {"id": 77, "name": None}
    found = {row["name"]: row["detectPoint"] for row in rows(http, kind="endpoint")}
    assert found == {"/pay": "SERVER", "/other": "CLIENT"}
    (address,) = rows(http, kind="address")
    assert (address["name"], address["type"]) == ("10.0.0.1:80", "Database")


def test_a_name_is_found_by_a_part_of_it_and_by_its_id(http):
    assert [row["name"] for row in rows(http, keyword="SHO")] == ["shop"]
    assert [row["name"] for row in rows(http, keyword="%_")] == [HOSTILE]
    assert [row["id"] for row in rows(http, kind="endpoint", id=3)] == [3]
    assert rows(http, keyword="'; DROP TABLE service_inventory; --") == rows(http, id=999) == []


def test_pages_follow_each_other_and_the_last_says_so(http):
    first = http.get("/status/registry", params={"size": 3}).json()
    second = http.get("/status/registry", params={"size": 3, "page": 2}).json()
    assert ([row["id"] for row in first["rows"]], first["more"]) == ([2, 3, 4], True)
    assert ([row["id"] for row in second["rows"]], second["more"]) == ([5], False)


def test_what_is_too_long_is_cut_and_says_how_long_it_was(http):
    (row,) = rows(http, keyword="xxx")
    assert row["name"] == f"{'x' * NAME_CHARS_MAX}… (1000000 characters)"
    assert len(row["properties"]) < PROPERTIES_CHARS_MAX + 40
    assert row["type"] == "99"


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"kind": "planet"}, "kind must be one of service, instance, endpoint, address"),
        ({"page": "0"}, "page must be from 1 to"),
        ({"page": "-1"}, "page must be a number"),
        ({"page": "١"}, "page must be a number"),
        ({"size": "1001"}, "size must be from 1 to 1000"),
        ({"page": "9999", "size": "1000"}, "pages reach the first 10000"),
        ({"id": "99999999999"}, "id must be a number"),
        ({"keyword": "x" * 2_000}, "a keyword has at most 1024 characters"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_a_sentence(http, asked, why):
    answer = http.get("/status/registry", params=asked)
    assert answer.status_code == 400
    assert why in answer.json()["errors"][0]["message"]
