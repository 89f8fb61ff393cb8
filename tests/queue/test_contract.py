"""The queue in files and its twin in memory pass one suite; beside it, what the twin alone owes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contracts.queue_contract import AnyQueue, MakeQueue, QueueContract
from skyfarer.base.errors import ConfigError
from skyfarer.base.units import GIB, KIB, MIB
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.held import MemorySettings
from skyfarer.queue.memory import MemoryQueue
from skyfarer.queue.reader import Reader
from skyfarer.queue.settings import QueueSettings
from skyfarer.queue.writer import Writer
from skyfarer.testing.faulty_disk import FaultyDisk

BOUNDS = {"capacity_bytes": 64 * KIB, "record_bytes_max": 4 * KIB}


class FileQueue:
    """The three parts on one directory."""

    def __init__(self, settings: QueueSettings) -> None:
        self._directory = settings.directory
        self.writer = Writer(settings, FaultyDisk())
        self._made: list[Reader | Consumer] = []

    def reader(self) -> Reader:
        self._made.append(reader := Reader(self._directory))
        return reader

    def consumer(self, name: str = "main") -> Consumer:
        self._made.append(consumer := Consumer(self._directory, name))
        return consumer

    def close(self) -> None:
        for part in (self.writer, *self._made):
            part.stop(0.0)


class TestFileQueue(QueueContract):
    @pytest.fixture
    def make_queue(self, tmp_path: Path) -> Iterator[MakeQueue]:
        made: list[FileQueue] = []

        def make(**changes: Any) -> AnyQueue:
            shape = BOUNDS | {"segment_bytes": 16 * KIB} | changes
            made.append(FileQueue(QueueSettings(tmp_path / "queue", **shape)))
            return made[-1]

        yield make
        for queue in made:
            queue.close()


class TestMemoryQueue(QueueContract):
    @pytest.fixture
    def make_queue(self) -> MakeQueue:
        return lambda **changes: MemoryQueue(MemorySettings(**(BOUNDS | changes)))


@pytest.mark.parametrize("size", [0, 1, 100, 2000])
def test_the_memory_taken_stays_within_the_capacity(size: int) -> None:
    capacity = 1 * MIB
    queue = MemoryQueue(MemorySettings(capacity, 4 * KIB, when_full="drop_oldest"))
    queue.writer.start()
    tracemalloc.start()
    try:
        for number in range(6000):
            queue.writer.append(1000 + number, [bytearray(size)])
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert queue.writer.oldest > 0
    assert most <= capacity


def test_the_memory_of_records_is_given_back_when_all_have_committed_them() -> None:
    queue = MemoryQueue(MemorySettings(**BOUNDS, consumers=("a", "b")))
    queue.writer.start()
    queue.writer.append(1, [b"x"] * 8)
    for name, oldest in (("a", 0), ("b", 5)):
        consumer = queue.consumer(name)
        consumer.start()
        consumer.commit(5)
        assert queue.writer.oldest == oldest


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"record_bytes_max": 64 * KIB}, "record_bytes_max"),
        ({"record_bytes_max": 0}, "record_bytes_max"),
        ({"when_full": "panic"}, "when_full"),
        ({"block_timeout_s": 0.0}, "block_timeout_s"),
        ({"block_timeout_s": 61.0}, "block_timeout_s"),
        ({"capacity_bytes": 2048 * GIB}, "capacity_bytes"),
        ({"consumers": ()}, "at least one"),
        ({"consumers": ("a", "a")}, "each once"),
        ({"consumers": ("a/b",)}, "a/b"),
    ],
)
def test_bounds_that_make_no_sense_are_refused_in_a_sentence(
    changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        MemorySettings(**(BOUNDS | changes))
