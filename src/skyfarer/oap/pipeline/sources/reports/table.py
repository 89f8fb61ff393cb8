"""Every kind that is a report, and the form that the rows of all of them have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

import pyarrow as pa

from skyfarer.oap.oal.sources import SOURCES, Type
from skyfarer.oap.pipeline.sources.reports.browsers import BROWSERS
from skyfarer.oap.pipeline.sources.reports.declared import INSTANCE_ID, Report
from skyfarer.oap.pipeline.sources.reports.meshes import MESH_HTTP, MESH_TCP
from skyfarer.oap.pipeline.sources.reports.runtimes import CLR, JVM, METER, METERS, V2_CLR, V2_JVM
from skyfarer.oap.pipeline.sources.reports.satellites import SATELLITE, SATELLITES
from skyfarer.wire.rpc import Kind

REPORTS: Final[Mapping[int, tuple[Report, ...]]] = {
    Kind.METER: (METER, SATELLITE),
    Kind.METER_COLLECTION: (METERS, SATELLITES),
    Kind.JVM_METRICS: (JVM,),
    Kind.CLR_METRICS: (CLR,),
    Kind.V2_JVM_METRICS: (V2_JVM,),
    Kind.V2_CLR_METRICS: (V2_CLR,),
    Kind.MESH_METRICS: (MESH_HTTP, MESH_TCP),
    **{kind: (report,) for kind, report in BROWSERS.items()},
}
NAMES: Final = ("service", "instance", "endpoint", "from_service", "from_instance")
_SLOTS: Final[Mapping[Type, tuple[str, pa.DataType]]] = {
    Type.LONG: ("whole", pa.int64()),
    Type.INT: ("whole", pa.int64()),
    Type.DOUBLE: ("fraction", pa.float64()),
    Type.BOOLEAN: ("flag", pa.bool_()),
    Type.TEXT: ("text", pa.string()),
    Type.ENUM: ("text", pa.string()),
}
_PROPERTIES: Final = pa.list_(
    pa.field("element", pa.struct({"key": pa.string(), "value": pa.string()}), nullable=False)
)
_PARTS: Final = tuple(part for of in REPORTS.values() for report in of for part in report.parts)


def sources_of(kinds: Iterable[int]) -> frozenset[str]:
    """What messages of these kinds may say; of those that are no reports nothing."""
    reports = (report for kind in kinds for report in REPORTS.get(kind, ()))
    return frozenset(part.source for report in reports for part in report.parts)


@cache
def slots_of(source: str) -> Mapping[str, str]:
    """Attribute → the place that holds it, of what messages say; names of entities are no part."""
    slots: dict[str, str] = {}
    if source not in SOURCES:
        return slots
    used: dict[str, int] = {}
    said = {name for part in _PARTS if part.source == source for name in part.attributes}
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
            *(pa.field(name, pa.string()) for name in NAMES),
            pa.field(INSTANCE_ID, pa.int32()),
            pa.field("layer", pa.int32()),
            pa.field("component", pa.int32()),
            pa.field("detect_point", pa.string()),
            pa.field("properties", _PROPERTIES),
            *(pa.field(slot, kinds[slot.partition("_")[0]]) for slot in sorted(slots, key=_place)),
        ]
    )


def _place(slot: str) -> tuple[str, int]:
    kind, _, number = slot.partition("_")
    return kind, int(number)


FORM: Final = _form()
TYPE: Final = pa.list_(pa.field("element", FORM, nullable=False))
