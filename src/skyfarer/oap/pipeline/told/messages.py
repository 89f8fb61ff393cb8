"""What is told of all that is no segment: logs, events, signs of life and reports."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.entities import INSTANCE_META
from skyfarer.oap.core.time_bucket import MINUTE_MS
from skyfarer.oap.pipeline.analysis.settings import NamingSettings
from skyfarer.oap.pipeline.told.form import EVENT, PAIRS, UPDATE
from skyfarer.oap.pipeline.told.lists import (
    Places,
    bounds_of,
    cut,
    listed,
    mask_of,
    owners_of,
    reduced,
)
from skyfarer.oap.pipeline.told.segments import NOTHING
from skyfarer.oap.pipeline.told.tags import found_by
from skyfarer.oap.pipeline.told.telling import Telling


def logs(batch: pa.RecordBatch, telling: Telling) -> dict[str, pa.Array]:
    """One without a time has none here, and one without tags has no list of them."""
    naming, context = telling.naming, batch["traceContext"]
    tags, when = pc.struct_field(batch["tags"], "data"), _some(batch["timestamp"])
    found = found_by(tags.values, bounds_of(tags), telling.kept.searchable_log_tags)
    return {
        "trace_id": pc.struct_field(context, "traceId"),
        "service": cut(batch["service"], naming.service_chars_max),
        "instance": cut(batch["serviceInstance"], naming.instance_chars_max),
        "endpoint": cut(batch["endpoint"], naming.endpoint_chars_max),
        "start_time": when,
        "last_time": when,
        "tags": pc.if_else(pc.is_valid(tags), found, None),
        "log_layer": batch["layer"],
        "log_segment_id": pc.struct_field(context, "traceSegmentId"),
        "log_span_id": pc.struct_field(context, "spanId"),
    }


def events(batch: pa.RecordBatch, _: Telling) -> dict[str, pa.Array]:
    when = pc.coalesce(_some(batch["startTime"]), _some(batch["endTime"]))
    source = batch["source"]
    whose = {
        one.name: pc.coalesce(pc.struct_field(source, one.name), NOTHING) for one in source.type
    }
    told = {name: batch[name] for name in batch.schema.names} | whose
    fields = [told[one.name].cast(one.type) for one in EVENT]
    event = pa.StructArray.from_arrays(fields, fields=list(EVENT))
    return {"start_time": when, "last_time": when, "event": event}


def pings(batch: pa.RecordBatch, _: Telling) -> dict[str, pa.Array]:
    names = {"service": "service", "instance": "serviceInstance", "layer": "layer"}
    return {f"beat_{name}": batch[field] for name, field in names.items()}


def properties(batch: pa.RecordBatch, telling: Telling) -> dict[str, pa.Array]:
    return {**pings(batch, telling), "beat_properties": batch["properties"].cast(PAIRS)}


def reports(lists: pa.ListArray, telling: Telling) -> dict[str, pa.Array]:
    bounds, rows = bounds_of(lists), lists.values
    times = rows.field("time").to_numpy()
    told = {
        "start_time": reduced(np.minimum, times, bounds),
        "last_time": reduced(np.maximum, times, bounds),
    }
    here = np.flatnonzero(mask_of(pc.equal(rows.field("source"), INSTANCE_META)))
    if len(here):
        owners = owners_of(here, bounds)
        told["updates"] = _updates(rows.take(pa.array(here)), owners, len(lists), telling.naming)
    return told


def _updates(
    rows: pa.StructArray, owners: Places, count: int, naming: NamingSettings
) -> pa.ListArray:
    """Of each record, whatever it says of an instance in a minute last."""
    told = {
        "service": cut(rows.field("service"), naming.service_chars_max),
        "instance": cut(rows.field("instance"), naming.instance_chars_max),
        "layer": rows.field("layer"),
        "minute": pa.array(rows.field("time").to_numpy() // MINUTE_MS),
        "properties": rows.field("properties").cast(PAIRS),
    }
    keys = pa.table({name: told[name] for name in ("service", "instance", "layer", "minute")})
    keyed = keys.append_column("owner", pa.array(owners))
    keyed = keyed.append_column("place", pa.array(np.arange(len(rows))))
    last = keyed.group_by(keyed.column_names[:-1], use_threads=False).aggregate([("place", "max")])
    places = np.sort(last["place_max"].to_numpy())
    made = pa.StructArray.from_arrays([told[one.name] for one in UPDATE], fields=list(UPDATE))
    return listed(made.take(pa.array(places)), owners[places], count)


def _some(times: pa.Array) -> pa.Array:
    """Null for 0, which says that nothing is known."""
    return pc.if_else(pc.equal(times, 0), None, times)
