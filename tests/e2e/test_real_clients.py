"""Real clients, directly and through a satellite, read back through GraphQL.

Agents of SkyWalking of both generations and OpenTelemetry's SDK, each in an environment of its own.
They share one OAP and one satellite and stay until the last test of this file, so each test waits
only for what its own client has sent.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack

import pytest

from e2e.crowd import VISIBLE_WITHIN_S, VISITS, Clients, Crowd
from e2e.reading import logs_of, normal, seen, trace, traces_of, tree
from e2e.shops import Shop
from skyfarer.testing.programs import Oap, eventually, free_port, ledger_since
from skyfarer.testing.satellites import SatelliteProgram

pytestmark = pytest.mark.e2e

SEEN_BY_PYTHON = {**VISITS, "/stock": VISITS["/basket"]}
SEEN_BY_NODE = {f"GET:{page}": times for page, times in SEEN_BY_PYTHON.items()}
ORDERS = 4
AT_ONCE_MAX = 4
REGISTERED = re.compile(r"(?:Service|Instance)\[[^,]+, (\d+)\] had register successfully")


@pytest.fixture(scope="module")
def crowd(oap_for_many: Oap, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crowd]:
    directory = tmp_path_factory.mktemp("crowd")
    otlp = {door: f"127.0.0.1:{free_port()}" for door in ("grpc", "http")}
    satellite = SatelliteProgram(
        directory,
        f"127.0.0.1:{oap_for_many.grpc_port}",
        SKYFARER_SATELLITE_OTLP_GRPC_ADDRESS=otlp["grpc"],
        SKYFARER_SATELLITE_OTLP_HTTP_ADDRESS=otlp["http"],
    )
    before = oap_for_many.ledger()
    with satellite, ExitStack() as stack:
        jobs = Clients(directory, oap_for_many, stack, otlp).jobs(satellite)
        pool = stack.enter_context(ThreadPoolExecutor(AT_ONCE_MAX))
        visits = {name: pool.submit(job) for name, job in jobs.items()}
        yield Crowd(oap_for_many, satellite, before, visits)


@pytest.mark.parametrize("service", ["python-shop", "python-shop-http"])
def test_what_the_python_agent_saw_is_read_back_exactly(crowd: Crowd, service: str) -> None:
    crowd.visited(service)
    found = crowd.seen(service, SEEN_BY_PYTHON)
    assert found["layers"] == ["GENERAL"]
    assert found["instances"] == [{"name": f"{service}-1", "language": "PYTHON"}]
    assert found["endpoints"] == SEEN_BY_PYTHON
    traces = traces_of(crowd.oap, service, "/basket")
    assert [tree(spans) for spans in traces] == VISITS["/basket"] * [
        [
            f"{service} Entry /basket",
            f"  {service} Exit /stock",
            f"    {service} Entry /stock",
        ]
    ]


@pytest.mark.parametrize("service", ["python-shop", "python-shop-http"])
def test_what_the_python_agent_logged_is_found_by_its_level_and_has_its_trace(
    crowd: Crowd, service: str
) -> None:
    crowd.visited(service)
    crowd.seen(service, SEEN_BY_PYTHON)
    eventually(
        lambda: len(logs_of(crowd.oap, service, level="WARNING")) == VISITS["/catalogue"],
        *(VISIBLE_WITHIN_S, f"the logs of {service} visible"),
    )
    logs = logs_of(crowd.oap, service, level="WARNING")
    assert {one["serviceInstanceName"] for one in logs} == {f"{service}-1"}
    assert all("asked for the catalogue" in one["content"] for one in logs)
    asked = {spans[0]["traceId"] for spans in traces_of(crowd.oap, service, "/catalogue")}
    assert {one["traceId"] for one in logs} == asked
    assert logs_of(crowd.oap, service, level="ERROR") == []


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_what_opentelemetry_saw_is_read_back_exactly(crowd: Crowd, protocol: str) -> None:
    shop = f"otel-shop-{protocol}"
    traces = crowd.visited(shop)
    asked, paid = {"GET /order": ORDERS}, {"POST /payment": ORDERS}
    for service, endpoints in ((shop, asked), (f"{shop}-pay", paid)):
        found = crowd.seen(service, endpoints)
        assert found["layers"] == ["GENERAL"]
        assert [one["name"] for one in found["instances"]] == [f"{service}-1"]
        assert found["endpoints"] == endpoints
    whole = [
        f"{shop} Entry GET /order",
        f"  {shop} Exit POST /payment",
        f"    {shop}-pay Entry POST /payment",
        f"      {shop}-pay Local book",
        f"  {shop} Local price",
    ]
    failed = [f"{whole[0]} failed", *whole[1:]]
    found_trees = [tree(trace(crowd.oap, trace_id)) for trace_id in traces]
    assert found_trees == [*(ORDERS - 1) * [whole], failed]
    eventually(
        lambda: len(logs_of(crowd.oap, shop, level="WARN")) == ORDERS,
        *(VISIBLE_WITHIN_S, f"the logs of {shop} visible"),
    )
    logs = logs_of(crowd.oap, shop, level="WARN")
    assert [one["content"] for one in logs] == [f"order {n}" for n in range(ORDERS, 0, -1)]
    assert [one["traceId"] for one in logs] == traces[::-1]


def test_an_agent_of_the_old_protocol_gets_its_ids_and_its_segments_are_analysed(
    crowd: Crowd,
) -> None:
    shops: tuple[Shop, Shop] = crowd.visited("old-shop")
    ids = [int(n) for shop in shops for n in REGISTERED.findall(shop.log.read_text())]
    assert len(ids) == 2 * len(shops) and min(ids) >= 2
    sold = {page: 2 * times for page, times in VISITS.items()}
    for shop, endpoints in zip(shops, (sold, {"/stock": sold["/basket"]}), strict=True):
        found = crowd.seen(shop.service, endpoints)
        assert found["layers"] == ["GENERAL"]
        named = f"{shop.service}-pid:{shop.process.pid}@{socket.gethostname()}"
        assert [one["name"] for one in found["instances"]] == [named]
        assert found["endpoints"] == endpoints


def test_traces_of_the_old_protocol_show_names_where_the_agent_sent_ids(crowd: Crowd) -> None:
    _, stock = crowd.visited("old-shop")
    crowd.seen("old-stock", {"/stock": 2 * VISITS["/basket"]})
    traces = traces_of(crowd.oap, "old-front", "/basket")
    assert [tree(spans) for spans in traces] == 2 * VISITS["/basket"] * [
        [
            "old-front Entry /basket",
            "  old-front Exit /stock",
            "    old-stock Entry /stock",
        ]
    ]
    peers = {span["peer"] for spans in traces for span in spans if span["type"] == "Exit"}
    assert peers == {stock.url.removeprefix("http://")}


def test_what_the_node_agent_saw_is_read_back_exactly(crowd: Crowd) -> None:
    crowd.visited("node-shop")
    found = crowd.seen("node-shop", SEEN_BY_NODE)
    assert found["layers"] == ["GENERAL"]
    assert found["endpoints"] == SEEN_BY_NODE
    traces = traces_of(crowd.oap, "node-shop", "GET:/basket")
    assert [tree(spans) for spans in traces] == VISITS["/basket"] * [
        [
            "node-shop Entry GET:/basket",
            "  node-shop Exit /stock",
            "    node-shop Entry GET:/stock",
        ]
    ]
    crowd.await_registered("node-shop", "NODEJS")


@pytest.mark.parametrize(
    ("client", "language", "endpoints"),
    [("python-shop", "PYTHON", SEEN_BY_PYTHON), ("node-shop", "NODEJS", SEEN_BY_NODE)],
)
def test_an_agent_is_seen_through_a_satellite_as_it_is_directly(
    crowd: Crowd, client: str, language: str, endpoints: dict[str, int]
) -> None:
    relayed = f"{client}-relayed"
    whole = {}
    for service in (client, relayed):
        crowd.visited(service)
        crowd.seen(service, endpoints)
        crowd.await_registered(service, language)
        basket = next(name for name in endpoints if name.endswith("/basket"))
        traces = traces_of(crowd.oap, service, basket)
        found = seen(crowd.oap, service)
        found["instances"] = [
            {**one, "name": one["name"].replace(service, "shop")} for one in found["instances"]
        ]
        whole[service] = found, [normal(spans, service) for spans in traces]
    assert whole[relayed] == whole[client]
    assert whole[relayed][0]["endpoints"] == endpoints


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_opentelemetry_is_seen_through_a_satellite_as_it_is_directly(
    crowd: Crowd, protocol: str
) -> None:
    direct, relayed = f"otel-shop-{protocol}", f"otel-shop-{protocol}-relayed"
    whole = {}
    for service in (relayed, direct):
        traces = crowd.visited(service)
        shop = crowd.seen(service, {"GET /order": ORDERS})
        office = crowd.seen(f"{service}-pay", {"POST /payment": ORDERS})
        spans = [normal(trace(crowd.oap, trace_id), service) for trace_id in traces]
        whole[service] = shop["endpoints"], office["endpoints"], spans
    assert whole[relayed] == whole[direct]
    assert whole[relayed][0] == {"GET /order": ORDERS}


def test_nothing_of_what_the_clients_sent_is_lost(crowd: Crowd) -> None:
    wait(crowd.visits.values())
    assert crowd.satellite.await_empty().dropped == {}
    ledger = crowd.oap.ledger()
    assert ledger["balanced"]
    assert ledger_since(crowd.books_before, ledger)["dropped"] == {}
