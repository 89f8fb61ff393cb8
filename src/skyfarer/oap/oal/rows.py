"""Reading one source row: its values, and whether a condition holds.

A row is what a source has by attribute path: `{"latency": 12, "tag": {"k": "v"}}`. A number that is
missing is 0 and a flag false, as in the original; anything else that is missing is null.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from skyfarer.oap.oal.plan import Condition, Field
from skyfarer.oap.oal.sources import Type

Row: TypeAlias = Mapping[str, object]
Number: TypeAlias = int | float

_DEFAULTS: Final = {Type.LONG: 0, Type.INT: 0, Type.DOUBLE: 0.0, Type.BOOLEAN: False}
_BITS: Final = {"long": 64, "int": 32}
_DIGITS_MAX: Final = 40


def read(field: Field, row: Row) -> object:
    value = row.get(field.path)
    if field.key is not None:
        value = value.get(field.key) if isinstance(value, Mapping) else None
    if field.cast is not None:
        return _parsed(value, field.cast)
    return _DEFAULTS.get(field.type) if value is None else value


def number(field: Field, row: Row) -> Number:
    """Of a field that the checker found to be one; what else is in the row is a defect."""
    value = read(field, row)
    if not isinstance(value, int | float):
        raise TypeError(f"'{field}' of a row is {value!r}, and a number was promised")
    return value


def holds(condition: Condition, row: Row) -> bool:
    left, right, operator = read(condition.field, row), condition.value, condition.operator
    if operator in ("==", "!="):
        return (left == right) is (operator == "==")
    if left is None:
        return False
    if operator == "in":
        return isinstance(right, tuple) and left in right
    if operator in ("contain", "not contain"):
        return (isinstance(left, list | tuple) and right in left) is (operator == "contain")
    if operator == "like":
        return _like(str(left), str(right))
    return isinstance(right, int | float) and _ordered(
        number(condition.field, row), operator, right
    )


def _parsed(value: object, cast: str) -> int | None:
    """As Java's parseLong: ASCII digits, a sign before them, within range; or null."""
    text = value if isinstance(value, str) else ""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > _DIGITS_MAX:
        return None
    parsed, limit = int(text), 2 ** (_BITS[cast] - 1)
    return parsed if -limit <= parsed < limit else None


def _like(text: str, pattern: str) -> bool:
    inside = pattern.removeprefix("%").removesuffix("%")
    if pattern.startswith("%") and pattern.endswith("%"):
        return inside in text
    return text.endswith(inside) if pattern.startswith("%") else text.startswith(inside)


def _ordered(left: Number, operator: str, right: Number) -> bool:
    if operator == ">":
        return left > right
    if operator == "<":
        return left < right
    return left >= right if operator == ">=" else left <= right
