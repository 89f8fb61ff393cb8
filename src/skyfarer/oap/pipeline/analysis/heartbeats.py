"""Signs of life of instances: what keep-alives and properties say, and a mesh of what they are."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.layers import Layer
from skyfarer.oap.core.storage import Heartbeat

_BEATS = ["beat_service", "beat_instance", "beat_layer", "beat_properties"]


def heartbeats(rows: pa.Table, minute: int) -> list[Heartbeat]:
    """Signs of life, in the order of the queue; those of a mesh after the others."""
    return [*_told(rows, minute), *_updates(rows)]


def _updates(rows: pa.Table) -> list[Heartbeat]:
    """Of their own minutes, each once a batch."""
    sound = pc.and_(pc.is_null(rows["reason"]), pc.is_valid(rows["updates"]))
    told = pc.list_flatten(rows.filter(sound)["updates"]).to_pylist()
    distinct = {(*row.values(),)[:4]: row["properties"] for row in told}
    return [
        Heartbeat(service, instance, Layer(layer).name, minute, _properties(pairs))
        for (service, instance, layer, minute), pairs in distinct.items()
    ]


def _told(rows: pa.Table, minute: int) -> list[Heartbeat]:
    told = pc.and_(pc.is_null(rows["reason"]), pc.is_valid(rows["beat_service"]))
    return [
        Heartbeat(
            service=row["beat_service"],
            instance=row["beat_instance"],
            layer=row["beat_layer"] or Layer.GENERAL.name,
            minute=minute,
            properties=None
            if row["beat_properties"] is None
            else _properties(row["beat_properties"]),
        )
        for row in rows.filter(told).select(_BEATS).to_pylist()
    ]


def _properties(pairs: list[dict[str, str]]) -> dict[str, str]:
    """An instance may have several addresses: they become one entry, `ipv4s`."""
    plain = {pair["key"]: pair["value"] for pair in pairs if pair["key"] != "ipv4"}
    addresses = [pair["value"] for pair in pairs if pair["key"] == "ipv4"]
    return plain | ({"ipv4s": ",".join(addresses)} if addresses else {})
