"""What traces say, planned while the records of the batch are still being read.

To plan that query takes Spark a good part of a small batch's time, on one core, and asks nothing
of the data. Mostly it is the query that is wanted in the end; where records are left out
or translated another one is made.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import pyarrow as pa
from pyspark.sql import DataFrame

from skyfarer.oap.core.storage import Deltas
from skyfarer.oap.pipeline.metrics import Metrics


class Ahead:
    """For one batch at a time: `plan`, `of` if there are traces in it, and `end` in any case; after
    the last one `close`, which may come twice.

    A batch is planned for when the one before had traces.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._thread = ThreadPoolExecutor(1, "planning")
        self._rows: DataFrame | None = None
        self._planned: Future[DataFrame] | None = None
        self._wanted = True

    def plan(self, rows: DataFrame, aliases: pa.Table) -> None:
        """Returns at once."""
        if self._wanted:
            self._rows = rows
            self._planned = self._thread.submit(self._metrics.planned, rows, aliases)
        self._wanted = False

    def of(self, rows: DataFrame, aliases: pa.Table) -> dict[str, Deltas]:
        """As `Metrics.of`, of the rows that were planned for or of others."""
        self._wanted = True
        frame = self._planned.result() if self._planned else None
        if frame is None or rows is not self._rows:
            return self._metrics.of(rows, aliases)
        return self._metrics.collected(frame)

    def end(self) -> None:
        """Blocks until nothing is planned any more; whatever failed there is raised by `of`."""
        if self._planned is not None:
            self._planned.exception()
        self._rows = self._planned = None

    def close(self) -> None:
        """Does not wait for a plan that is being made."""
        self._thread.shutdown(wait=False)
