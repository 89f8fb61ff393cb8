"""What traces say, asked while the records of the batch are still being read.

To plan that query takes Spark a good part of a small batch's time, and asks nothing of the data;
and its job begins when the cores have read the batch, not when the driver knows what is in it.
Mostly that is the query which is wanted in the end; where records are left out or translated
another one is made, and the batch after it waits until it is known what it has.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import pyarrow as pa
from pyspark.sql import DataFrame

from skyfarer.oap.core.storage import Deltas
from skyfarer.oap.pipeline.metrics import Metrics


class Ahead:
    """For one batch at a time: `begin`, `of` if there are traces in it, and `end` in any case;
    after the last one `close`, which may come twice.

    A batch is asked ahead when the one before had traces, and all its records were counted.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._thread = ThreadPoolExecutor(1, "ahead")
        self._rows: DataFrame | None = None
        self._asked: Future[dict[str, Deltas]] | None = None
        self._wanted = True

    def begin(self, rows: DataFrame, aliases: pa.Table) -> None:
        """Returns at once. The rows are to be kept by Spark: two queries read them."""
        self._rows = rows
        if self._wanted:
            self._asked = self._thread.submit(self._metrics.of, rows, aliases)
        self._wanted = False

    def of(self, rows: DataFrame, aliases: pa.Table) -> dict[str, Deltas]:
        """As `Metrics.of`, of the rows that were begun with or of others."""
        asked, self._asked = self._asked, None
        found = asked.result() if asked else None
        self._wanted = rows is self._rows
        return found if found is not None and self._wanted else self._metrics.of(rows, aliases)

    def end(self) -> None:
        """Blocks until nothing is asked any more; whatever failed there is raised by `of`."""
        if self._asked is not None:
            self._asked.exception()
        self._rows = self._asked = None

    def close(self) -> None:
        """Does not wait for what is still asked."""
        self._thread.shutdown(wait=False)
