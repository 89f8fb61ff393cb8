"""A web application under the real Python agent of SkyWalking, read back through GraphQL."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.reading import calls, seen
from e2e.shops import Shop, python_shop
from skyfarer.testing.programs import Oap, eventually, ledger_since

pytestmark = [pytest.mark.e2e, pytest.mark.bounded]

VISITS = {"/catalogue": 37, "/checkout": 5}
VISIBLE_WITHIN_S = 10.0
"""The issue's own bound, from the last call to the count on the query side."""


METERS_WITHIN_S = 240.0


def memory_used(oap: Oap) -> int:
    """As the agent reports it of its process, every five seconds."""
    instance = {"serviceInstanceName": "real-shop-1"}
    return calls(oap, "meter_instance_pvm_total_mem_utilization", "real-shop", **instance)


@pytest.fixture
def books_before(oap: Oap) -> dict[str, Any]:
    return oap.ledger()


@pytest.fixture
def shop(oap: Oap, tmp_path: Path) -> Iterator[Shop]:
    shop = python_shop(tmp_path, "real-shop", f"127.0.0.1:{oap.grpc_port}", meters=True)
    try:
        shop.await_ready()
        yield shop
    finally:
        shop.stop()


def test_what_the_real_agent_saw_is_read_back_exactly(
    oap: Oap, books_before: dict[str, Any], shop: Shop
) -> None:
    shop.sell(VISITS)
    last_call = time.monotonic()
    total = sum(VISITS.values())

    def visible() -> bool:
        found = seen(oap, "real-shop")
        return found.get("calls") == total and len(found["instances"]) == 1

    eventually(visible, VISIBLE_WITHIN_S, f"{total} calls visible")
    print(f"visible {time.monotonic() - last_call:.1f} s after the last call", file=sys.stderr)
    found = seen(oap, "real-shop")
    assert found["layers"] == ["GENERAL"]
    assert found["instances"] == [{"name": "real-shop-1", "language": "PYTHON"}]
    assert found["endpoints"] == VISITS
    eventually(lambda: memory_used(oap) > 0, METERS_WITHIN_S, "the agent's meters visible")
    ledger = oap.ledger()
    assert ledger["balanced"]
    assert ledger_since(books_before, ledger)["dropped"] == {}
