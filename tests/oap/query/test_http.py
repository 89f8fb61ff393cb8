"""The HTTP door: what it answers, what it refuses, and how it counts."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from skyfarer.base.errors import RetryableError
from skyfarer.oap.core.cluster import Node
from skyfarer.oap.query import limits
from skyfarer.telemetry.health import Health
from skyfarer.telemetry.ledger import Ledger


def message_of(response) -> str:
    [error] = response.json()["errors"]
    return error["message"]


def test_the_operation_named_in_the_request_is_the_one_run(oap):
    body = {"query": "query a { version } query b { listLayers }", "operationName": "b"}
    data = oap.http.post("/graphql", json=body).json()["data"]
    assert list(data) == ["listLayers"]


def test_a_client_that_offers_to_go_on_in_http_2_is_heard_in_this_one(oap):
    """As Java's own does with every request."""
    offer = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAMA"}
    for _ in range(2):
        answer = oap.http.post("/graphql", json={"query": "{ listLayers }"}, headers=offer)
        assert (answer.status_code, list(answer.json()["data"])) == (200, ["listLayers"])


def test_a_document_with_commas_comments_and_aliases_is_read_as_graphql(oap):
    data = oap.ask("# who\nquery version{a:version,,b:version,\n}")
    assert data["a"] == data["b"]


def test_errors_of_a_document_come_inside_a_200(oap):
    for query in (
        "",
        "{",
        "{ noSuchField }",
        "mutation { noSuchField }",
        "{ listServices }",
        '{ version } "',
        "query ($layer: String!) { listServices(layer: $layer) { name } }",
    ):
        assert oap.errors(query), query


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"[]",
        b"{}",
        b'{"query": 7}',
        b'{"query": "{version}", "variables": []}',
        b'{"query": "{version}", "operationName": {}}',
        b'{"query": "{version}", "variables": {"x": NaN}}',
        b'{"query": "{version}", "variables": {"x": "\\ud800"}}',
        b'{"query": "\xff"}',
        b"[" * 100_000,
        b'{"query":"{version}","variables":{"x":' + b"9" * 10_000 + b"}}",
    ],
)
def test_a_body_that_is_no_request_is_400_with_one_sentence(oap, body):
    response = oap.http.post("/graphql", content=body)
    assert response.status_code == 400
    assert message_of(response)


def test_a_body_beyond_the_limit_is_413(oap):
    response = oap.http.post("/graphql", content=b" " * (limits.BODY_BYTES_MAX + 1))
    assert response.status_code == 413


def test_a_body_beyond_the_limit_is_refused_without_a_length_too(oap):
    chunks = (b" " * 65_536 for _ in range(limits.BODY_BYTES_MAX // 65_536 + 1))
    assert oap.http.post("/graphql", content=chunks).status_code == 413


def test_get_on_graphql_is_405_and_other_paths_404(oap):
    assert oap.http.get("/graphql").status_code == 405
    assert oap.http.get("/nothing").status_code == 404


@pytest.mark.parametrize(
    "query",
    [
        "{" + " version" * (limits.TOKENS_MAX + 1) + "}",
        "{" + " version" * (limits.FIELDS_MAX + 1) + "}",
        "{ " + "a { " * 5_000 + "b" + " }" * 5_000 + "}",
        "{ " + "a { " * limits.DEPTH_MAX + "b" + " }" * limits.DEPTH_MAX + "}",
        "{ " + "... { " * 1_000 + "version" + " }" * 1_000 + "}",
        "{ ...a } fragment a on Query { ...b } fragment b on Query { ...a }",
        "{ ...f0 }"
        + "".join(f"fragment f{n} on Query {{ ...f{n + 1} }} " for n in range(2_000))
        + "fragment f2000 on Query { version }",
        "{ ...f0 }"
        + "".join(f"fragment f{n} on Query {{ ...f{n + 1} ...f{n + 1} }} " for n in range(40))
        + "fragment f40 on Query { version }",
    ],
    ids=["tokens", "fields", "syntax-depth", "depth", "inline", "cycle", "chain", "bomb"],
)
def test_a_document_beyond_a_limit_is_refused_with_one_sentence(oap, query):
    [message] = oap.errors(query)
    assert message
    assert 'outcome="refused"' in oap.registry.render()


def test_as_many_expressions_as_the_ui_ever_sends_are_within_the_limits(oap):
    owner = (
        "scope serviceID serviceName normal serviceInstanceID serviceInstanceName "
        "endpointID endpointName"
    )
    results = f"results{{metric{{labels{{key value}}}} values{{name:id value owner{{{owner}}}}}}}"
    fields = "".join(
        f"e{n}: execExpression(expression: $expression, entity: $entity, duration: $duration)"
        f"{{type {results} error}}, "
        for n in range(200)
    )
    data = oap.ask(
        f"query q($expression: String!, $entity: Entity!, $duration: Duration!) {{{fields}}}",
        expression="service_cpm",
        entity={"serviceName": "cart", "normal": True},
        duration={"start": "2026-11-15 0800", "end": "2026-11-15 0829", "step": "MINUTE"},
    )
    assert len(data) == 200
    assert len(data["e199"]["results"][0]["values"]) == 30


def test_a_failure_of_storage_is_told_and_one_unforeseen_is_not_shown(oap):
    oap.reader.failure = RetryableError("storage is starting")
    assert oap.errors("{ listServices { name } }") == ["storage is starting"]
    oap.reader.failure = RuntimeError("password=hunter2")
    [message] = oap.errors("{ listServices { name } }")
    assert "hunter2" not in message and "internal error" in message
    oap.reader.failure = None
    assert oap.ask("{ listServices { name } }") == {"listServices": []}


def test_an_answer_does_not_wait_for_the_acknowledgement_of_its_head(oap):
    """The server's end of our connection, found among this process's sockets by who we are."""
    with socket.create_connection((oap.http.base_url.host, oap.http.base_url.port)) as ours:
        ours.sendall(b"GET /healthcheck HTTP/1.1\r\nHost: h\r\n\r\n")
        assert ours.recv(65_536).startswith(b"HTTP/1.1 200")
        ends = [end for end in map(opened, Path("/proc/self/fd").iterdir()) if end is not None]
        [theirs] = [end for end in ends if peer_of(end) == ours.getsockname()]
        assert theirs.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        for end in ends:
            end.close()


def opened(descriptor: Path) -> socket.socket | None:
    if not descriptor.is_socket():
        return None
    return socket.socket(fileno=os.dup(int(descriptor.name)))


def peer_of(end: socket.socket) -> object:
    try:
        return end.getpeername()
    except OSError:
        return None


def test_the_healthcheck_is_200_when_healthy_and_503_when_not(oap):
    assert oap.http.get("/healthcheck").status_code == 200
    oap.health.set("pipeline", False, "stopped")
    response = oap.http.get("/healthcheck")
    assert response.status_code == 503
    assert response.json() == {"score": 1, "details": "pipeline: stopped"}


def test_half_a_letter_does_not_cost_the_answer(oap):
    oap.health.set("pipeline", False, "a\udc80b é")
    assert oap.http.get("/healthcheck").json()["details"] == "pipeline: a\udc80b é"


def test_the_ledger_is_shown_and_says_whether_it_balances(oap):
    oap.reader.books = Ledger(accepted=10, delivered=6, queued=3, dropped={"malformed": 1})
    assert oap.http.get("/status/ledger").json() == {
        "accepted": 10,
        "delivered": 6,
        "queued": 3,
        "dropped": {"malformed": 1},
        "balanced": True,
    }
    oap.reader.books = Ledger(accepted=10, delivered=6, queued=3, dropped={})
    assert oap.http.get("/status/ledger").json()["balanced"] is False
    oap.reader.failure = OSError("gone")
    assert oap.http.get("/status/ledger").status_code == 503


def test_nodes_are_shown_once_each_in_the_order_that_all_agree_on(oap):
    here, there = Node("10.0.0.2", 11800, is_self=True), Node("10.0.0.10", 11800)
    server = oap.another(oap.health, nodes=lambda: [here, there, there])
    server.start()
    try:
        url = f"http://127.0.0.1:{server.port}/status/cluster/nodes"
        assert httpx.get(url, trust_env=False, timeout=60).json() == {
            "nodes": [
                {"host": "10.0.0.10", "port": 11800, "self": False},
                {"host": "10.0.0.2", "port": 11800, "self": True},
            ]
        }
    finally:
        server.stop(5)


def test_requests_are_counted_by_root_field_and_outcome(oap):
    oap.ask("{ a: version b: version listLayers }")
    oap.errors(
        '{ listInstances(serviceId: "x", duration: {start: "", end: "", step: DAY}) { id } }'
    )
    oap.errors("{ nope }")
    oap.reader.failure = OSError("gone")
    oap.errors("{ listServices { id } }")
    lines = oap.registry.render().splitlines()
    for labels, value in (
        ('operation="version",outcome="ok"', 2),
        ('operation="listLayers",outcome="ok"', 1),
        ('operation="listInstances",outcome="refused"', 1),
        ('operation="none",outcome="refused"', 1),
        ('operation="listServices",outcome="failed"', 1),
    ):
        assert f"query_requests_total{{{labels}}} {value}" in lines


def test_hostile_names_come_back_as_they_were_stored(oap):
    names = ["<script>alert(1)</script>", "a\u0000b", "'; --", "{{7*7}}", "ünïcødé 😀"]
    for name in names:
        oap.reader.add_service(name)
    found = oap.ask("{ listServices { name } }")["listServices"]
    assert [service["name"] for service in found] == names


def test_many_clients_at_once_are_all_answered(oap):
    body = json.dumps({"query": "{ version listLayers }"})
    with ThreadPoolExecutor(16) as pool:
        answers = pool.map(lambda _: oap.http.post("/graphql", content=body), range(100))
        assert {answer.status_code for answer in answers} == {200}


def test_the_health_is_told_while_storage_makes_everyone_wait(oap):
    oap.reader.gate.clear()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(oap.ask, "{ listServices { name } }")
        try:
            assert oap.http.get("/healthcheck").status_code == 200
            assert not waiting.done()
        finally:
            oap.reader.gate.set()
        assert waiting.result() == {"listServices": []}


def test_more_requests_than_may_wait_are_turned_away_and_the_others_answered(oap):
    oap.reader.gate.clear()
    extra = 3

    async def flood() -> list[int]:
        bounds = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=oap.http.base_url, limits=bounds) as http:
            body = {"query": "{ listServices { name } }"}
            asked = [
                asyncio.create_task(http.post("/graphql", json=body, timeout=60))
                for _ in range(limits.REQUESTS_WAITING_MAX + extra)
            ]
            for answered in itertools.islice(asyncio.as_completed(asked), extra):
                assert (await answered).status_code == 503
            oap.reader.gate.set()
            return sorted([answer.status_code for answer in await asyncio.gather(*asked)])

    expected = [200] * limits.REQUESTS_WAITING_MAX + [503] * extra
    assert asyncio.run(flood()) == expected


def test_everything_is_503_with_a_reason_until_the_program_has_started(oap):
    health = Health()
    server = oap.another(health)
    server.start()
    oap.reader.failure = AssertionError("storage was asked before it was there")
    body = {"query": "{ listServices { name } }"}
    try:
        with httpx.Client(
            base_url=f"http://127.0.0.1:{server.port}", trust_env=False, timeout=60
        ) as http:
            for early in (
                http.post("/graphql", json=body),
                http.get("/status/ledger"),
                http.get("/status/cluster/nodes"),
            ):
                assert early.status_code == 503
                assert message_of(early) == "the OAP is starting; try again in a moment"
                assert early.headers["retry-after"] == "1"
            early = http.get("/healthcheck")
            assert (early.status_code, early.json()["score"]) == (503, -1)
            oap.reader.failure = None
            health.started()
            assert http.post("/graphql", json=body).json() == {"data": {"listServices": []}}
            assert http.get("/healthcheck").status_code == 200
    finally:
        server.stop(5)


def test_stopping_twice_or_before_the_start_is_safe_and_closes_the_port(oap):
    unstarted = oap.another(oap.health)
    unstarted.stop(1)
    server = oap.another(oap.health)
    server.start()
    server.stop(5)
    server.stop(5)
    for port in (unstarted.port, server.port):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=10)
