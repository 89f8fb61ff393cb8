"""What SkyWalking's metrics are made of: a table beside this, a line a metric, held against the
shipped files. `@` is a decorator, that of the source."""

from __future__ import annotations

from pathlib import Path

import pytest

from skyfarer.oap.oal import syntax
from skyfarer.oap.oal.compiler import shipped
from skyfarer.oap.oal.parser import parse

TABLE = Path(__file__).with_name("original_definitions.txt").read_text("utf-8").splitlines()
DEFINED = {one.name: one for text in shipped() for one in parse(text.text, text.file)[0].statements}


def name_of(line: str) -> str:
    return line.partition(" = ")[0]


def written(one: syntax.Statement) -> str:
    """Only the name of an enumeration's value, and what is read of a source without its `*`."""
    filters = " & ".join(map(_comparison, one.filters)) or "all"
    arguments = ", ".join(map(_argument, one.call.arguments))
    decorated = " @" if one.decorator is not None else ""
    read = f"{one.source.name}.{_path(one.path)}" if one.path.parts else one.source.name
    return f"{one.name} = {read} | {filters} | {one.call.function}({arguments}){decorated}"


def _path(path: syntax.Path) -> str:
    cast = f"({path.cast})" if path.cast else ""
    keys = (f'["{part.key}"]' if part.key is not None else "" for part in path.parts)
    return cast + ".".join(part.name + key for part, key in zip(path.parts, keys, strict=True))


def _comparison(one: syntax.Comparison) -> str:
    return f"{_path(one.left)} {one.operator} {_value(one.right)}"


def _argument(one: syntax.Argument) -> str:
    if isinstance(one, syntax.Path):
        return _path(one)
    return _comparison(one) if isinstance(one, syntax.Comparison) else _value(one)


def _value(one: syntax.Value) -> str:
    if isinstance(one, syntax.EnumValue):
        return one.name
    if isinstance(one, syntax.ListValue):
        return f"[{', '.join(map(_value, one.items))}]"
    if isinstance(one.value, str):
        return f'"{one.value}"'
    words = {True: "true", False: "false", None: "null"}
    return words[one.value] if isinstance(one.value, bool | None) else str(one.value)


@pytest.mark.parametrize("line", TABLE, ids=name_of)
def test_a_metric_is_made_of_what_the_original_makes_it_of(line: str) -> None:
    assert written(DEFINED[name_of(line)]) == line


def test_a_decorator_is_that_of_the_source() -> None:
    decorated = [one for one in DEFINED.values() if one.decorator is not None]
    assert {(one.source.name, one.decorator.value) for one in decorated} == {
        ("Service", "ServiceDecorator"),
        ("Endpoint", "EndpointDecorator"),
    }


def test_every_metric_of_the_original_is_in_the_table_once() -> None:
    ours = {"histograms.oal", "meters.oal", "satellite.oal"}
    original = [text for text in shipped() if text.file not in ours]
    names = [one.name for text in original for one in parse(text.text, text.file)[0].statements]
    assert sorted(map(name_of, TABLE)) == sorted(names)
