from __future__ import annotations

from datetime import UTC
from pathlib import Path

from contracts.parked_contract import ALL, RECORDS, ParkedContract, intended, park
from skyfarer.oap.core.parked import DAMAGED
from skyfarer.oap.storage.postgresql import PostgresStorage
from skyfarer.queue.run import CORRUPT, OVERFLOW


class TestPostgresStorage(ParkedContract):
    pass


def test_numbers_and_their_producer_outlive_the_process(tmp_path: Path) -> None:
    found: list[object] = []
    for _ in range(2):
        storage = PostgresStorage()
        storage.start(tmp_path / "skyfarer.duckdb", UTC)
        if not found:
            park(storage, *RECORDS)
        found.append((storage.retry_producer(), intended(storage), storage.parked_entries(ALL)))
        storage.stop()
    assert found[0] == found[1]


def test_another_file_is_another_producer(storage: PostgresStorage, tmp_path: Path) -> None:
    other = PostgresStorage()
    other.start(tmp_path / "other.duckdb", UTC)
    assert other.retry_producer() != storage.retry_producer()
    other.stop()


def test_the_queues_words_for_damaged_bytes_are_the_contracts() -> None:
    assert DAMAGED == (CORRUPT, OVERFLOW)
