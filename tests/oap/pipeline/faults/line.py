"""A filled queue, a storage and the sink between them, which may die at any moment of a batch.

Whoever is killed leaves its files as they are. So a death inside this process is a copy of the
files, made at that moment, and an exception that nothing catches; the next life begins with the
copy. `Line.run` cuts the queue as the query does.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import duckdb
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from oap.pipeline.bench import SETTINGS
from oap.pipeline.faults.work import BATCH, NOW
from skyfarer.oap.core.storage import Analysed
from skyfarer.oap.pipeline.metrics import Metrics
from skyfarer.oap.pipeline.sink import BatchSink
from skyfarer.oap.pipeline.sources.queue import QueueSource
from skyfarer.oap.storage.embedded import EmbeddedStorage
from skyfarer.queue.consumer import Consumer
from skyfarer.queue.reader import Reader
from skyfarer.telemetry.metrics import Registry
from skyfarer.testing.clock import HandClock

Toll: TypeAlias = Callable[[str], None]
Tables: TypeAlias = dict[str, list[tuple[object, ...]]]

SEARCH: Final = "resends are looked for"
METRICS: Final = "metrics are made"
BEGIN: Final = "before the transaction"
STATEMENT: Final = "before a statement of the transaction"
COMMIT: Final = "before the commit"
COMMITTED: Final = "after the commit"
RELEASE: Final = "before the queue is told"
RELEASED: Final = "after the queue was told"
OF_THE_FILE: Final = "parked_producer"
"""A name that each storage makes up for itself when it is made."""


class Killed(BaseException):
    """Not to be caught by anything that means well."""


class Fate:
    """Does its deed once: when that moment comes for the n-th time."""

    def __init__(self, moment: str, time: int, deed: Callable[[], None]) -> None:
        self._moment, self._left, self._deed = moment, time, deed

    def __call__(self, moment: str) -> None:
        if moment == self._moment:
            self._left -= 1
            if self._left == 0:
                self._deed()


class _Statements:
    """A cursor, tolling."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, toll: Toll) -> None:
        self._cursor, self._toll = cursor, toll

    def execute(self, *statement: Any) -> duckdb.DuckDBPyConnection:
        self._toll(STATEMENT)
        return self._cursor.execute(*statement)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)


class MortalStorage(EmbeddedStorage):
    def __init__(self, toll: Toll) -> None:
        super().__init__()
        self._toll = toll

    def known_segments(self, ids: pa.ChunkedArray, minutes: pa.ChunkedArray) -> Iterable[str]:
        self._toll(SEARCH)
        return super().known_segments(ids, minutes)

    def aliases(self) -> pa.Table:
        self._toll(METRICS)
        return super().aliases()

    def apply(self, batch: Analysed) -> None:
        self._toll(BEGIN)
        super().apply(batch)
        self._toll(COMMITTED)

    @contextmanager
    def _transaction(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with super()._transaction() as cursor:
            yield cast(duckdb.DuckDBPyConnection, _Statements(cursor, self._toll))
            self._toll(COMMIT)


class MortalConsumer(Consumer):
    def __init__(self, directory: Path, toll: Toll) -> None:
        super().__init__(directory, "analysis")
        self._toll = toll

    def commit(self, sequence: int, dropped: Mapping[str, int] | None = None) -> None:
        self._toll(RELEASE)
        super().commit(sequence, dropped or {})
        self._toll(RELEASED)


class Line:
    """In a directory that holds a `queue`, and a `storage` once it has run."""

    def __init__(
        self,
        directory: Path,
        spark: SparkSession,
        metrics: Metrics,
        toll: Toll = lambda _: None,
    ) -> None:
        self._spark, self._directory = spark, directory
        self.clock = HandClock(NOW)
        self.storage = MortalStorage(toll)
        self.reader = Reader(directory / "queue")
        self.consumer = MortalConsumer(directory / "queue", toll)
        self._sink = BatchSink(
            *(self.storage, self.storage, self.reader, self.consumer, metrics, SETTINGS),
            *(Registry(), self.clock, lambda: None),
        )

    def __enter__(self) -> Line:
        self.reader.start()
        self.consumer.start()
        self.storage.start(storage_of(self._directory), UTC)
        return self

    def __exit__(self, *_: object) -> None:
        self._sink.close()
        self.storage.stop()
        self.consumer.stop()
        self.reader.stop()

    def applied(self) -> int:
        return self.storage.applied(self.reader.queue_id)

    def run(self, batches: int = 1_000, records: int = BATCH) -> None:
        """At most so many batches, of so many records."""
        end = self.reader.writing()
        for _ in range(batches):
            if (first := self.applied()) == end:
                return
            self._sink(self._batch(first, min(first + records, end)), 0)

    def _batch(self, start: int, end: int) -> DataFrame:
        options = {"directory": self._directory / "queue", "start": start, "end": end, "splits": 1}
        source = self._spark.read.format(QueueSource.name())
        return source.options(**{key: str(value) for key, value in options.items()}).load()


def storage_of(directory: Path) -> Path:
    return directory / "storage" / "skyfarer.duckdb"


def dying(directory: Path, left: Path) -> Callable[[], None]:
    """The death of a process that works in `directory`; its files are `left`."""

    def die() -> None:
        shutil.copytree(directory, left)
        raise Killed

    return die


def contents(directory: Path, *but: str) -> Tables:
    """Every table of the storage that nobody has open, `but` these: rows in order of their text,
    columns in order of their names."""
    with duckdb.connect(str(storage_of(directory))) as stored:
        names = "SELECT table_name FROM information_schema.tables ORDER BY 1"
        tables = [name for (name,) in stored.execute(names).fetchall()]
        return {table: _rows(stored, table) for table in tables if table not in (OF_THE_FILE, *but)}


def _rows(stored: duckdb.DuckDBPyConnection, table: str) -> list[tuple[object, ...]]:
    columns = sorted(column for column, *_ in stored.execute(f"DESCRIBE {table}").fetchall())
    named = ", ".join(f'"{column}"' for column in columns)
    rows = stored.execute(f"SELECT {named} FROM {table}").fetchall()
    plain = [tuple(_in_order(value) for value in row) for row in rows]
    return sorted([tuple(columns), *plain], key=repr)


def _in_order(value: object) -> object:
    return sorted(value.items()) if isinstance(value, dict) else value
