"""A batch's slow statements and commands, out of the small rows of its segments, in whole
columns."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.slow import Slow
from skyfarer.oap.core.time_bucket import MINUTE_MS

_SCHEMA: Final = pa.schema(
    {
        **dict.fromkeys(("what", "service", "statement", "id", "trace_id"), pa.string()),
        **dict.fromkeys(("latency", "start_time", "minute"), pa.int64()),
    }
)


def slow_statements(segments: pa.Table, service_chars_max: int) -> pa.Table | None:
    """As `core.storage.Analysed.slow` has them. A statement of a database is kept of it, and of
    the service that asked it."""
    lists = segments["slow"].combine_chunks()
    spans = pc.list_flatten(lists)
    if not len(spans):
        return None
    owners = segments.select(["segment_id", "trace_id", "service"])
    owners = owners.take(pc.list_parent_indices(lists)).combine_chunks()
    told = {name: pc.struct_field(spans, name) for name in spans.type.names}
    numbers = told["span_id"].cast(pa.string())
    rows = pa.table(
        {
            **{name: told[name] for name in ("what", "service", "statement")},
            "id": pc.binary_join_element_wise(owners["segment_id"], numbers, "-"),
            "trace_id": owners["trace_id"],
            **{name: told[name] for name in ("latency", "start_time")},
            "minute": pc.divide(told["start_time"], MINUTE_MS),
        }
    ).cast(_SCHEMA)
    asked = pc.equal(rows["what"], Slow.DATABASE.name)
    kind = pa.repeat(Slow.SERVICE_DATABASE.name, rows.num_rows)
    of_askers = rows.set_column(0, "what", kind).set_column(1, "service", owners["service"])
    both = pa.concat_tables([rows, of_askers.filter(asked)])
    names = pc.utf8_slice_codeunits(both["service"], 0, service_chars_max)
    return both.set_column(1, "service", names)
