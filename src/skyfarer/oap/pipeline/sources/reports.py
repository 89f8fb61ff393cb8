"""Messages that are measurements already: each becomes rows of the sources that metrics read.

A message of a JVM, a CLR, a browser, a meter or a mesh is taken apart in whole columns, and the
column `reports` of its row holds what came of it:

    source                        of `core.entities.REPORTED`, or MESHED
    time                          in milliseconds of the epoch
    service, instance, endpoint   whom it speaks of, as the agent wrote them; layer is a number
    from_service, from_instance   of a relation its origin; component and detect_point likewise
    whole_0, …, fraction_0, flag_0, text_0, …   the attributes, in the order of `oal.sources`

Sources share those places, so that one aggregation serves all of them (`slot_of`). What an agent
does not send (threads of an old one) says nothing, where the original has a row of zeros. A meter
without service, instance or time says nothing either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, reduce
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.entities import ENTITIES, Entity
from skyfarer.oap.core.layers import Layer
from skyfarer.oap.oal.sources import ENUMS, SOURCES, Type
from skyfarer.oap.pipeline.sources.shapes import CLASSES, PAGE_TIMES, THREADS
from skyfarer.wire.messages import DetectPoint
from skyfarer.wire.rpc import Kind

Value: TypeAlias = str | Callable[[pa.StructArray], pa.Array]
"""Of an attribute: the field that holds it, or how it is made of the message."""

_SLOTS: Final[Mapping[Type, tuple[str, pa.DataType]]] = {
    Type.LONG: ("whole", pa.int64()),
    Type.INT: ("whole", pa.int64()),
    Type.DOUBLE: ("fraction", pa.float64()),
    Type.BOOLEAN: ("flag", pa.bool_()),
    Type.TEXT: ("text", pa.string()),
    Type.ENUM: ("text", pa.string()),
}
_NAMES: Final = ("service", "instance", "endpoint", "from_service", "from_instance")


@dataclass(frozen=True)
class Part:
    """Rows of one source: one for each message at `path`, which is a list, a message or, empty,
    the whole of it; of those that are `asked`, if not of all."""

    source: str
    path: str
    values: Mapping[str, Value]
    asked: Callable[[pa.StructArray], pa.BooleanArray] | None = None


@dataclass(frozen=True)
class Report:
    """`each` is the list whose elements have a `time` and parts of their own, or empty. The names
    of service, instance and endpoint are fields of the message, or, `of_each`, of its elements;
    then one that lacks a time or one of the names it `needs` is passed over."""

    layer: Layer
    names: Mapping[str, str]
    parts: tuple[Part, ...]
    each: str = ""
    time: str = "time"
    of_each: bool = False
    needs: tuple[str, ...] = ()


def _named(enum: str, field: str) -> Value:
    """The name of a number of that enumeration; null for one that it does not have."""
    names = pa.array(ENUMS[enum])

    def value(messages: pa.StructArray) -> pa.Array:
        numbers = pc.struct_field(messages, field)
        known = pc.and_(pc.greater_equal(numbers, 0), pc.less(numbers, len(names)))
        return names.take(pc.if_else(known, numbers, None))

    return value


def _always(value: int | str) -> Value:
    return lambda messages: pa.array([value] * len(messages))


def _percent(messages: pa.StructArray) -> pa.Array:
    """What is no number would stay in the sum of its minute, hour and day for good."""
    used = pc.struct_field(messages, "usagePercent")
    return pc.if_else(pc.is_finite(used), used, 0.0)


def _at_least_one(messages: pa.StructArray) -> pa.Array:
    return pc.max_element_wise(_percent(messages), 1.0)


def _thousandths(messages: pa.StructArray) -> pa.Array:
    """What is no number, or one of no page, is left out by the metrics, as what is below 0."""
    cls = pc.multiply(pc.struct_field(messages, "cls"), 1000.0)
    known = pc.and_(pc.is_finite(cls), pc.less(pc.abs(cls), 2.0**31))
    return pc.floor(pc.add(pc.if_else(known, cls, -1.0), 0.5)).cast(pa.int64())


def _rounded(messages: pa.StructArray) -> pa.Array:
    """As the original does it: nothing below 0, and whatever is a little is 1."""
    value = pc.struct_field(messages, "value")
    most = pc.min_element_wise(pc.if_else(pc.is_finite(value), value, 0.0), 2.0**53)
    whole = pc.floor(pc.add(pc.max_element_wise(most, 1.0), 0.5)).cast(pa.int64())
    return pc.if_else(pc.greater(most, 0.0), whole, 0)


def _category(messages: pa.StructArray) -> pa.Array:
    first = pc.struct_field(messages, "firstReportedError")
    return pc.if_else(first, "FIRST_ERROR", "ERROR")


def _error(messages: pa.StructArray) -> pa.Array:
    named = _named("BrowserErrorCategory", "category")
    assert callable(named)
    return pc.coalesce(named(messages), pa.scalar("UNKNOWN"))


def _same(*fields: str) -> Mapping[str, Value]:
    return {field: field for field in fields}


def _traffic(values: Mapping[str, Value]) -> tuple[Part, ...]:
    sources = ("BrowserAppTraffic", "BrowserAppSingleVersionTraffic", "BrowserAppPageTraffic")
    return tuple(Part(source, "", {"count": _always(1), **values}) for source in sources)


_INSTANCE: Final = {"service": "service", "instance": "serviceInstance"}
_PAGE: Final = {"service": "service", "instance": "serviceVersion", "endpoint": "pagePath"}
_JVM = Report(
    Layer.GENERAL,
    _INSTANCE,
    (
        Part("ServiceInstanceJVMCPU", "cpu", {"usePercent": _at_least_one}),
        Part(
            "ServiceInstanceJVMMemory",
            "memory",
            {"heapStatus": "isHeap", **_same("used", "max")},
        ),
        Part(
            "ServiceInstanceJVMMemoryPool",
            "memoryPool",
            {"poolType": _named("MemoryPoolType", "type"), **_same("used", "max")},
        ),
        Part(
            "ServiceInstanceJVMGC",
            "gc",
            {"phase": _named("GCPhase", "phase"), **_same("time", "count")},
        ),
        Part(
            "ServiceInstanceJVMThread",
            "thread",
            _same(*THREADS),
        ),
        Part(
            "ServiceInstanceJVMClass",
            "clazz",
            _same(*CLASSES),
        ),
    ),
    each="metrics",
)
_CLR = Report(
    Layer.GENERAL,
    _INSTANCE,
    (
        Part("ServiceInstanceCLRCPU", "cpu", {"usePercent": _percent}),
        Part(
            "ServiceInstanceCLRGC",
            "gc",
            {
                "gen0CollectCount": "Gen0CollectCount",
                "gen1CollectCount": "Gen1CollectCount",
                "gen2CollectCount": "Gen2CollectCount",
                "heapMemory": "HeapMemory",
            },
        ),
        Part(
            "ServiceInstanceCLRThread",
            "thread",
            {
                "availableCompletionPortThreads": "AvailableCompletionPortThreads",
                "availableWorkerThreads": "AvailableWorkerThreads",
                "maxCompletionPortThreads": "MaxCompletionPortThreads",
                "maxWorkerThreads": "MaxWorkerThreads",
            },
        ),
    ),
    each="metrics",
)
_METER = Report(
    Layer.GENERAL,
    _INSTANCE,
    (Part("InstanceMeter", "singleValue", {"meter": "name", "value": _rounded}),),
    time="timestamp",
    of_each=True,
    needs=("service", "instance"),
)


def _server(metrics: pa.StructArray) -> pa.BooleanArray:
    """Seen by the proxy of the one that was called."""
    return pc.equal(pc.struct_field(metrics, "detectPoint"), DetectPoint.server)


def _has(*fields: str) -> Callable[[pa.StructArray], pa.BooleanArray]:
    return lambda metrics: reduce(
        pc.and_, (pc.not_equal(pc.struct_field(metrics, field), "") for field in fields)
    )


def _both(*tests: Callable[[pa.StructArray], pa.BooleanArray]) -> Any:
    return lambda metrics: reduce(pc.and_, (test(metrics) for test in tests))


def _chosen(field: str, names: Mapping[int, str | int], other: str | int) -> Value:
    """By the number in a field."""
    keys, values = pa.array(list(names), pa.int32()), pa.array(list(names.values()))

    def value(metrics: pa.StructArray) -> pa.Array:
        at = pc.index_in(pc.struct_field(metrics, field), keys)
        return pc.coalesce(values.take(at), pa.scalar(other, values.type))

    return value


_SEEN: Final = {
    "detectPoint": _chosen("detectPoint", {0: "CLIENT", 1: "SERVER", 2: "PROXY"}, "SERVER"),
    "tlsMode": "tlsMode",
}
_TLS: Final = {"tlsMode": "tlsMode"}
_HTTP: Final[Mapping[str, Value]] = {
    **_same("latency", "status"),
    "httpResponseStatusCode": "responseCode",
    "type": _chosen("protocol", {0: "HTTP", 1: "gRPC"}, "RPC"),
    "sideCar.internalRequestLatencyNanos": "internalRequestLatencyNanos",
    "sideCar.internalResponseLatencyNanos": "internalResponseLatencyNanos",
}
_HTTP_BETWEEN: Final[Mapping[str, Value]] = {
    **_HTTP,
    **_SEEN,
    "componentId": _chosen("protocol", {0: 49, 1: 23}, 50),
    "endpoint": "endpoint",
}
_BYTES: Final = _same("receivedBytes", "sentBytes")
_INSTANCES: Final = ("sourceServiceName", "sourceServiceInstance", "destServiceInstance")
_MESH = Report(
    Layer.MESH,
    {
        "service": "destServiceName",
        "instance": "destServiceInstance",
        "from_service": "sourceServiceName",
        "from_instance": "sourceServiceInstance",
    },
    (),
    time="startTime",
    of_each=True,
    needs=("service",),
)
_MESH_HTTP = replace(
    _MESH,
    each="httpMetrics.metrics",
    names={**_MESH.names, "endpoint": "endpoint"},
    parts=(
        Part(
            "Service",
            "",
            {
                **_HTTP,
                **_TLS,
                "serviceInstanceName": "destServiceInstance",
                "endpointName": "endpoint",
            },
            _server,
        ),
        Part(
            "ServiceInstance",
            "",
            {**_HTTP, "endpointName": "endpoint"},
            _both(_server, _has("destServiceInstance")),
        ),
        Part(
            "Endpoint",
            "",
            {**_HTTP, "serviceInstanceName": "destServiceInstance"},
            _both(_server, _has("endpoint")),
        ),
        Part(
            "ServiceRelation",
            "",
            {
                **_HTTP_BETWEEN,
                "sourceServiceInstanceName": "sourceServiceInstance",
                "destServiceInstanceName": "destServiceInstance",
            },
            _has("sourceServiceName"),
        ),
        Part("ServiceInstanceRelation", "", _HTTP_BETWEEN, _has(*_INSTANCES)),
    ),
)
_MESH_TCP = replace(
    _MESH,
    each="tcpMetrics.metrics",
    parts=(
        Part("TCPService", "", {**_BYTES, **_TLS}, _server),
        Part(
            "TCPServiceInstance",
            "",
            {**_BYTES, **_TLS},
            _both(_server, _has("destServiceInstance")),
        ),
        Part("TCPServiceRelation", "", {**_BYTES, **_SEEN}, _has("sourceServiceName")),
        Part("TCPServiceInstanceRelation", "", {**_BYTES, **_SEEN}, _has(*_INSTANCES)),
    ),
)
_ONE: Final[Mapping[int, Report]] = {
    Kind.METER: _METER,
    Kind.METER_COLLECTION: replace(_METER, each="meterData"),
    Kind.JVM_METRICS: _JVM,
    Kind.CLR_METRICS: _CLR,
    Kind.BROWSER_PAGE: Report(
        Layer.BROWSER,
        _PAGE,
        (
            *_traffic({"trafficCategory": _always("NORMAL")}),
            Part("BrowserAppPagePerf", "", _same(*PAGE_TIMES)),
        ),
    ),
    Kind.BROWSER_ERROR: Report(
        Layer.BROWSER, _PAGE, _traffic({"trafficCategory": _category, "errorCategory": _error})
    ),
    Kind.BROWSER_WEB_VITALS: Report(
        Layer.BROWSER,
        _PAGE,
        (
            Part(
                "BrowserAppWebVitalsPerf",
                "",
                {"cls": _thousandths, **_same("fmpTime", "lcpTime")},
            ),
        ),
    ),
    Kind.BROWSER_RESOURCE: Report(
        Layer.BROWSER,
        _PAGE,
        (
            Part(
                "BrowserAppResourcePerf",
                "",
                {"type": "resourceType", **_same("name", "protocol", "duration", "size")},
            ),
        ),
    ),
    Kind.BROWSER_INTERACTION: Report(
        Layer.BROWSER, _PAGE, (Part("BrowserAppWebInteractionPerf", "", _same("inpTime")),)
    ),
}
REPORTS: Final[Mapping[int, tuple[Report, ...]]] = {
    **{kind: (report,) for kind, report in _ONE.items()},
    Kind.MESH_METRICS: (_MESH_HTTP, _MESH_TCP),
}
_PARTS: Final = tuple(part for of in REPORTS.values() for report in of for part in report.parts)


@cache
def slots_of(source: str) -> Mapping[str, str]:
    """Attribute → the place that holds it, of what messages say; names of entities are no part."""
    slots: dict[str, str] = {}
    used: dict[str, int] = {}
    said = {name for part in _PARTS if part.source == source for name in part.values}
    for name, attribute in SOURCES[source].attributes.items():
        if name not in said:
            continue
        slot, _ = _SLOTS[attribute.type]
        slots[name] = f"{slot}_{used.get(slot, 0)}"
        used[slot] = used.get(slot, 0) + 1
    return slots


def _form() -> pa.StructType:
    kinds = dict(_SLOTS.values())
    slots = {slot for part in _PARTS for slot in slots_of(part.source).values()}
    return pa.struct(
        [
            pa.field("source", pa.string()),
            pa.field("time", pa.int64()),
            *(pa.field(name, pa.string()) for name in _NAMES),
            pa.field("layer", pa.int32()),
            pa.field("component", pa.int32()),
            pa.field("detect_point", pa.string()),
            *(pa.field(slot, kinds[slot.partition("_")[0]]) for slot in sorted(slots, key=_place)),
        ]
    )


def _place(slot: str) -> tuple[str, int]:
    kind, _, number = slot.partition("_")
    return kind, int(number)


FORM: Final = _form()
TYPE: Final = pa.list_(pa.field("element", FORM, nullable=False))


def reports_of(kind: int, batch: pa.RecordBatch) -> pa.ListArray:
    """What the decoded messages of that kind say, a list for each."""
    whole = pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))
    made = [rows for report in REPORTS[kind] for rows in _made(report, whole)]
    owners = np.concatenate([owner for _, owner in made])
    order = np.argsort(owners, kind="stable")
    counts = np.bincount(owners, minlength=batch.num_rows)
    offsets = np.concatenate([np.zeros(1, np.int32), np.cumsum(counts, dtype=np.int32)])
    rows = pa.concat_arrays([row for row, _ in made]).take(pa.array(order))
    return pa.ListArray.from_arrays(pa.array(offsets), rows, type=TYPE)


def _made(report: Report, whole: pa.StructArray) -> Iterator[tuple[pa.StructArray, Owners]]:
    messages, parents = _inside(whole, report.each)
    if report.of_each:
        messages, parents = _those(_known(messages, report), messages, parents)
    for part in report.parts:
        yield _rows(part, report, whole, messages, parents)


Owners: TypeAlias = npt.NDArray[np.int64]
"""For each message the place of the record that it is in."""


def _inside(messages: pa.StructArray, path: str) -> tuple[pa.StructArray, Owners]:
    """The messages at that path, and in which of the given ones each is."""
    owners: Owners = np.arange(len(messages))
    for name in path.split(".") if path else ():
        messages = pc.struct_field(messages, name)
        if pa.types.is_list(messages.type):
            owners = owners[pc.list_parent_indices(messages).to_numpy()]
            messages = pc.list_flatten(messages)
        else:
            messages, owners = _those(pc.is_valid(messages), messages, owners)
    return messages, owners


def _those(
    asked: pa.BooleanArray, messages: pa.StructArray, owners: Owners
) -> tuple[pa.StructArray, Owners]:
    return messages.filter(asked), owners[asked.to_numpy(zero_copy_only=False)]


def _known(messages: pa.StructArray, report: Report) -> pa.BooleanArray:
    """Those that say who they are of, and when."""
    known = pc.greater(pc.struct_field(messages, report.time), 0)
    return pc.and_(known, _has(*(report.names[name] for name in report.needs))(messages))


def _rows(
    part: Part, report: Report, whole: pa.StructArray, messages: pa.StructArray, parents: Owners
) -> tuple[pa.StructArray, Owners]:
    """The rows of that part, and the record of each."""
    inner, owners = _inside(messages, part.path)
    if part.asked is not None:
        inner, owners = _those(part.asked(inner), inner, owners)
    records = parents[owners]
    named = (messages, owners) if report.of_each else (whole, records)
    count = len(inner)
    columns = {
        "source": pa.array([part.source] * count, pa.string()),
        "time": pc.struct_field(messages, report.time).take(pa.array(owners)),
        "layer": pa.array([int(report.layer)] * count, pa.int32()),
        **_entity(part, report, *named),
    }
    slots = slots_of(part.source)
    for attribute, value in part.values.items():
        slot = slots[attribute]
        found = pc.struct_field(inner, value) if isinstance(value, str) else value(inner)
        columns[slot] = found.cast(FORM.field(slot).type)
        if attribute in _OF_RELATIONS:
            column = _OF_RELATIONS[attribute]
            columns[column] = found.cast(FORM.field(column).type)
    arrays = [columns[f.name] if f.name in columns else pa.nulls(count, f.type) for f in FORM]
    return pa.StructArray.from_arrays(arrays, fields=list(FORM)), records


_OF_RELATIONS: Final = {"componentId": "component", "detectPoint": "detect_point"}
_WHOSE: Final = {
    Entity.SERVICE_RELATION: ("service", "from_service"),
    Entity.INSTANCE_RELATION: ("service", "instance", "from_service", "from_instance"),
    Entity.SERVICE: ("service",),
    Entity.INSTANCE: ("service", "instance"),
    Entity.ENDPOINT: ("service", "endpoint"),
}


def _entity(
    part: Part, report: Report, messages: pa.StructArray, places: Owners
) -> dict[str, pa.Array]:
    """The names of whom the source speaks, of the messages at these places; others are empty."""
    whose = _WHOSE[ENTITIES[part.source]]
    nobody = pa.array([""] * len(places), pa.string())
    return {
        name: pc.struct_field(messages, report.names[name]).take(pa.array(places))
        if name in whose
        else nobody
        for name in _NAMES
    }
