"""Scripts of metric expressions, run through a real storage and the HTTP door."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from datetime import date
from typing import Any

import pytest

from golden.mqe.scripts import Case, Script, ScriptError, all_scripts, script
from golden.mqe.storing import store
from skyfarer.oap.query.expressions import syntax
from skyfarer.oap.query.expressions.calls import FUNCTIONS
from skyfarer.oap.query.expressions.parser import parse

SCRIPTS = all_scripts()
EXEC = """
query ($expression: String!, $entity: Entity!, $duration: Duration!) {
  execExpression(expression: $expression, entity: $entity, duration: $duration) {
    type error
    results { metric { labels { key value } } values { id value traceID owner { scope } } }
  }
}"""


def shown(result: dict[str, Any]) -> tuple[str, ...]:
    """As a script writes it."""
    if result["type"] in ("SORTED_LIST", "RECORD_LIST"):
        (series,) = result["results"]
        assert series["metric"]["labels"] == []
        return tuple(map(_entry, series["values"]))
    return tuple(map(_series, result["results"]))


def _entry(value: dict[str, Any]) -> str:
    trace = f" @ {value['traceID']}" if value["traceID"] else ""
    return f"{value['id']}: {value['value']}{trace}"


def _series(series: dict[str, Any]) -> str:
    labels = ",".join(f"{one['key']}={one['value']}" for one in series["metric"]["labels"])
    values = " ".join("_" if one["value"] is None else one["value"] for one in series["values"])
    return f"{{{labels}}}: {values}" if labels else values


def difference(shelf: Any, case: Case) -> str | None:
    asked = {"entity": case.ask.entity, "duration": case.ask.duration}
    result = shelf.ask(EXEC, expression=case.expression, **asked)["execExpression"]
    found = result["type"], shown(result), result["error"]
    if found == (case.type, case.shown, case.error):
        return None
    return f"{case.where}: {case.expression}\n  {found}\n  {(case.type, case.shown, case.error)}"


@pytest.mark.parametrize("one", SCRIPTS, ids=lambda one: one.name)
def test_a_script_is_answered_as_it_says(shelf: Any, plan: Any, zone: Any, one: Script) -> None:
    store(shelf.storage, plan, one, zone)
    assert one.cases
    found = [difference(shelf, case) for case in one.cases]
    assert not any(found), "\n" + "\n".join(filter(None, found))


def parts(node: object) -> Iterator[object]:
    if is_dataclass(node):
        yield node
        for field in fields(node):
            yield from parts(getattr(node, field.name))
    elif isinstance(node, tuple):
        for one in node:
            yield from parts(one)


def test_every_operator_and_every_function_is_in_a_script() -> None:
    good = [case.expression for one in SCRIPTS for case in one.cases if case.error is None]
    operators = {
        part.operator
        for text in good
        for part in parts(parse(text))
        if isinstance(part, syntax.Binary)
    }
    assert operators == {sign for row in syntax.PRECEDENCE for sign in row}
    calls = {name for name in FUNCTIONS if any(f"{name}(" in text for text in good)}
    assert calls == set(FUNCTIONS)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("eval 1", "x.txt:1: nothing was asked about yet"),
        ("say 1", "x.txt:1: write load, ask, eval or fail"),
        ("# a\n\nask nobody 0800 0801", "x.txt:3: ask of one of"),
        ("ask all 0800 0801\neval 1\n  5", "x.txt:2: the line below says what comes"),
        ("load Nothing shop", "x.txt:1: 'Nothing' is neither"),
        ("load Service shop\n  x7", "x.txt:1: an item begins with its minute"),
    ],
)
def test_a_script_that_is_wrong_says_where(text: str, sentence: str) -> None:
    with pytest.raises(ScriptError, match=sentence.replace(".", r"\.")):
        script("x.txt", text, date(2026, 3, 1))
