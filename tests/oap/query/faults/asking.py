"""Documents of every root field, with hostile texts wherever one can be said.

The half hour they ask about is around noon of UTC, as the tests of the query room have it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphql import (
    GraphQLField,
    GraphQLObjectType,
    build_schema,
    get_named_type,
    is_enum_type,
    is_input_object_type,
    is_leaf_type,
    is_list_type,
    is_non_null_type,
)

from skyfarer.oap.query import schema

SCHEMA = build_schema(schema.text())
DURATION = {"start": "2026-11-15 1945", "end": "2026-11-15 2014", "step": "MINUTE"}
DEPTH = 4
TEXTS = ("String", "ID")


def fields(of: GraphQLObjectType | None) -> dict[str, GraphQLField]:
    assert of is not None
    return of.fields


def says_text(of: Any, seen: tuple[str, ...] = ()) -> bool:
    """Whether a text can be put into such a value; a duration's are times."""
    named = get_named_type(of)
    if is_input_object_type(named) and named.name not in (*seen, "Duration"):
        return any(says_text(field.type, (*seen, named.name)) for field in named.fields.values())
    return named.name in TEXTS


def document(name: str, field: GraphQLField, kind: str = "query") -> str:
    """Takes each of its arguments from a variable of that name, and selects all there is."""
    asked = ", ".join(f"${one}: {argument.type}" for one, argument in field.args.items())
    given = ", ".join(f"{one}: ${one}" for one in field.args)
    head, call = (f"({asked})", f"({given})") if asked else ("", "")
    return f"{kind} q{head} {{ {name}{call}{selected(field.type)} }}"


def selected(of: Any, depth: int = 0) -> str:
    named = get_named_type(of)
    if is_leaf_type(named):
        return ""
    below = [
        f"{name}{selected(field.type, depth + 1)}"
        for name, field in named.fields.items()
        if depth < DEPTH or is_leaf_type(get_named_type(field.type))
    ]
    return f" {{ {' '.join(below)} }}"


def variables(field: GraphQLField, text: str) -> dict[str, Any]:
    return {name: value(argument.type, text) for name, argument in field.args.items()}


def value(of: Any, text: str) -> Any:
    if is_non_null_type(of):
        return value(of.of_type, text)
    if is_list_type(of):
        return [value(of.of_type, text)]
    if is_input_object_type(of):
        if of.name == "Duration":
            return DURATION
        return {name: value(field.type, text) for name, field in of.fields.items()}
    if is_enum_type(of):
        return next(iter(of.values))
    return {"Int": 10, "Long": 10, "Boolean": True}.get(of.name, text)


def leaves(answer: Any) -> Iterator[Any]:
    if isinstance(answer, dict):
        for one in answer.values():
            yield from leaves(one)
    elif isinstance(answer, list):
        for one in answer:
            yield from leaves(one)
    else:
        yield answer
