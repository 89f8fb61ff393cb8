"""The GraphQL schema: every `.graphqls` file beside this one, joined to the resolvers by name."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources

from graphql import GraphQLFieldResolver, GraphQLSchema, build_schema


def text() -> str:
    files = (f for f in resources.files(__name__).iterdir() if f.name.endswith(".graphqls"))
    return "\n".join(f.read_text("utf-8") for f in sorted(files, key=lambda f: f.name))


Table = Mapping[str, GraphQLFieldResolver]


def bound_to(queries: Table, mutations: Table) -> GraphQLSchema:
    """The schema with a resolver on each root field; ValueError when the two do not match."""
    schema = build_schema(text())
    for root, resolvers in ((schema.query_type, queries), (schema.mutation_type, mutations)):
        assert root is not None
        if unmatched := root.fields.keys() ^ resolvers.keys():
            raise ValueError(f"root fields and resolvers differ in {sorted(unmatched)}")
        for name, resolve in resolvers.items():
            root.fields[name].resolve = resolve
    return schema
