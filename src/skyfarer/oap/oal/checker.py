"""Syntax → statements that make sense: names are known, types fit.

`Checker` reads one statement; it raises at the first thing wrong with it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from skyfarer.base.binding import nearest
from skyfarer.oap.oal import syntax
from skyfarer.oap.oal.conditions import Attributes
from skyfarer.oap.oal.functions import FUNCTIONS, Argument, Function, Labels, Takes, Use
from skyfarer.oap.oal.plan import Condition, Field
from skyfarer.oap.oal.problems import OalMistake
from skyfarer.oap.oal.sources import DECORATORS, SOURCES, WHOLE, Source, Type

SIZE_MAX: Final = 2**31 - 1
_LABEL: Final = re.compile("[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Checked:
    name: str
    source: Source
    function: str
    use: Use
    decorator: str | None


def check(statement: syntax.Statement) -> Checked:
    """Raises OalMistake at what is wrong first."""
    written = statement.source
    if written.name not in SOURCES:
        hint = nearest(written.name, SOURCES)
        raise OalMistake(written.place, f"there is no source '{written.name}'{hint}")
    source = SOURCES[written.name]
    attributes = Attributes(source, decorated=statement.decorator is not None)
    function = _function(statement.call)
    value = _value(statement, function, attributes)
    where = tuple(attributes.condition(comparison) for comparison in statement.filters)
    use = _use(statement.call, function, attributes, value, where)
    decorator = _decorator(statement.decorator, source)
    return Checked(statement.name, source, statement.call.function, use, decorator)


def _function(call: syntax.Call) -> Function:
    if call.function not in FUNCTIONS:
        hint = nearest(call.function, FUNCTIONS)
        raise OalMistake(call.place, f"there is no function '{call.function}'{hint}")
    return FUNCTIONS[call.function]


def _value(statement: syntax.Statement, function: Function, attributes: Attributes) -> Field | None:
    path, name = statement.path, statement.call.function
    field = attributes.field(path) if path.parts else None
    if not function.values:
        return None
    kind = "a whole number" if function.values == WHOLE else "a number"
    if field is None:
        raise OalMistake(path.place, f"{name} needs {kind}; name an attribute in place of '*'")
    if field.number not in function.values:
        raise OalMistake(path.place, f"{name} needs {kind}, and '{field}' is {_shown(field)}")
    return field


def _shown(field: Field) -> str:
    return {Type.BOOLEAN: "true or false", Type.ENUM: "an enumeration"}.get(
        field.number, f"a {field.number.value}"
    )


def _use(
    call: syntax.Call,
    function: Function,
    attributes: Attributes,
    value: Field | None,
    where: tuple[Condition, ...],
) -> Use:
    _check_number(call, function)
    arguments = [
        _argument(call.function, kind, argument, attributes)
        for kind, argument in zip(function.arguments, call.arguments, strict=False)
    ]
    fields = tuple(argument for argument in arguments if isinstance(argument, Field))
    return Use(
        value,
        where + _numbers_only(value, *fields),
        fields,
        tuple(argument for argument in arguments if isinstance(argument, Condition)),
        tuple(argument for argument in arguments if isinstance(argument, int)),
        next((argument for argument in arguments if isinstance(argument, tuple)), ()),
    )


def _check_number(call: syntax.Call, function: Function) -> None:
    takes, given = function.arguments, len(call.arguments)
    if not len(takes) - function.optional <= given <= len(takes):
        least = f"{len(takes) - function.optional} or " if function.optional else ""
        plural = "" if len(takes) == 1 else "s"
        raise OalMistake(
            call.place, f"{call.function} takes {least}{len(takes)} argument{plural}, not {given}"
        )


def _numbers_only(*fields: Field | None) -> tuple[Condition, ...]:
    """What is no number is no item: it must not count in an average either."""
    return tuple(Condition(field, "!=", None) for field in fields if field and field.cast)


_FIELDS: Final = {
    Takes.TEXT: frozenset({Type.TEXT}),
    Takes.FLAG: frozenset({Type.BOOLEAN}),
    Takes.NUMBER: WHOLE,
}


def _argument(
    function: str, takes: Takes, written: syntax.Argument, attributes: Attributes
) -> Argument:
    match written:
        case syntax.Comparison() if takes is Takes.CONDITION:
            return attributes.condition(written)
        case syntax.Path() if takes in _FIELDS:
            field = attributes.field(written)
            if field.number in _FIELDS[takes]:
                return field
        case syntax.Literal(value=value) if takes is Takes.SIZE and type(value) is int:
            if 0 < value <= SIZE_MAX:
                return value
        case syntax.Literal(value=str(value)) if takes is Takes.LABELS:
            labels: Labels = tuple(dict.fromkeys(map(str.strip, value.split(","))))
            if all(map(_LABEL.fullmatch, labels)):
                return labels
    raise OalMistake(written.place, f"{function} needs {takes.value} here")


def _decorator(written: syntax.Literal | None, source: Source) -> str | None:
    if written is None:
        return None
    name = str(written.value)
    if name not in DECORATORS:
        hint = nearest(name, DECORATORS)
        raise OalMistake(written.place, f"there is no decorator '{name}'{hint}")
    if DECORATORS[name] != source.name:
        raise OalMistake(
            written.place,
            f"'{name}' decorates {DECORATORS[name]}, and this source is {source.name}",
        )
    return name
