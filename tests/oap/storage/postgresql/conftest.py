"""The server that the tests of the PostgreSQL storage share, and a schema of its own for each."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC

import pytest

from skyfarer.oap.storage.postgresql import PostgresStorage
from third_parties.postgresql import Server

NEVER_S = 3600.0


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    server = Server()
    try:
        yield server.start()
    finally:
        server.close()


@pytest.fixture
def conninfo(server: Server) -> str:
    return server.space()


@pytest.fixture
def storage(conninfo: str) -> Iterator[PostgresStorage]:
    """Folds when it is told to, however long a test takes."""
    storage = PostgresStorage(conninfo, fold_s=NEVER_S)
    storage.start(UTC)
    yield storage
    storage.stop()


@pytest.fixture
def other(conninfo: str, storage: PostgresStorage) -> Iterator[PostgresStorage]:
    """Another node's, of the same tables."""
    other = PostgresStorage(conninfo, fold_s=NEVER_S)
    other.start(UTC)
    yield other
    other.stop()
