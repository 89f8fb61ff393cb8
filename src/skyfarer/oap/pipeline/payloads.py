"""The bytes of records, taken from the mapped queue by the driver: none pass through the JVM."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.pipeline.sources.rows import binaries
from skyfarer.queue.reader import Reader


class Payloads:
    """Used by the sink's thread, and only for what the consumer has not committed yet."""

    def __init__(self, queue: Reader) -> None:
        self._queue = queue

    def many(self, sequences: pa.ChunkedArray) -> pa.ChunkedArray:
        """Of records in ascending order; zero-copy where none of a run is left out."""
        wanted = sequences.to_numpy()
        if not len(wanted):
            return pa.chunked_array([], pa.binary())
        chunks = []
        for run in self._queue.runs(int(wanted[0]), int(wanted[-1]) + 1):
            chosen = np.isin(np.arange(run.first, run.end), wanted, assume_unique=True)
            if chosen.any():
                chunks.append(binaries(run, chosen))
        return pa.chunked_array(chunks, pa.binary())

    def beside(self, rows: pa.Table, column: str) -> pa.Table:
        """The rows, in ascending order of their records, with their bytes in that column in place
        of `data`. Parts of a record bring theirs along there; they come last."""
        parts = rows.filter(pc.is_valid(rows["data"])).rename_columns({"data": column})
        whole = rows.drop_columns("data")
        if parts.num_rows:
            whole = whole.filter(pc.is_null(rows["data"]))
        whole = whole.append_column(column, self.many(whole["sequence"]))
        return pa.concat_tables([whole, parts.select(whole.schema.names)])

    def one(self, sequence: int) -> bytes:
        """As it stands in the queue, damaged or not; nothing for a record the queue has lost."""
        (run,) = self._queue.runs(sequence, sequence + 1)
        if not len(run.index):
            return b""
        start, length, *_ = run.index.cast("I").tolist()
        return bytes(run.data[start : start + length])
