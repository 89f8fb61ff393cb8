from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from third_parties import kafka
from third_parties.grpc_upstream import GrpcUpstream


@pytest.fixture
def upstream() -> Iterator[Callable[..., GrpcUpstream]]:
    """`upstream()` starts one; it is stopped with the test."""
    started: list[GrpcUpstream] = []

    def start(**options: Any) -> GrpcUpstream:
        started.append(GrpcUpstream(**options).start())
        return started[-1]

    yield start
    for server in started:
        server.stop()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kafka.Broker]:
    if reason := kafka.missing():
        pytest.skip(reason)
    broker = kafka.Broker(tmp_path_factory.mktemp("kafka"))
    try:
        broker.start()
        yield broker
    finally:
        broker.kill()
