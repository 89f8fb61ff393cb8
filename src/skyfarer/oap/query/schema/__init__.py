"""The GraphQL schema: every `.graphqls` file beside this one, joined to the resolvers by name."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources

from graphql import GraphQLFieldResolver, GraphQLSchema, build_schema


def text() -> str:
    files = (f for f in resources.files(__name__).iterdir() if f.name.endswith(".graphqls"))
    return "\n".join(f.read_text("utf-8") for f in sorted(files, key=lambda f: f.name))


def bound_to(resolvers: Mapping[str, GraphQLFieldResolver]) -> GraphQLSchema:
    """The schema with a resolver on each root field; ValueError when the two do not match."""
    schema = build_schema(text())
    assert schema.query_type is not None
    fields = schema.query_type.fields
    if unmatched := fields.keys() ^ resolvers.keys():
        raise ValueError(f"root fields and resolvers differ in {sorted(unmatched)}")
    for name, resolve in resolvers.items():
        fields[name].resolve = resolve
    return schema
