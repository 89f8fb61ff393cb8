from __future__ import annotations

from datetime import UTC

from contracts.parked_contract import ALL, RECORDS, ParkedContract, intended, park
from skyfarer.oap.storage.postgresql import PostgresStorage
from third_parties.postgresql import Server


class TestPostgresParked(ParkedContract):
    pass


def test_numbers_and_their_producer_outlive_the_process(conninfo: str) -> None:
    found: list[object] = []
    for _ in range(2):
        storage = PostgresStorage(conninfo)
        storage.start(UTC)
        if not found:
            park(storage, *RECORDS)
        found.append((storage.retry_producer(), intended(storage), storage.parked_entries(ALL)))
        storage.stop()
    assert found[0] == found[1]


def test_another_database_is_another_producer(storage: PostgresStorage, server: Server) -> None:
    other = PostgresStorage(server.space())
    other.start(UTC)
    assert other.retry_producer() != storage.retry_producer()
    other.stop()
