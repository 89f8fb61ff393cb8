"""One segment comes to two nodes at once, on one PostgreSQL: it counts once, and no batch fails."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from oap.pipeline.bench import BUCKET, PLAN, SETTINGS
from oap.pipeline.faults.work import NOW, fill, pairs
from skyfarer.oap.core import ids
from skyfarer.oap.core.storage import Analysed, StoredMeanwhileError, Value
from skyfarer.oap.pipeline.metrics import Metrics
from skyfarer.oap.pipeline.sink import BatchSink
from skyfarer.oap.pipeline.sources.queue import QueueSource
from skyfarer.oap.storage.postgresql import PostgresStorage
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.reader import Reader
from skyfarer.telemetry import table
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.clock import HandClock
from third_parties.postgresql import Server

TIMEOUT_S = 120
DAY = BUCKET // 10_000
SERVICES = ("web", "cart")


class RacingStorage(PostgresStorage):
    """Its first batch is stored when the other's is ready, too: both have seen what is known."""

    def __init__(self, conninfo: str, ready: threading.Barrier) -> None:
        super().__init__(conninfo)
        self._ready, self._waited = ready, False
        self.races_lost = 0

    def apply(self, batch: Analysed) -> None:
        if not self._waited:
            self._waited = True
            self._ready.wait(TIMEOUT_S)
        try:
            super().apply(batch)
        except StoredMeanwhileError:
            self.races_lost += 1
            raise


class Node:
    """With a queue of its own in `directory`, read to its end as one batch."""

    def __init__(self, directory: Path, spark: SparkSession, storage: PostgresStorage) -> None:
        self._directory, self._spark, self.storage = directory / "queue", spark, storage
        self.reader = Reader(self._directory)
        self.consumer = Consumer(self._directory, "analysis")
        self.registry = Registry()
        self._sink = BatchSink(
            *(storage, storage, self.reader, self.consumer, Metrics(PLAN, SETTINGS), SETTINGS),
            *(self.registry, HandClock(NOW), lambda: None),
        )

    def __enter__(self) -> Node:
        self.reader.start()
        self.consumer.start()
        self.storage.start(UTC)
        return self

    def __exit__(self, *_: object) -> None:
        self.storage.stop()
        self.consumer.stop()
        self.reader.stop()

    def run(self) -> None:
        given = {"directory": self._directory, "start": 0, "end": self.reader.writing()}
        source = self._spark.read.format(QueueSource.name()).option("splits", "1")
        self._sink(source.options(**{key: str(one) for key, one in given.items()}).load(), 0)

    def duplicates(self) -> int:
        return int(self.registry.value(table.PIPELINE_RECORDS, outcome="duplicate"))

    def told(self) -> dict[str, dict[int, dict[str, Value]]]:
        """The sums of a day."""
        (plan,) = (one for one in PLAN.sources if one.source == "Service")
        columns = [one.column for one in plan.accumulators]
        return {
            name: self.storage.series("Service", ids.service_id(name), columns, DAY, DAY)
            for name in SERVICES
        }

    def traces(self, numbers: range) -> list[list[str]]:
        stored = (self.storage.trace(f"trace-{n}", 9, 10**6) for n in numbers)
        return [sorted(one.brief.segment_id for one in some) for some in stored]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    try:
        yield server.start()
    finally:
        server.close()


def test_what_two_nodes_received_at_once_counts_once_and_both_batches_land(
    server: Server, spark: SparkSession, tmp_path: Path
) -> None:
    ready, shared = threading.Barrier(2), server.space()
    for name, numbers in (("a", range(6)), ("b", range(3, 9)), ("alone", range(9))):
        fill(tmp_path / name, pairs(numbers))
    with Node(tmp_path / "alone", spark, PostgresStorage(server.space())) as alone:
        alone.run()
        once, traces = alone.told(), alone.traces(range(9))
    both = [RacingStorage(shared, ready) for _ in "ab"]
    with (
        Node(tmp_path / "a", spark, both[0]) as first,
        Node(tmp_path / "b", spark, both[1]) as second,
    ):
        with ThreadPoolExecutor(2) as pool:
            running = [pool.submit(node.run) for node in (first, second)]
        assert [one.result() for one in running] == [None, None]
        assert sum(storage.races_lost for storage in both) == 1
        assert sorted((first.duplicates(), second.duplicates())) == [0, 6]
        assert first.told() == second.told() == once
        assert first.traces(range(9)) == traces
        for node in (first, second):
            assert node.consumer.committed() == node.reader.writing() == 12
            progress = node.storage.progress(node.reader.queue_id)
            resent = {"duplicate": node.duplicates()} if node.duplicates() else {}
            assert (progress.next_sequence, progress.dropped) == (12, resent)
