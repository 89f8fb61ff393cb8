"""A disk that is full: batches are refused until there is room, and go on where they were.

The file lies on a real small file system. A full log refuses a commit; a full file makes DuckDB
give up the whole database, after a commit that may be durable.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import pytest

from skyfarer.base.errors import RetryableError
from skyfarer.base.units import MIB
from skyfarer.oap.storage.embedded import EmbeddedStorage
from skyfarer.testing.programs import eventually
from third_parties.small_disk import small_disk

from .numbered import QUEUE, numbered, whole

WITHIN_S = 60.0
LATER = 10
"""Batches that are still to come when there is room again."""


class Disk:
    """Of 64 MiB, most of them taken."""

    def __init__(self, place: Path) -> None:
        self.path = place / "skyfarer.duckdb"
        self._filler = place / "filler"
        self._filler.write_bytes(bytes(54 * MIB))

    def free(self) -> None:
        self._filler.unlink()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with small_disk(tmp_path / "small", 64 * MIB) as place:
        yield Disk(place)


@pytest.fixture(params=["1GB", "256KB"], ids=["full log", "full file"])
def storage(request: pytest.FixtureRequest, disk: Disk) -> Iterator[EmbeddedStorage]:
    storage = EmbeddedStorage()
    storage.start(disk.path, UTC)
    storage._cursor().execute(f"SET checkpoint_threshold = '{request.param}'")
    yield storage
    storage.stop()


def fill(storage: EmbeddedStorage) -> RetryableError:
    """Batches until one is refused."""
    while True:
        try:
            storage.apply(numbered(storage.applied(QUEUE)))
        except RetryableError as error:
            return error


def test_a_batch_that_finds_no_room_is_to_be_tried_again(storage: EmbeddedStorage) -> None:
    assert "No space left on device" in str(fill(storage))


def test_batches_go_on_by_themselves_when_there_is_room(
    storage: EmbeddedStorage, disk: Disk
) -> None:
    """As the job has it: what storage has applied is asked, and storage waited for."""
    refused, done = threading.Event(), threading.Event()

    def work() -> None:
        left = LATER
        while left:
            try:
                storage.apply(numbered(storage.applied(QUEUE)))
                left -= refused.is_set()
            except RetryableError:
                refused.set()
                done.wait(0.05)
        done.set()

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    assert refused.wait(WITHIN_S)
    disk.free()
    assert done.wait(WITHIN_S)
    worker.join(WITHIN_S)
    assert whole(storage) >= LATER
    storage.stop()
    storage.start(disk.path, UTC)
    assert whole(storage) >= LATER


def test_what_was_applied_is_read_once_there_is_room(storage: EmbeddedStorage, disk: Disk) -> None:
    fill(storage)
    disk.free()
    eventually(lambda: readable(storage), WITHIN_S, "it is read again")
    assert whole(storage) > 2


def readable(storage: EmbeddedStorage) -> bool:
    try:
        return bool(storage.services(None))
    except RetryableError:
        return False


def test_a_file_that_was_full_is_opened_by_the_next_process(
    storage: EmbeddedStorage, disk: Disk
) -> None:
    fill(storage)
    storage.stop()
    disk.free()
    storage.start(disk.path, UTC)
    assert whole(storage) > 2
