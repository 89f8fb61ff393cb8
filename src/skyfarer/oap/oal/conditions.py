"""Paths and comparisons of one source, checked against its attributes."""

from __future__ import annotations

from typing import Final

from skyfarer.base.binding import nearest
from skyfarer.oap.oal import syntax
from skyfarer.oap.oal.plan import Condition, Field, Scalar
from skyfarer.oap.oal.problems import OalMistake
from skyfarer.oap.oal.sources import ENUMS, NULLABLE, NUMBERS, WHOLE, Attribute, Source, Type

DECORATED: Final = "attr0"
LAYER: Final = "layer"
_ORDERED: Final = frozenset({">", "<", ">=", "<="})
_OF_LISTS: Final = frozenset({"contain", "not contain"})
_VALUES: Final = {
    Type.BOOLEAN: "true or false",
    Type.TEXT: "a text in quotes",
    Type.LIST: "null",
}


class Attributes:
    """Of a source. A decorator fills `attr0`, which is unset without one: where it does, `attr0`
    is read as the layer's name that it would be filled with."""

    def __init__(self, source: Source, decorated: bool = False) -> None:
        self._source = source
        self._decorated = decorated

    def field(self, path: syntax.Path) -> Field:
        name = ".".join(part.name for part in path.parts)
        attribute = self._source.attributes.get(name)
        if attribute is None:
            hint = nearest(name, self._source.attributes)
            raise OalMistake(
                path.parts[0].place, f"{self._source.name} has no attribute '{name}'{hint}"
            )
        key = self._key(path, attribute)
        type_ = Type.TEXT if key is not None else attribute.type
        read = LAYER if self._decorated and name == DECORATED else name
        return Field(read, type_, key, self._cast(path, type_))

    def _key(self, path: syntax.Path, attribute: Attribute) -> str | None:
        for part in path.parts[:-1]:
            if part.key is not None:
                raise OalMistake(part.place, f"nothing can follow '{part.name}[...]'")
        last = path.parts[-1]
        if attribute.type is Type.MAP and last.key is None:
            raise OalMistake(last.place, f"'{last.name}' needs a key, as in {last.name}[\"key\"]")
        if attribute.type is not Type.MAP and last.key is not None:
            raise OalMistake(last.place, f"'{last.name}' is no map and takes no key")
        return last.key

    def _cast(self, path: syntax.Path, type_: Type) -> str | None:
        if path.cast is None or type_ in WHOLE:
            return None
        if type_ is not Type.TEXT:
            raise OalMistake(path.place, "a cast reads a number from a text, and this is none")
        return path.cast

    def condition(self, written: syntax.Comparison) -> Condition:
        field = self.field(written.left)
        operator, right = written.operator, written.right
        self._check_operator(field, written)
        if operator == "in":
            if not isinstance(right, syntax.ListValue):
                raise OalMistake(right.place, "'in' needs a list, as in [1, 2]")
            return Condition(field, operator, tuple(self._scalar(field, i) for i in right.items))
        if isinstance(right, syntax.ListValue):
            raise OalMistake(right.place, f"only 'in' takes a list, not '{operator}'")
        if operator in _OF_LISTS or operator == "like":
            return Condition(field, operator, _text(operator, right))
        value = self._scalar(field, right)
        if value is None and operator in _ORDERED:
            raise OalMistake(right.place, f"nothing is {operator} null")
        return Condition(field, operator, value)

    def _check_operator(self, field: Field, written: syntax.Comparison) -> None:
        operator, number = written.operator, field.number
        if operator in _ORDERED and number not in NUMBERS:
            wanted = "a number"
        elif operator in _OF_LISTS and number is not Type.LIST:
            wanted = "a list"
        elif operator == "like" and number is not Type.TEXT:
            wanted = "a text"
        else:
            return
        raise OalMistake(written.place, f"'{operator}' needs {wanted}, and '{field}' is none")

    def _scalar(self, field: Field, written: syntax.Literal | syntax.EnumValue) -> Scalar:
        if isinstance(written, syntax.EnumValue):
            return self._enum(field, written)
        value, type_ = written.value, field.number
        if value is None and (field.type in NULLABLE):
            return None
        fits = {
            Type.BOOLEAN: isinstance(value, bool),
            Type.TEXT: isinstance(value, str),
            Type.LONG: type(value) is int,
            Type.INT: type(value) is int,
            Type.DOUBLE: type(value) in (int, float),
        }
        if fits.get(type_):
            return value
        raise OalMistake(written.place, f"'{field}' is compared with {self._wanted(field)}")

    def _enum(self, field: Field, written: syntax.EnumValue) -> str:
        enum = self._source.attributes[field.path].enum
        if not enum or written.type != enum:
            raise OalMistake(written.place, f"'{field}' is compared with {self._wanted(field)}")
        if written.name not in ENUMS[enum]:
            hint = nearest(written.name, ENUMS[enum])
            raise OalMistake(written.place, f"{enum} has no value '{written.name}'{hint}")
        return written.name

    def _wanted(self, field: Field) -> str:
        if field.type is Type.ENUM:
            enum = self._source.attributes[field.path].enum
            return f"a value of {enum}, as in {enum}.{ENUMS[enum][0]}"
        default = "a whole number" if field.number in WHOLE else "a number"
        return _VALUES.get(field.number, default)


def _text(operator: str, written: syntax.Literal | syntax.EnumValue) -> str:
    value = written.value if isinstance(written, syntax.Literal) else None
    if not isinstance(value, str):
        raise OalMistake(written.place, f"'{operator}' needs a text in quotes")
    if operator == "like" and not (value.startswith("%") or value.endswith("%")):
        raise OalMistake(written.place, "a pattern begins or ends with '%'")
    return value
