"""The ingest queue as a Spark source, `skyfarer-queue`: a stream, or a stretch of it read at once.

Options: `directory` of the queue; `start`, the first sequence wanted (what storage has applied);
`splits`, into how many tasks a large stretch is cut; `reading` (`rows.Reading`, written), how it is
decoded; for a stream `records_max` and `weight_max` (see weight) a
micro-batch, otherwise `end`. The offset is the next sequence to read.
`commit` is left alone on purpose: Spark calls it one batch late and never for the last one, so the
sink tells the queue what storage holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from skyfarer.oap.pipeline.sources.bounds import limit_memory, limited_cpu
from skyfarer.oap.pipeline.sources.rows import Reading, row_schema, rows
from skyfarer.oap.pipeline.sources.weight import WEIGHT_MAX, reach
from skyfarer.queue.reader import Reader

SPLIT_RECORDS_MIN = 5_000
"""Below this many records a task's own cost exceeds the gain of running two: the other core has the
query of the metrics to plan meanwhile."""

IDLE_WAIT_S = 0.25
"""How long the source lets Spark wait for a record; a stop of the query waits as long."""


@dataclass
class Stretch(InputPartition):
    start: int
    end: int


class QueueSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "skyfarer-queue"

    def schema(self) -> StructType:
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(row_schema())

    def reader(self, schema: StructType) -> DataSourceReader:
        return QueueReader(self.options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return QueueStreamReader(self.options)


class _Opened:
    """The queue as each process opens it for itself: in the driver and in every worker."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._directory = Path(options["directory"])
        self._splits = int(options["splits"])
        self._reading = Reading.read(options["reading"]) if "reading" in options else Reading()
        self._reader: Reader | None = None

    def reader(self) -> Reader:
        if self._reader is None:
            self._reader = Reader(self._directory)
            self._reader.start()
        return self._reader

    def close(self) -> None:
        if self._reader is not None:
            self._reader.stop()
            self._reader = None

    def stretches(self, start: int, end: int) -> list[InputPartition]:
        count = end - start
        splits = max(1, min(self._splits, count // SPLIT_RECORDS_MIN))
        edges = [start + count * n // splits for n in range(splits + 1)]
        return [Stretch(a, b) for a, b in pairwise(edges) if b > a]

    def rows(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, Stretch):
            return  # Spark's stand-in where there is no partition to read
        limit_memory(self._reading.bounds)
        for run in self.reader().runs(partition.start, partition.end):
            with limited_cpu(self._reading.bounds.run_cpu_s):
                yield from rows(run, self._reading)


class QueueReader(DataSourceReader):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._queue = _Opened(options)
        self._start, self._end = int(options["start"]), int(options["end"])

    def partitions(self) -> Sequence[InputPartition]:
        return self._queue.stretches(self._start, self._end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._queue.rows(partition)


class QueueStreamReader(DataSourceStreamReader):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._queue = _Opened(options)
        self._start = int(options["start"])
        self._records_max = int(options["records_max"])
        self._weight_max = int(options.get("weight_max", WEIGHT_MAX))

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"sequence": self._start}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._records_max)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """Sleeps while there is nothing new, so that Spark's asking again costs next to nothing."""
        self._queue.reader().wait(start["sequence"], IDLE_WAIT_S)
        writing = self._queue.reader().writing()
        if isinstance(limit, ReadMaxRows):
            writing = min(writing, start["sequence"] + limit.max_rows)
        reached = reach(self._queue.reader(), start["sequence"], writing, self._weight_max)
        return {"sequence": reached}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return self._queue.stretches(start["sequence"], end["sequence"])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._queue.rows(partition)

    def commit(self, end: dict[str, int]) -> None:
        """Nothing: see the module's docstring."""

    def stop(self) -> None:
        self._queue.close()
