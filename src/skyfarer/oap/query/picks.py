"""What picks the selected part of a value: a function each, put together by `selection`.

Values are plain: dicts, lists, texts and numbers, and `Rows`. What does not fit its type raises
UnfitError.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, Final, TypeAlias, cast

from graphql import GraphQLLeafType, GraphQLOutputType, is_leaf_type, is_non_null_type

from skyfarer.oap.query.rows import Rows

Pick: TypeAlias = Callable[[Any], Any]
"""A value as storage has it → as it is answered; None for none."""
_AS_THEY_ARE: Final[dict[str, type]] = {"String": str, "ID": str, "Boolean": bool, "Long": int}
"""Of a type's name, what is answered without a further look. Long is the schema's own, and has no
rule for what it is written as."""


class UnfitError(Exception):
    """A value is not of its type."""


@dataclass(frozen=True)
class Field:
    """One that is selected: `name` in the value becomes `key` in the answer. Values of the types
    in `as_they_are` are their own answers."""

    key: str
    name: str
    pick: Pick
    as_they_are: frozenset[type]

    def of(self, rows: Rows) -> Sequence[Any]:
        column = rows.columns.get(self.name)
        if column is None:
            column = (None,) * len(rows)
        if self.as_they_are.issuperset(map(type, column)):
            return column
        return list(map(self.pick, column))


def as_they_are(of: GraphQLOutputType) -> frozenset[type]:
    if is_non_null_type(of):
        return as_they_are(of.of_type) - {NoneType}
    known = _AS_THEY_ARE.get(of.name) if is_leaf_type(of) else None
    return frozenset({NoneType} if known is None else {NoneType, known})


def present(pick: Pick) -> Pick:
    def present(value: Any) -> Any:
        if (picked := pick(value)) is None:
            raise UnfitError
        return picked

    return present


def each(pick: Pick) -> Pick:
    def each(value: Any) -> list[Any] | None:
        if value is None:
            return None
        if not isinstance(value, list | tuple):
            raise UnfitError
        return [pick(one) for one in value]

    return each


def each_row(fields: Sequence[Field], others: Pick) -> Pick:
    """Of Rows, a column at a time; of a list of objects what `others` makes of it."""
    together = _objects([field.key for field in fields])

    def rows(value: Any) -> list[Any] | None:
        if isinstance(value, Rows):
            return together([field.of(value) for field in fields])
        return cast("list[Any] | None", others(value))

    return rows


def _objects(keys: Sequence[str]) -> Callable[[Sequence[Sequence[Any]]], list[Any]]:
    """Columns → objects. One whose fields are counted beforehand is made three times as fast."""
    match keys:
        case [a]:
            return lambda columns: [{a: v} for v in columns[0]]
        case [a, b]:
            return lambda columns: [{a: v, b: w} for v, w in zip(*columns, strict=True)]
        case [a, b, c]:
            return lambda columns: [{a: v, b: w, c: x} for v, w, x in zip(*columns, strict=True)]
        case [a, b, c, d]:
            return lambda columns: [
                {a: v, b: w, c: x, d: y} for v, w, x, y in zip(*columns, strict=True)
            ]
        case _:
            return lambda columns: [
                dict(zip(keys, values, strict=True)) for values in zip(*columns, strict=True)
            ]


def fields(of: Sequence[Field]) -> Pick:
    selected = [(field.key, field.name, field.pick) for field in of]

    def picked(value: Any) -> dict[str, Any] | None:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise UnfitError
        found = value.get
        return {key: pick(found(name)) for key, name, pick in selected}

    return picked


def leaf(of: GraphQLLeafType, *, optional: bool = True) -> Pick:
    as_it_is, coerced = _AS_THEY_ARE.get(of.name), cast(Pick, of.coerce_output_value)

    def leaf(value: Any) -> Any:
        if type(value) is as_it_is or (value is None and optional):
            return value
        try:
            found = coerced(value)
        except Exception as error:
            raise UnfitError from error
        if found is None:
            raise UnfitError
        return found

    return leaf
