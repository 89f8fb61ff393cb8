"""The columns of what is told, of all kinds together."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

PAIRS: Final = pa.list_(pa.struct({"key": pa.string(), "value": pa.string()}))
SLOW: Final = pa.struct(
    {
        "span_id": pa.int32(),
        **dict.fromkeys(("what", "service", "statement"), pa.string()),
        **dict.fromkeys(("latency", "start_time"), pa.int64()),
    }
)
"""`what` is the name of a `core.slow.Slow`, a database's own for both of its."""
UPDATE: Final = pa.struct(
    {
        **dict.fromkeys(("service", "instance"), pa.string()),
        "layer": pa.int32(),
        "minute": pa.int64(),
        "properties": PAIRS,
    }
)
EVENT: Final = pa.struct(
    {
        **dict.fromkeys(("uuid", "name", "message", "layer"), pa.string()),
        **dict.fromkeys(("service", "serviceInstance", "endpoint"), pa.string()),
        "type": pa.int32(),
        **dict.fromkeys(("startTime", "endTime"), pa.int64()),
        "parameters": PAIRS,
    }
)
TOLD: Final = pa.schema(
    {
        "sequence": pa.int64(),
        **dict.fromkeys(("part", "kind"), pa.int32()),
        "reason": pa.string(),
        "data": pa.binary(),
        **dict.fromkeys(("segment_id", "trace_id", "service", "instance", "endpoint"), pa.string()),
        **dict.fromkeys(("start_time", "last_time", "latency"), pa.int64()),
        "is_error": pa.bool_(),
        "tags": pa.list_(pa.string()),
        "slow": pa.list_(SLOW),
        "gen_ai": pa.bool_(),
        **dict.fromkeys(("beat_service", "beat_instance", "beat_layer"), pa.string()),
        "beat_properties": PAIRS,
        "updates": pa.list_(UPDATE),
        **dict.fromkeys(("log_layer", "log_segment_id"), pa.string()),
        "log_span_id": pa.int32(),
        "event": EVENT,
    }
)
