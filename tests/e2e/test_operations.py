"""Operation by operation: the documents of clients, sent to an OAP that a real agent reports to.

What is asked is `golden/documents`; what must come back follows from what was sold in the shop. An
operation without a check fails here, as one without a document fails beside the schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from e2e.operations import maps, metadata, metrics, records, unkept
from e2e.operations.stage import DEPOT, SHOP, Checks, Stage, now_ms, set_up
from e2e.shops import python_shop
from golden.documents import documents
from skyfarer.testing.programs import Oap

pytestmark = pytest.mark.e2e

CHECKS: Final[Checks] = {
    **metadata.CHECKS,
    **metrics.CHECKS,
    **maps.CHECKS,
    **records.CHECKS,
    **unkept.CHECKS,
}


@pytest.fixture(scope="module")
def stage(oap_for_many: Oap, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    directory, backend = tmp_path_factory.mktemp("asked"), f"127.0.0.1:{oap_for_many.grpc_port}"
    depot = python_shop(directory, DEPOT, backend)
    shop = python_shop(directory, SHOP, backend, "grpc", depot.url)
    try:
        depot.await_ready()
        shop.await_ready()
        stage = Stage(oap_for_many, now_ms())
        set_up(stage, shop)
        yield stage
    finally:
        shop.stop()
        depot.stop()


def test_every_operation_has_a_check_and_every_check_an_operation() -> None:
    assert CHECKS.keys() == documents().keys()


@pytest.mark.parametrize("operation", documents())
def test_an_operation_answers_with_what_was_sent(stage: Stage, operation: str) -> None:
    CHECKS[operation](stage)
