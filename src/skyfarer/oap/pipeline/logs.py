"""What the driver makes of the logs and events of a batch: rows to store, and who is heard of.

A log, like a segment, is stored as it came, with what it is found by beside it. That a service
writes logs is a sign of it, of its instance and of its endpoint, as it is where only they come.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.entities import (
    ENDPOINT_META,
    ENTITY_COLUMNS,
    INSTANCE_META,
    SERVICE_META,
)
from skyfarer.oap.core.layers import Layer, layer_named
from skyfarer.oap.core.storage import Deltas
from skyfarer.oap.core.time_bucket import MINUTE_MS
from skyfarer.oap.pipeline.payloads import Payloads
from skyfarer.oap.pipeline.times import EXPIRED
from skyfarer.wire.rpc import Kind

_LOG: Final = (
    *("sequence", "part", "kind", "service", "instance", "endpoint", "trace_id", "log_segment_id"),
    *("log_span_id", "log_layer", "start_time", "tags", "data"),
)
_AS_TOLD: Final = _LOG[:6]
_HEARD: Final = {
    SERVICE_META: ("layer", "service"),
    INSTANCE_META: ("layer", "service", "instance"),
    ENDPOINT_META: ("layer", "service", "endpoint"),
}
_NUMBERS: Final = ("layer", "from_layer", "component")
_TEXTS: Final = ("uuid", "service", "instance", "endpoint", "name", "message", "layer")
_AS_IS: Final = ("uuid", "name", "type", "message", "service", "endpoint")
_EVENT: Final = pa.schema(
    {
        **dict.fromkeys(_TEXTS, pa.string()),
        "type": pa.int32(),
        "begun": pa.int64(),
        "ended": pa.int64(),
        "parameters": pa.map_(pa.string(), pa.string()),
    }
)


def logs_of(rows: pa.Table, payloads: Payloads, now_ms: int) -> pa.Table | None:
    """As `Analysed.logs` has them; None when there are none. One without a time has come now. Of an
    export that is parked none is stored: a log has no id, and would come twice when it is tried
    again."""
    logs = _sound(rows, Kind.LOG, Kind.OTLP_LOGS)
    told = pc.is_valid(logs["service"])  # of an export without a log nothing is
    logs = logs.filter(pc.and_(told, pc.invert(_parked_among(rows, logs)))).select(_LOG)
    if not logs.num_rows:
        return None
    logs = payloads.beside(logs, "payload")
    times = pc.fill_null(logs["start_time"], now_ms)
    told = {
        **{name: logs[name] for name in _AS_TOLD},
        "layer": _layers(logs["log_layer"]),
        "trace_id": pc.fill_null(logs["trace_id"], ""),
        "log_segment_id": pc.fill_null(logs["log_segment_id"], ""),
        "span_id": pc.fill_null(logs["log_span_id"], 0),
        "start_time": times,
        "minute": pc.divide(times, MINUTE_MS),
        "tags": logs["tags"],
        "payload": logs["payload"],
    }
    return pa.table(told)


def heard_of(logs: pa.Table) -> dict[str, Deltas]:
    """The services, instances and endpoints that logs speak of, each once a minute."""
    return {source: Deltas(_heard(logs, names), {}) for source, names in _HEARD.items()}


def events_of(rows: pa.Table, now_ms: int) -> pa.Table | None:
    """As `Analysed.events` has them; None when there are none."""
    rows = _sound(rows, Kind.EVENT)
    if not rows.num_rows:
        return None
    events = pa.Table.from_pylist([_event(told) for told in rows["event"].to_pylist()], _EVENT)
    minutes = pc.divide(pc.fill_null(rows["start_time"], now_ms), MINUTE_MS)
    return events.append_column("sequence", rows["sequence"]).append_column("minute", minutes)


def _event(told: Mapping[str, Any]) -> dict[str, Any]:
    """Of parameters that are there twice the last one counts."""
    parameters = {pair["key"]: pair["value"] for pair in told["parameters"]}
    return {
        **{name: told[name] for name in _AS_IS},
        "instance": told["serviceInstance"],
        "parameters": list(parameters.items()),
        "begun": told["startTime"],
        "ended": told["endTime"],
        "layer": layer_named(told["layer"]).name,
    }


def _sound(rows: pa.Table, *kinds: Kind) -> pa.Table:
    here = pc.is_in(rows["kind"], pa.array(kinds, pa.int32()))
    return rows.filter(pc.and_(here, pc.is_null(rows["reason"])))


def _parked_among(rows: pa.Table, logs: pa.Table) -> pa.ChunkedArray:
    """Which of the logs are of records that have a part to be parked."""
    bad = pc.and_(pc.is_valid(rows["reason"]), pc.invert(pc.starts_with(rows["reason"], EXPIRED)))
    return pc.is_in(logs["sequence"], rows["sequence"].filter(pc.fill_null(bad, False)))


def _heard(logs: pa.Table, names: tuple[str, ...]) -> pa.Table:
    told = logs.filter(pc.not_equal(logs[names[-1]], ""))
    found = told.group_by([*names, "minute"], use_threads=False).aggregate([])
    for name in (name for name in ENTITY_COLUMNS if name not in names):
        nothing = pa.scalar(0, pa.int32()) if name in _NUMBERS else pa.scalar("")
        found = found.append_column(name, pa.repeat(nothing, found.num_rows))
    return found.select([*ENTITY_COLUMNS, "minute"])


def _layers(names: pa.ChunkedArray) -> pa.Array:
    """Their numbers. A log of no layer, or of one that this version does not know, is one of a
    service all the same."""
    told = names.combine_chunks().dictionary_encode()
    known = [Layer.__members__.get(name, Layer.GENERAL) for name in told.dictionary.to_pylist()]
    return pa.array(known, pa.int32()).take(told.indices)
