"""A batch's slow statements and commands, out of the small rows of its segments."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.slow import Slow
from skyfarer.oap.core.time_bucket import MINUTE_MS


def slow_statements(segments: pa.Table) -> pa.Table | None:
    """As `core.storage.Analysed.slow` has them. A statement of a database is kept of it, and of
    the service that asked it."""
    lists = segments["slow"].combine_chunks()
    spans = pa.Table.from_struct_array(pc.list_flatten(lists))
    if not spans.num_rows:
        return None
    owners = segments.take(pc.list_parent_indices(lists))
    numbers = spans["span_id"].cast(pa.string())
    ids = pc.binary_join_element_wise(owners["segment_id"], numbers, "-")
    rows = (
        spans.drop_columns("span_id")
        .append_column("id", ids)
        .append_column("trace_id", owners["trace_id"])
        .append_column("minute", pc.divide(spans["start_time"], MINUTE_MS))
    )
    asked = pc.equal(rows["what"], Slow.DATABASE.name)
    names = pa.array([Slow.SERVICE_DATABASE.name] * rows.num_rows)
    askers = rows.set_column(rows.schema.get_field_index("service"), "service", owners["service"])
    askers = askers.set_column(rows.schema.get_field_index("what"), "what", names)
    return pa.concat_tables([rows, askers.filter(asked)])
