"""The GraphQL schema: every `.graphqls` file beside this one, joined to the resolvers by name."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources

from graphql import (
    GraphQLField,
    GraphQLFieldResolver,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLOutputType,
    GraphQLScalarType,
    GraphQLSchema,
    build_schema,
    get_named_type,
    is_leaf_type,
    is_non_null_type,
)


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


_PICKED = GraphQLScalarType("Picked", description="An answer as it will be sent.")


def cut_off(schema: GraphQLSchema, resolvers: Table) -> GraphQLSchema:
    """The same root fields and arguments, but what has fields is one value: for documents that are
    cut off there (`selection`). A resolver for each."""
    root = schema.query_type
    assert root is not None
    fields = {
        name: GraphQLField(_cut_off(field), args=field.args, resolve=resolvers[name])
        for name, field in root.fields.items()
    }
    return GraphQLSchema(GraphQLObjectType(root.name, fields))


def _cut_off(field: GraphQLField) -> GraphQLOutputType:
    if is_leaf_type(get_named_type(field.type)):
        return field.type
    return GraphQLNonNull(_PICKED) if is_non_null_type(field.type) else _PICKED
