"""Accumulators, conditions and keys of the plan as expressions of Spark.

They mean what `oal.rows` and `oal.interpreter` say in plain Python. Null counts as false wherever a
condition ends up, alone or joined by "and" and "or", so only those that null fulfils are guarded.
Nothing here raises on data: what is out of range is null.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import reduce
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from skyfarer.oap.oal.interpreter import APDEX_THRESHOLD_MS
from skyfarer.oap.oal.plan import Accumulator, Condition, Field, Operation
from skyfarer.oap.oal.sources import Type
from skyfarer.oap.oal.tables import Key

DEFAULT_NAME: Final = "default"
_NUMBER: Final = r"\A[+-]?[0-9]{1,40}\z"
_MISSING: Final = {Type.LONG: 0, Type.INT: 0, Type.DOUBLE: 0.0, Type.BOOLEAN: False}
_CASTS: Final = {"long": "bigint", "int": "int"}
_COMPARED: Final[Mapping[str, Callable[[Column, Column], Column]]] = {
    "==": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}


UNSAID: Final = ""
"""The path of a field of which no row says anything."""
_UNSAID: Final[Mapping[Type, tuple[object, str]]] = {
    Type.LONG: (0, "long"),
    Type.INT: (0, "int"),
    Type.DOUBLE: (0.0, "double"),
    Type.BOOLEAN: (False, "boolean"),
    Type.LIST: (None, "array<string>"),
}


def unsaid(type_: Type) -> Column:
    """Text and names of enumerations are null."""
    value, name = _UNSAID.get(type_, (None, "string"))
    return F.lit(value).cast(name)


class Expressions:
    """`columns` hold the fields before any cast; `threshold_ms` is Apdex's T by name; `of_group`
    are the paths of fields that all rows of a group have in common."""

    def __init__(
        self,
        columns: Mapping[Field, Column],
        threshold_ms: Mapping[str, int],
        of_group: Collection[str],
    ) -> None:
        self._columns = columns
        self._threshold_ms = threshold_ms
        self._of_group = of_group

    def value(self, field: Field) -> Column:
        column = self._columns[field]
        if field.cast is not None:
            return F.when(column.rlike(_NUMBER), column.try_cast(_CASTS[field.cast]))
        missing = _MISSING.get(field.type)
        return column if missing is None else F.coalesce(column, F.lit(missing))

    def holds(self, condition: Condition) -> Column:
        left, how, right = self.value(condition.field), condition.operator, condition.value
        if right is None:
            return left.isNull() if how == "==" else left.isNotNull()
        if isinstance(right, tuple):
            known = [value for value in right if value is not None]
            return left.isin(*known) if known else F.lit(False)
        if how == "!=":
            return ~left.eqNullSafe(right)
        if how == "contain":
            return F.array_contains(left, right)
        if how == "not contain":
            return left.isNotNull() & ~F.coalesce(F.array_contains(left, right), F.lit(False))
        return _like(left, str(right)) if how == "like" else _COMPARED[how](left, F.lit(right))

    def key(self, key: Key) -> Column:
        value = self.value(key.field)
        if not key.width:
            return value
        bucket = F.call_function("div", value, F.lit(key.width))
        return F.least(bucket, F.lit(key.bound)) if key.bound else bucket

    def aggregate(self, one: Accumulator) -> Column:
        """Null, or 0 of a count, where no row has reached it."""
        common = [self.holds(c) for c in one.where if c.field.path in self._of_group]
        found = self._added(one)
        if not common:
            return found
        counted = one.operation not in _AGGREGATES
        return F.when(all_of(common), found).otherwise(F.lit(0 if counted else None))

    def _added(self, one: Accumulator) -> Column:
        """Of all rows of the group that fulfil what is not of the group."""
        # A text has to be read before it is compared as a number, so such conditions come last.
        where = sorted(one.where, key=lambda condition: condition.field.cast is not None)
        conditions = [self.holds(c) for c in where if c.field.path not in self._of_group]
        if one.operation in (Operation.SATISFIED, Operation.TOLERATED):
            conditions.append(self._apdex(one))
        item = self._item(one)
        if one.operation in _AGGREGATES and one.inputs[0].path == UNSAID:
            reached = F.count(F.when(all_of(conditions), 1) if conditions else F.lit(1))
            return F.when(reached > 0, item)
        taken = F.when(all_of(conditions), item) if conditions else item
        if one.operation is Operation.SUM and one.inputs[0].number is Type.INT:
            return F.sum(taken)
        return _AGGREGATES.get(one.operation, F.count)(taken)

    def _item(self, one: Accumulator) -> Column:
        if one.operation not in _AGGREGATES:
            return F.lit(1)
        value = self.value(one.inputs[0])
        value = value.cast("double" if one.operation in DOUBLE else "bigint")
        return F.greatest(value, F.lit(0)) if one.operation in _MAX else value

    def _apdex(self, one: Accumulator) -> Column:
        value, name, status = map(self.value, one.inputs)
        limit = self._threshold(name)
        if one.operation is Operation.SATISFIED:
            return status & (value <= limit)
        return status & (value > limit) & (value <= limit * 4)

    def _threshold(self, name: Column) -> Column:
        """Names with one T are looked up together, in a hash set when they are many."""
        default = self._threshold_ms.get(DEFAULT_NAME, APDEX_THRESHOLD_MS)
        names: dict[int, list[str]] = {}
        for known, limit_ms in self._threshold_ms.items():
            if limit_ms != default:
                names.setdefault(limit_ms, []).append(known)
        found = F.lit(default).cast("bigint")
        for limit_ms, those in names.items():
            found = F.when(name.isin(*those), F.lit(limit_ms).cast("bigint")).otherwise(found)
        return found


DOUBLE: Final = frozenset({Operation.SUM_DOUBLE, Operation.MAX_DOUBLE, Operation.MIN_DOUBLE})
_MAX: Final = frozenset({Operation.MAX, Operation.MAX_DOUBLE})
_AGGREGATES: Final[Mapping[Operation, Callable[[Column], Column]]] = {
    Operation.SUM: F.try_sum,
    Operation.SUM_DOUBLE: F.sum,
    Operation.MAX: F.max,
    Operation.MAX_DOUBLE: F.max,
    Operation.MIN: F.min,
    Operation.MIN_DOUBLE: F.min,
}
"""All others count."""


def all_of(conditions: Iterable[Column]) -> Column:
    return _joined(conditions, lambda one, other: one & other)


def any_of(conditions: Iterable[Column]) -> Column:
    return _joined(conditions, lambda one, other: one | other)


def _joined(conditions: Iterable[Column], join: Callable[[Column, Column], Column]) -> Column:
    found = list(conditions)
    return reduce(join, found) if found else F.lit(True)


def _like(text: Column, pattern: str) -> Column:
    inside = pattern.removeprefix("%").removesuffix("%")
    if pattern.startswith("%") and pattern.endswith("%"):
        return text.contains(inside)
    return text.endswith(inside) if pattern.startswith("%") else text.startswith(inside)
