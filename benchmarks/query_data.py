"""The week of the storage benchmark with what the query room asks for beside it.

    segments     as of `week`, but readable: a root span and three exits each, with tags
    endpoints    as of `week`: the minutes, hours and days of 1,000 of them
    services     the same of the 50 services that they are of, and of their 4 instances each
    relations    of each service to CALLS others, seen at both ends every RELATED minutes
    logs         LOGS a day, of the services and traces that there are

It is built once into a directory and found there again, when it was built by the same numbers.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

import week
from skyfarer.oap.core import ids
from skyfarer.oap.core.entities import ENTITY_COLUMNS
from skyfarer.oap.core.layers import Layer
from skyfarer.oap.core.storage import Analysed, Deltas, Merge
from skyfarer.oap.core.time_bucket import MINUTE_MS
from skyfarer.oap.oal.plan import SourcePlan
from skyfarer.oap.storage.embedded import tables
from skyfarer.testing import traces
from skyfarer.wire import protobuf
from skyfarer.wire.messages import log as wire
from skyfarer.wire.rpc import Kind
from storage_embedded import Embedded
from storage_merging import Batches

CALLS: Final = 3
RELATED: Final = 10
LOGS: Final = 20_000
SERVICES: Final = [ids.service_id(week.service_name(n)) for n in range(week.SERVICES)]
INSTANCES: Final = [
    ids.instance_id(service, f"pod-{n}") for service in SERVICES for n in range(week.INSTANCES)
]
_BUILT: Final = "built.json"
_MINUTES: Final = 1440
_FILL: Final = 700
_LETTERS: Final = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz012345", np.uint8)


def opened(place: Path, days: int, segments: int, plans: dict[str, SourcePlan]) -> Embedded:
    """With the week in it; one that is there of other numbers is built anew."""
    numbers = {"days": days, "segments": segments, "logs": LOGS, "version": 1}
    marker = place / _BUILT
    if not marker.exists() or json.loads(marker.read_text()) != numbers:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        built = Embedded(place)
        for day in range(days):
            week.told(f"day {day + 1} of {days}")
            _fill(built, day, segments, plans)
        built.settle()
        built.stop()
        marker.write_text(json.dumps(numbers))
    return Embedded(place)


def _fill(built: Embedded, day: int, segments: int, plans: dict[str, SourcePlan]) -> None:
    batches = Batches(built.storage)
    batches.apply({source: heard(plans[source], day) for source in ENTITIES})
    batches.apply({"ServiceRelation": related(plans["ServiceRelation"], day)})
    for rows in week.segments(day, segments):
        built.store_segments(readable(rows))
    store_logs(built, day, segments)
    for source, entities in ENTITIES.items():
        _store_rows(built, day, plans[source], entities)


ENTITIES: Final = {
    "Service": SERVICES,
    "ServiceInstance": INSTANCES,
    "Endpoint": week.ENDPOINT_IDS,
}
_TABLES: Final = {
    "Service": "metrics_service",
    "ServiceInstance": "metrics_service_instance",
    "Endpoint": "metrics_endpoint",
}


def _store_rows(built: Embedded, day: int, plan: SourcePlan, entities: list[str]) -> None:
    """Past the merge, as `Embedded.store_endpoints` does."""
    cursor = built.storage._cursor()
    table = f"{_TABLES[plan.source]}_{week.day_bucket(day)}"
    cursor.execute(f"DELETE FROM {table}")
    for some in week.rows_of(day, plan, entities):
        cursor.register("wide", tables.as_lists(some))
        cursor.execute(f"INSERT INTO {table} BY NAME FROM wide")


def _deltas(plan: SourcePlan, columns: dict[str, Any], count: int) -> Deltas:
    """`columns` of the entities; the accumulators all have a value."""
    empty = {name: pa.array([""] * count) for name in ENTITY_COLUMNS}
    empty |= {name: pa.array(np.zeros(count, np.int32)) for name in ("from_layer", "component")}
    empty["layer"] = pa.array(np.full(count, Layer.GENERAL.value, np.int32))
    rows = empty | columns | week.accumulators(np.random.default_rng(count), plan, count)
    return Deltas(pa.table(rows), {one.column: Merge.SUM for one in plan.accumulators})


def heard(plan: SourcePlan, day: int) -> Deltas:
    """Each of a source's entities once in the first minute and once in the last."""
    numbers = np.tile(np.arange(len(ENTITIES[plan.source])), 2)
    services = numbers // week.INSTANCES if plan.source == "ServiceInstance" else numbers
    columns: dict[str, Any] = {
        "service": [week.service_name(n % week.SERVICES) for n in services],
        "minute": week.minute_of(day) + np.repeat([0, _MINUTES - 1], len(numbers) // 2),
    }
    if plan.source == "ServiceInstance":
        columns["instance"] = [f"pod-{n % week.INSTANCES}" for n in numbers]
    if plan.source == "Endpoint":
        columns["endpoint"] = [week.endpoint_name(n) for n in numbers]
    return _deltas(plan, columns, len(numbers))


def related(plan: SourcePlan, day: int) -> Deltas:
    calls = [
        (source, (source * CALLS + number + 1) % week.SERVICES, minute, end)
        for source in range(week.SERVICES)
        for number in range(CALLS)
        for minute in range(0, _MINUTES, RELATED)
        for end in ("SERVER", "CLIENT")
    ]
    columns = {
        "from_service": [week.service_name(one[0]) for one in calls],
        "service": [week.service_name(one[1]) for one in calls],
        "from_layer": np.full(len(calls), Layer.GENERAL.value, np.int32),
        "component": np.full(len(calls), traces.TOMCAT, np.int32),
        "minute": week.minute_of(day) + np.array([one[2] for one in calls]),
        "detect_point": [one[3] for one in calls],
    }
    return _deltas(plan, columns, len(calls))


def readable(rows: pa.Table) -> pa.Table:
    """The same segments, whose bytes a query can read: ids of their own before the spans of one
    of the templates, and a tag whose text differs from segment to segment."""
    random = np.random.default_rng(rows.num_rows)
    heads = zip(rows["trace_id"].to_pylist(), rows["segment_id"].to_pylist(), strict=True)
    fills = _LETTERS[random.integers(0, len(_LETTERS), (rows.num_rows, _FILL))]
    tails = [_template(random.bytes(8).hex()) for _ in range(64)]
    payloads = [
        protobuf.text(1, trace_id)
        + protobuf.text(2, segment_id)
        + tails[number % len(tails)].replace(_HOLE, fills[number].tobytes())
        for number, (trace_id, segment_id) in enumerate(heads)
    ]
    place = rows.column_names.index("data_binary")
    return rows.set_column(place, "data_binary", pa.array(payloads, pa.binary()))


_HOLE: Final = b"#" * _FILL


def _template(text: str) -> bytes:
    """A segment without its ids."""
    exits = [
        traces.Exit(f"GET:/stock/{n}", f"stock-{n}:8080", n, 5, tags={"url": f"/stock/{text}"})
        for n in range(3)
    ]
    made = traces.segment("shop", "pod-1", "GET:/api", 1_762_646_400_000, 40, exits=exits)
    made.spans[-1].tags.add(key="note", value=_HOLE.decode())
    made.ClearField("traceId")
    made.ClearField("traceSegmentId")
    return made.SerializeToString()


def store_logs(built: Embedded, day: int, segments: int) -> None:
    first = built.storage.applied("week")
    none = next(week.segments(0, 1)).slice(0, 0)
    end = first + LOGS
    told = pa.table(_logs(day, segments, first))
    built.storage.apply(Analysed("week", first, end, none, {}, logs=told))


def _logs(day: int, segments: int, first: int) -> dict[str, Any]:
    numbers = np.arange(LOGS)
    times = week.minute_of(day) * MINUTE_MS + numbers * week.DAY_MS // LOGS
    traced = week.hex_ids(week.TRACE, day, numbers % max(1, segments // week.FAN))
    endpoints = numbers % week.ENDPOINTS
    levels = [("INFO", "WARN", "ERROR")[n % 3] for n in numbers]
    return {
        "sequence": first + numbers,
        "part": np.zeros(LOGS, np.int32),
        "kind": np.full(LOGS, Kind.LOG, np.int32),
        "service": [week.service_name(n % week.SERVICES) for n in endpoints],
        "instance": [f"pod-{n % week.INSTANCES}" for n in numbers],
        "endpoint": [week.endpoint_name(n) for n in endpoints],
        "layer": np.full(LOGS, Layer.GENERAL.value, np.int32),
        "trace_id": traced,
        "log_segment_id": week.hex_ids(week.SEGMENT, day, numbers),
        "span_id": np.zeros(LOGS, np.int32),
        "start_time": times,
        "minute": times // MINUTE_MS,
        "tags": pa.array([[f"level={level}"] for level in levels]),
        "payload": pa.array(list(_lines(levels)), pa.binary()),
    }


def _lines(levels: list[str]) -> Iterator[bytes]:
    for number, level in enumerate(levels):
        line = wire.LogData(service="shop", timestamp=number)
        line.body.text.text = f"{level} order {number} was taken by the stock in {number % 90} ms"
        line.tags.data.add(key="level", value=level)
        yield line.SerializeToString()
