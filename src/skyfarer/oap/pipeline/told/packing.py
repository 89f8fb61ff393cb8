"""Tables of what is told, as bytes in a column of Spark's."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from skyfarer.oap.pipeline.told.form import TOLD

_WRITTEN = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)
"""On their way the bytes are copied a dozen times, which takes longer than to compress them."""


def carried(columns: Mapping[str, pa.Array]) -> pa.BinaryArray:
    """As long as the columns: the first has all of them, the others are null."""
    form = pa.schema([TOLD.field(name) for name in columns])
    batch = pa.RecordBatch.from_arrays([*columns.values()], schema=form)
    count = batch.num_rows
    if not count:
        return pa.array([], pa.binary())
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, form, options=_WRITTEN) as writer:
        writer.write_batch(batch)
    table = stream.getvalue()
    known, ends = np.zeros(count // 8 + 1, np.uint8), np.full(count + 1, table.size, np.int32)
    known[0], ends[0] = 1, 0
    buffers = [pa.py_buffer(known), pa.py_buffer(ends), table]
    return pa.Array.from_buffers(pa.binary(), count, buffers, null_count=count - 1)


def unpacked(told: pa.ChunkedArray) -> pa.Table:
    """All of what is told, with every column of `TOLD`; nulls are passed over."""
    tables = [pa.ipc.open_stream(one.as_buffer()).read_all() for one in told if one.is_valid]
    return pa.concat_tables([TOLD.empty_table(), *tables], promote_options="default")
