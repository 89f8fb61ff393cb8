"""What is picked of an answer is what graphql-core would have made of it, whatever was selected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from graphql import (
    GraphQLObjectType,
    GraphQLSchema,
    build_schema,
    execute_sync,
    get_named_type,
    get_nullable_type,
    is_enum_type,
    is_leaf_type,
    is_list_type,
    is_non_null_type,
    is_object_type,
    parse,
    validate,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfarer.base.clock import SystemClock
from skyfarer.oap.query import schema, selection
from skyfarer.oap.query.engine import Engine, Request
from skyfarer.oap.query.errors import QueryError
from skyfarer.oap.query.rows import Rows
from skyfarer.telemetry.metrics import Registry

PLAIN = build_schema(schema.text())
assert PLAIN.query_type is not None
ROOTS = sorted(
    name
    for name, field in PLAIN.query_type.fields.items()
    if not any(is_non_null_type(one.type) for one in field.args.values())
)
LEAVES = {"String": "text é", "ID": "id", "Int": 7, "Long": 2**40, "Boolean": True}
UNFIT = (None, {"a": 1}, [1], "no number", 2**70, object(), True)


class Answers:
    """In the place of resolvers: each root field has a value that a test has put there."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.calls: list[str] = []

    def table(self) -> dict[str, Callable[..., object]]:
        return self._of(PLAIN.query_type)

    def changes(self) -> dict[str, Callable[..., object]]:
        return self._of(PLAIN.mutation_type)

    def _of(self, root: GraphQLObjectType | None) -> dict[str, Callable[..., object]]:
        assert root is not None
        return {name: self._answer(name) for name in root.fields}

    def _answer(self, name: str) -> Callable[..., object]:
        def answer(**_: object) -> object:
            self.calls.append(name)
            value = self.values.get(name)
            if isinstance(value, Exception):
                raise value
            return value

        return answer


ANSWERS = Answers()
ENGINE = Engine(ANSWERS, Registry(), SystemClock())  # type: ignore[arg-type]
WHOLE = schema.bound_to(
    {name: lambda _r, _i, call=call, **_a: call() for name, call in ANSWERS.table().items()},
    {name: lambda _r, _i, call=call, **_a: call() for name, call in ANSWERS.changes().items()},
)


class Made:
    """Documents and values by chance; `faults` is how often a value does not fit."""

    def __init__(self, random: Random, faults: float) -> None:
        self._random, self._faults = random, faults
        self.fragments: list[str] = []

    def value(self, of: Any, depth: int = 0) -> Any:
        if self._random.random() < self._faults:
            return self._random.choice(UNFIT)
        if is_non_null_type(of):
            return self.value(of.of_type, depth)
        if self._random.random() < 0.1 and depth:
            return None
        if is_list_type(of):
            count, inner = self._random.randrange(3), get_nullable_type(of.of_type)
            if is_object_type(inner) and self._random.random() < 0.5:
                return self._rows(inner, depth + 1, count)
            return [self.value(of.of_type, depth + 1) for _ in range(count)]
        if is_enum_type(of):
            return self._random.choice(sorted(of.values))
        if is_leaf_type(of):
            return LEAVES[of.name]
        return {
            name: self.value(field.type, depth + 1)
            for name, field in of.fields.items()
            if depth < 6 or is_leaf_type(get_named_type(field.type))
        }

    def _rows(self, of: GraphQLObjectType, depth: int, count: int) -> Rows:
        fields = [
            (name, field.type)
            for name, field in of.fields.items()
            if depth < 6 or is_leaf_type(get_named_type(field.type))
        ]
        return Rows(
            {
                name: [self.value(of_type, depth + 1) for _ in range(count)]
                for name, of_type in fields
                if name == fields[0][0] or self._random.random() > self._faults
            }
        )

    def selected(self, of: GraphQLObjectType, depth: int = 0) -> str:
        """Some fields in any order, some twice, by aliases and through fragments."""
        names = [
            name
            for name, field in of.fields.items()
            if depth < 4 or is_leaf_type(get_named_type(field.type))
        ]
        chosen = self._random.choices([*names, "__typename"], k=self._random.randrange(1, 5))
        fields = " ".join(self._field(of, name, depth) for name in chosen)
        form = self._random.randrange(4)
        if form == 1:
            return f"... on {of.name} {{ {fields} }} {self._field(of, chosen[0], depth)}"
        if form == 2:
            name = f"f{len(self.fragments)}"
            self.fragments.append("")
            self.fragments[int(name[1:])] = f"fragment {name} on {of.name} {{ {fields} }}"
            return f"...{name}"
        return fields

    def _field(self, of: GraphQLObjectType, name: str, depth: int) -> str:
        alias = f"a{self._random.randrange(3)}_{name}: " if self._random.random() < 0.3 else ""
        field = of.fields.get(name)
        inner = get_named_type(field.type) if field is not None else None
        below = f" {{ {self.selected(inner, depth + 1)} }}" if is_object_type(inner) else ""
        return f"{alias}{name}{below}"


def plain(document: str) -> dict[str, Any]:
    found = execute_sync(WHOLE, parse(document))
    return {"data": found.data, "errors": [error.formatted for error in found.errors or ()]}


def answered(document: str) -> dict[str, Any]:
    found = ENGINE.answer(Request(document))
    return {"data": found["data"], "errors": found.get("errors", [])}


def without_texts(answer: dict[str, Any]) -> dict[str, Any]:
    """What was not foreseen is told to nobody, so that it went wrong is all that can be equal."""
    places = [{k: v for k, v in error.items() if k != "message"} for error in answer["errors"]]
    return {"data": answer["data"], "errors": places}


@settings(max_examples=150, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from([0.0, 0.0, 0.02]))
def test_what_is_picked_is_what_graphql_core_answers(random: Random, faults: float) -> None:
    made = Made(random, faults)
    roots = {name: PLAIN.query_type.fields[name].type for name in random.choices(ROOTS, k=2)}  # type: ignore[union-attr]
    ANSWERS.values = {name: made.value(of) for name, of in roots.items()}
    asked = " ".join(made._field(PLAIN.query_type, name, 0) for name in roots)  # type: ignore[arg-type]
    document = f"{{ {asked} }} {' '.join(made.fragments)}"
    assert validate(WHOLE, parse(document)) == []
    ANSWERS.calls.clear()
    found = answered(document)
    assert len(ANSWERS.calls) <= asked_fields(document), "a resolver was called twice"
    assert without_texts(found) == without_texts(plain(document))
    assert list_keys(found["data"]) == list_keys(plain(document)["data"])


def asked_fields(document: str) -> int:
    found = selection.cut(WHOLE, parse(document), None)
    assert found is not None
    (operation,) = found.document.definitions
    return len({str(one.alias or one.name) for one in operation.selection_set.selections})  # type: ignore[attr-defined]


def list_keys(value: Any) -> Iterator[str] | list[Any]:
    """The order of the fields as well."""
    if isinstance(value, dict):
        return [(key, list_keys(one)) for key, one in value.items()]
    return [list_keys(one) for one in value] if isinstance(value, list) else []


@pytest.mark.parametrize(
    "document",
    [
        "{ __schema { queryType { name } } }",
        "{ listLayers @skip(if: true) version }",
        "{ checkHealth { score @include(if: false) details } }",
        "mutation { version }",
    ],
)
def test_what_is_not_plain_is_left_to_graphql_core(document: str) -> None:
    ANSWERS.values = {"checkHealth": {"score": 0, "details": "fine"}, "version": "1"}
    assert selection.cut(WHOLE, parse(document), None) is None
    assert answered(document) == plain(document)


def test_one_operation_of_several_is_cut_by_its_name() -> None:
    document = parse("query a { version } query b { checkHealth { score } }")
    assert selection.cut(WHOLE, document, None) is None
    assert selection.cut(WHOLE, document, "c") is None
    found = selection.cut(WHOLE, document, "b")
    assert found is not None
    assert found.picks["checkHealth"]({"score": 3, "details": "x"}) == {"score": 3}


def test_a_root_field_that_fails_is_told_and_the_others_are_answered() -> None:
    ANSWERS.values = {"checkHealth": {"score": 0}, "listLayers": QueryError("not today")}
    found = ENGINE.answer(Request("{ listLayers version }"))
    assert [error["message"] for error in found["errors"]] == ["not today"]
    assert found["errors"][0]["path"] == ["listLayers"]


def test_a_value_that_does_not_fit_is_resolved_once() -> None:
    ANSWERS.values = {"checkHealth": {"score": "many", "details": "x"}}
    ANSWERS.calls.clear()
    found = ENGINE.answer(Request("{ checkHealth { score details } }"))
    assert found["data"] is None
    assert found["errors"][0]["path"] == ["checkHealth", "score"]
    assert ANSWERS.calls == ["checkHealth"]


def test_the_schema_has_nothing_that_could_not_be_picked() -> None:
    """No interfaces, no unions, and arguments of root fields alone."""
    assert isinstance(WHOLE, GraphQLSchema)
    roots = (WHOLE.query_type, WHOLE.mutation_type)
    for name, of in WHOLE.type_map.items():
        if is_object_type(of) and of not in roots and not name.startswith("__"):
            assert all(not field.args for field in of.fields.values()), name
