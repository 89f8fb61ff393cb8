"""Coordinators that are stopped when their test ends, and processes that are ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from contracts.coordinator_contract import TIMEOUT_S, Member
from oap.cluster.member import coordinator
from skyfarer.oap.cluster.membership import Membership
from skyfarer.oap.core.cluster import Node
from third_parties.servers import Server


@pytest.fixture
def join(server: Server, kind: str) -> Iterator[Callable[..., Membership]]:
    joined: list[Membership] = []

    def make(address: str = "", **settings: Any) -> Membership:
        joined.append(coordinator(kind, address or server.address, TIMEOUT_S, **settings))
        return joined[-1]

    yield make
    for one in joined:
        one.stop(10)


@pytest.fixture
def member(server: Server, kind: str) -> Iterator[Callable[[Node], Member]]:
    members: list[Member] = []

    def make(node: Node) -> Member:
        members.append(Member(kind, server.address, node))
        return members[-1]

    yield make
    for one in members:
        one.end()
