"""Signs of life: one row an instance, whatever it said how often; properties are merged by key."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import tzinfo
from typing import Final

import pyarrow as pa

from skyfarer.oap.core import ids
from skyfarer.oap.core.layers import layer_named
from skyfarer.oap.core.storage import Heartbeat
from skyfarer.oap.core.time_bucket import MINUTE_MS, minute_bucket
from skyfarer.oap.storage.postgresql import copying
from skyfarer.oap.storage.postgresql.copying import Cursor

_BEAT: Final = pa.schema(
    {
        **dict.fromkeys(("id", "service_id", "service", "instance", "row_id"), pa.string()),
        "layer": pa.string(),
        "bucket": pa.int64(),
        "properties": pa.string(),
    }
)
_SERVICES: Final = """INSERT INTO service_traffic (id, service_id, name, layer, time_bucket)
    SELECT row_id, min(service_id), min(service), min(layer), min(bucket)
    FROM pg_temp.beat GROUP BY row_id ORDER BY row_id ON CONFLICT (id) DO NOTHING"""
_KNOWN: Final = "SELECT id, properties FROM instance_traffic WHERE id = ANY(%s)"
_INSTANCES: Final = """INSERT INTO instance_traffic AS t
        (id, service_id, name, time_bucket, last_ping, properties)
    SELECT id, service_id, instance, bucket, bucket, properties FROM pg_temp.beat ORDER BY id
    ON CONFLICT (id) DO UPDATE SET last_ping = greatest(t.last_ping, excluded.last_ping),
        properties = excluded.properties"""


def store(cursor: Cursor, beats: Sequence[Heartbeat], zone: tzinfo) -> None:
    """Inside the caller's transaction, alone."""
    rows = [_row(beat, zone) for beat in beats]
    copying.bring(cursor, "beat", pa.Table.from_pylist(rows, schema=_BEAT))
    cursor.execute(_SERVICES, prepare=False)
    known = cursor.execute(_KNOWN, [[row["id"] for row in rows]]).fetchall()
    properties = {part: json.loads(text) for part, text in known if text}
    for row, beat in zip(rows, beats, strict=True):
        properties.setdefault(row["id"], {}).update(beat.properties or {})
    texts = {part: json.dumps(pairs) for part, pairs in properties.items()}
    merged = {row["id"]: {**row, "properties": texts[str(row["id"])]} for row in rows}
    copying.bring(cursor, "beat", pa.Table.from_pylist(list(merged.values()), schema=_BEAT))
    cursor.execute(_INSTANCES, prepare=False)


def _row(beat: Heartbeat, zone: tzinfo) -> dict[str, str | int]:
    service, layer = ids.service_id(beat.service), layer_named(beat.layer)
    return {
        "id": ids.instance_id(service, beat.instance),
        "service_id": service,
        "service": beat.service,
        "instance": beat.instance,
        "row_id": f"{service[:-2]}.{layer.value}",
        "layer": layer.name,
        "bucket": minute_bucket(beat.minute * MINUTE_MS, zone),
    }
