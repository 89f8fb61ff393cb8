"""What is told once more, by the driver: of records that have been translated."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.pipeline.told.form import TOLD
from skyfarer.oap.pipeline.told.messages import reports
from skyfarer.oap.pipeline.told.segments import segments
from skyfarer.oap.pipeline.told.telling import Telling

OF_EVERY_ROW = ("sequence", "part", "kind", "reason")


def told_again(rows: pa.Table, whole: str, reported: str, telling: Telling) -> pa.Table:
    """Of rows with whole segments, or with reports, in the columns of these names."""
    rows = rows.combine_chunks()
    has = pc.is_valid(rows[whole])
    with_segments, others = rows.filter(has), rows.filter(pc.invert(has))
    traced = segments(_messages(with_segments[whole]), telling)
    measured = reports(_one(others[reported]), telling)
    tables = [_table(with_segments, traced), _table(others, measured)]
    return pa.concat_tables([TOLD.empty_table(), *tables], promote_options="default")


def _table(rows: pa.Table, told: dict[str, pa.Array]) -> pa.Table:
    columns = {name: _one(rows[name]) for name in OF_EVERY_ROW} | told
    return pa.table(columns, schema=pa.schema([TOLD.field(name) for name in columns]))


def _messages(column: pa.ChunkedArray) -> pa.RecordBatch:
    return pa.RecordBatch.from_struct_array(_one(column))


def _one(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays([*column.chunks, pa.array([], column.type)])
