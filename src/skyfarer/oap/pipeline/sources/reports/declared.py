"""How a message is taken apart: what is declared of each, and how values are made of fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.core.layers import Layer
from skyfarer.oap.oal.sources import ENUMS

Made: TypeAlias = Callable[[pa.StructArray], pa.Array]
Value: TypeAlias = str | Made
"""Of an attribute: the field that holds it, or how it is made of the message."""
INSTANCE_ID: Final = "instance_id"
"""Of an agent of v2, in the place of names: they are in storage, which no worker reads."""


@dataclass(frozen=True)
class Part:
    """Rows of one source: one for each message at `path`, which is a list, a message or, empty,
    the whole of it; of those that are `asked`, if not of all."""

    source: str
    path: str
    values: Mapping[str, Value]
    asked: Made | None = None
    component: Made | None = None
    """Of a relation: what it is known by, where that is not its `componentId` alone."""
    properties: str = ""
    """Of an instance: the field that has them."""
    outer: Mapping[str, Made] = field(default_factory=dict)
    """Attributes that the whole message says, of all that is at `path`."""

    @property
    def attributes(self) -> tuple[str, ...]:
        return *self.values, *self.outer


@dataclass(frozen=True)
class Report:
    """`each` is the list whose elements have a `time` and parts of their own, or empty. The names
    of service, instance and endpoint, or else the INSTANCE_ID, are fields of the message, or,
    `of_each`, of its elements; then one that lacks a time or one of the names it `needs` is passed
    over. Names and time are `carried` to the elements after one that have none of their own.
    `prefix` is what the service is called by here, before the name it gives itself."""

    layer: Layer
    names: Mapping[str, str]
    parts: tuple[Part, ...]
    each: str = ""
    time: str = "time"
    of_each: bool = False
    carried: bool = False
    needs: tuple[str, ...] = ()
    prefix: str = ""


def named(enum: str, field: str) -> Made:
    """The name of a number of that enumeration; null for one that it does not have."""
    names = pa.array(ENUMS[enum])

    def value(messages: pa.StructArray) -> pa.Array:
        numbers = pc.struct_field(messages, field)
        known = pc.and_(pc.greater_equal(numbers, 0), pc.less(numbers, len(names)))
        return names.take(pc.if_else(known, numbers, None))

    return value


def always(value: int | str) -> Made:
    return lambda messages: pa.array([value] * len(messages))


def same(*fields: str) -> Mapping[str, Value]:
    return {field: field for field in fields}


def chosen(field: str, names: Mapping[int, str | int], other: str | int) -> Made:
    """By the number in a field."""
    keys, values = pa.array(list(names), pa.int32()), pa.array(list(names.values()))

    def value(metrics: pa.StructArray) -> pa.Array:
        at = pc.index_in(pc.struct_field(metrics, field), keys)
        return pc.coalesce(values.take(at), pa.scalar(other, values.type))

    return value


def has(*fields: str) -> Made:
    """Whether none of these texts is empty."""
    return lambda metrics: reduce(
        pc.and_, (pc.not_equal(pc.struct_field(metrics, field), "") for field in fields)
    )


def both(*tests: Made) -> Made:
    return lambda metrics: reduce(pc.and_, (test(metrics) for test in tests))
