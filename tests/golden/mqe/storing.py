"""What a script loads, put into storage as the pipeline puts it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import Any

import pyarrow as pa

from contracts import slow_contract
from contracts.storage_contract import TABLE, batch, delta, deltas_of
from golden.mqe.scripts import KINDS, Load, Script
from skyfarer.oap.core.entities import ENTITIES
from skyfarer.oap.core.layers import Layer
from skyfarer.oap.core.storage import Deltas, Merge
from skyfarer.oap.oal.interpreter import accumulate
from skyfarer.oap.oal.plan import Operation, Plan, SourcePlan

MERGES = {
    **dict.fromkeys((Operation.MAX, Operation.MAX_DOUBLE, Operation.LABEL_MAX), Merge.MAX),
    **dict.fromkeys((Operation.MIN, Operation.MIN_DOUBLE, Operation.LABEL_MIN), Merge.MIN),
}
ITEM = {"latency": 10, "status": True, "tag": {}, "type": "HTTP", "detectPoint": "CLIENT"}


def deltas(plan: SourcePlan, minute: int, rows: Mapping[int, Any], **entity: Any) -> Deltas:
    """What the analysis makes of the rows of each minute, counted from the first."""
    found = {after: accumulate(plan, calls) for after, calls in rows.items()}
    merges = {a.column: MERGES.get(a.operation, Merge.SUM) for a in plan.accumulators}
    types: dict[str, pa.DataType] = {}
    for column in merges:
        value = next((each[column] for each in found.values() if column in each), 0)
        types[column] = TABLE if isinstance(value, Mapping) else pa.scalar(value).type
    lines = [
        delta(minute + after, **entity)
        | {name: list(v.items()) if isinstance(v, Mapping) else v for name, v in columns.items()}
        for after, columns in found.items()
    ]
    return deltas_of(lines, merges, types)


def store(storage: Any, plan: Plan, script: Script, zone: tzinfo) -> None:
    midnight = datetime(script.day.year, script.day.month, script.day.day, tzinfo=zone)
    first_minute = int(midnight.timestamp()) // 60
    for number, load in enumerate(script.loads):
        if load.slow:
            _store_slow(storage, load, first_minute, f"{script.name}-{number}")
        else:
            _store_items(storage, plan, load, first_minute)


def _store_items(storage: Any, plan: Plan, load: Load, first_minute: int) -> None:
    of = next(one for one in plan.sources if one.source == load.source)
    rows: dict[int, list[dict[str, Any]]] = {}
    for minute, count, attributes in load.items:
        item = {"name": load.names[0], **ITEM, **attributes}
        rows.setdefault(minute, []).extend([item] * count)
    entity = dict(zip(KINDS[ENTITIES[load.source]], load.names, strict=True))
    layer = Layer[load.options.get("layer", "GENERAL")]
    told = deltas(of, first_minute, rows, **{"layer": layer, "from_layer": layer, **entity})
    applied = storage.applied("queue-a")
    storage.apply(batch(applied, applied + 1, metrics={load.source: told}))


def _store_slow(storage: Any, load: Load, first_minute: int, prefix: str) -> None:
    rows = [
        slow_contract.slow(
            f"{prefix}-{number}",
            attributes["latency"],
            (first_minute + minute) * 60_000,
            what=load.source,
            service=load.names[0],
            statement=attributes["statement"],
            trace_id=attributes.get("trace", ""),
        )
        for number, (minute, _, attributes) in enumerate(load.items)
    ]
    slow_contract.apply(storage, rows)
