"""The decoded messages of a kind, taken apart: lists of rows, in whole columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.entities import ENTITIES, INSTANCE_META, Entity
from skyfarer.oap.pipeline.sources.reports.declared import INSTANCE_ID, Part, Report, has
from skyfarer.oap.pipeline.sources.reports.table import FORM, NAMES, REPORTS, TYPE, slots_of

Owners: TypeAlias = npt.NDArray[np.int64]
"""For each message the place of the record that it is in."""
_OF_RELATIONS: Final = {"componentId": "component", "detectPoint": "detect_point"}
_ENTITIES: Final = {**ENTITIES, INSTANCE_META: Entity.INSTANCE}
_WHOSE: Final = {
    Entity.SERVICE_RELATION: ("service", "from_service"),
    Entity.INSTANCE_RELATION: ("service", "instance", "from_service", "from_instance"),
    Entity.SERVICE: ("service",),
    Entity.INSTANCE: ("service", "instance"),
    Entity.ENDPOINT: ("service", "endpoint"),
}


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
    if report.carried:
        messages = _carried(messages, parents, {report.time, *report.names.values()})
    if report.of_each:
        messages, parents = _those(_known(messages, report), messages, parents)
    for part in report.parts:
        yield _rows(part, report, whole, messages, parents)


def _carried(messages: pa.StructArray, owners: Owners, names: set[str]) -> pa.StructArray:
    """The same with these fields of the elements before, of one record, where they are empty."""
    fields = list(messages.type)
    columns = {field.name: pc.struct_field(messages, field.name) for field in fields}
    for name in names:
        nothing = pa.scalar("" if pa.types.is_string(columns[name].type) else 0, columns[name].type)
        known = pc.not_equal(columns[name], nothing).to_numpy(zero_copy_only=False)
        if not known.all():
            last = np.maximum.accumulate(np.where(known, np.arange(len(known)), 0))
            first = np.searchsorted(owners, owners)
            columns[name] = columns[name].take(pa.array(np.maximum(last, first)))
    return pa.StructArray.from_arrays(list(columns.values()), fields=fields)


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
    return pc.and_(known, has(*(report.names[name] for name in report.needs))(messages))


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
    for attribute, found in _said(part, inner, messages, owners):
        slot = slots[attribute]
        columns[slot] = found.cast(FORM.field(slot).type)
        if attribute in _OF_RELATIONS:
            column = _OF_RELATIONS[attribute]
            columns[column] = found.cast(FORM.field(column).type)
    if part.component is not None:
        columns["component"] = part.component(inner)
    if part.properties:
        told = pc.struct_field(inner, part.properties)
        columns["properties"] = told.cast(FORM.field("properties").type)
    arrays = [columns[f.name] if f.name in columns else pa.nulls(count, f.type) for f in FORM]
    return pa.StructArray.from_arrays(arrays, fields=list(FORM)), records


def _said(
    part: Part, inner: pa.StructArray, messages: pa.StructArray, owners: Owners
) -> Iterator[tuple[str, pa.Array]]:
    """Attribute and its value of each row; `owners` are their places among the messages."""
    for attribute, value in part.values.items():
        found = pc.struct_field(inner, value) if isinstance(value, str) else value(inner)
        yield attribute, found
    for attribute, made in part.outer.items():
        yield attribute, made(messages).take(pa.array(owners))


def _entity(
    part: Part, report: Report, messages: pa.StructArray, places: Owners
) -> dict[str, pa.Array]:
    """The names of whom the source speaks, of the messages at these places; others are empty.
    Of one that is known by its id alone all are."""
    whose = _WHOSE[_ENTITIES[part.source]] if INSTANCE_ID not in report.names else (INSTANCE_ID,)
    nobody = pa.array([""] * len(places), pa.string())
    found = dict.fromkeys(NAMES, nobody) | {
        name: pc.struct_field(messages, report.names[name]).take(pa.array(places)) for name in whose
    }
    if report.prefix:
        prefix, nothing = pa.scalar(report.prefix), pa.scalar("")
        found["service"] = pc.binary_join_element_wise(prefix, found["service"], nothing)
    return found
