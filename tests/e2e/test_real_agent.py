"""A web application under the real Python agent of SkyWalking, read back through GraphQL."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
import urllib.error
import urllib.request
import venv
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from skyfarer.testing.programs import Oap, eventually, free_port, ledger_since

pytestmark = pytest.mark.e2e

HERE = Path(__file__).parent / "agent"
CACHE = Path(__file__).parents[2] / ".cache"
CALLS = {"/catalogue": 37, "/checkout": 5}
VISIBLE_WITHIN_S = 10.0
"""The issue's own bound, from the last call to the count on the query side."""


@pytest.fixture(scope="session")
def agent_python() -> Path:
    """An environment of the agent's own, made once a lock."""
    lock = HERE / "requirements.lock"
    home = CACHE / f"agent-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}"
    python = home / "bin" / "python"
    if not (home / "ready").exists():
        venv.create(home, clear=True, with_pip=True)
        quiet = ["--quiet", "--disable-pip-version-check", "--require-hashes"]
        subprocess.run([python, "-m", "pip", "install", *quiet, "-r", lock], check=True)
        (home / "ready").touch()
    return python


@pytest.fixture
def books_before(oap: Oap) -> dict[str, Any]:
    return oap.ledger()


@pytest.fixture
def shop(agent_python: Path, oap: Oap, tmp_path: Path) -> Iterator[str]:
    port = free_port()
    command = [agent_python, HERE / "app.py", f"127.0.0.1:{oap.grpc_port}", str(port)]
    with (tmp_path / "shop.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        eventually(lambda: status(f"{url}/") == 404, 60, "the shop answers")
        yield url
    finally:
        process.terminate()
        process.wait(30)


def status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=10) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def duration() -> dict[str, str]:
    now = datetime.now(UTC)
    start, end = now - timedelta(minutes=10), now + timedelta(minutes=1)
    return {"start": f"{start:%Y-%m-%d %H%M}", "end": f"{end:%Y-%m-%d %H%M}", "step": "MINUTE"}


def read_back(oap: Oap) -> dict[str, Any]:
    """Service, instances, endpoints and the number of calls of each, as a client sees them."""
    services = oap.graphql('{ listServices(layer: "GENERAL") { id name layers } }')["listServices"]
    found = [service for service in services if service["name"] == "real-shop"]
    if not found:
        return {}
    answer = oap.graphql(
        """query ($id: ID!, $duration: Duration!) {
          listInstances(serviceId: $id, duration: $duration) { name language }
          findEndpoint(serviceId: $id, keyword: "", limit: 100, duration: $duration) { name } }""",
        id=found[0]["id"],
        duration=duration(),
    )
    endpoints = [endpoint["name"] for endpoint in answer["findEndpoint"]]
    return {
        "layers": found[0]["layers"],
        "instances": answer["listInstances"],
        "calls": calls(oap, "service_cpm"),
        "endpoints": {name: calls(oap, "endpoint_cpm", endpointName=name) for name in endpoints},
    }


def calls(oap: Oap, metric: str, **entity: str) -> int:
    answer = oap.graphql(
        """query ($metric: String!, $entity: Entity!, $duration: Duration!) {
          execExpression(expression: $metric, entity: $entity, duration: $duration) {
            error results { values { value } } } }""",
        metric=metric,
        entity={"serviceName": "real-shop", "normal": True, **entity},
        duration=duration(),
    )["execExpression"]
    assert answer["error"] is None, answer
    return sum(int(point["value"] or 0) for point in answer["results"][0]["values"])


def test_what_the_real_agent_saw_is_read_back_exactly(
    oap: Oap, books_before: dict[str, Any], shop: str
) -> None:
    warm_up = 1  # the 404 by which the fixture knew that the shop answers
    for path, times in CALLS.items():
        for _ in range(times):
            assert status(shop + path) == (500 if path == "/checkout" else 200)
    last_call = time.monotonic()
    total = sum(CALLS.values()) + warm_up

    def visible() -> bool:
        seen = read_back(oap)
        return seen.get("calls") == total and len(seen["instances"]) == 1

    eventually(visible, VISIBLE_WITHIN_S, f"{total} calls visible")
    print(f"visible {time.monotonic() - last_call:.1f} s after the last call", file=sys.stderr)
    seen = read_back(oap)
    assert seen["layers"] == ["GENERAL"]
    assert seen["instances"] == [{"name": "real-shop-1", "language": "PYTHON"}]
    assert seen["endpoints"] == {**CALLS, "/": warm_up}
    ledger = oap.ledger()
    assert ledger["balanced"]
    assert ledger_since(books_before, ledger)["dropped"] == {}
