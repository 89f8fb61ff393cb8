"""What a document selects of an answer, compiled: one function a root field.

graphql-core takes 5 µs for every field of every object, and a chart of five lines has thousands:
more than storage takes to find them. Here only root fields have resolvers and arguments, and what
they give is plain: dicts, lists, texts and numbers. So a document is cut off below its root fields,
which graphql-core runs, and what was below becomes functions that pick what is selected.

Left to graphql-core whole: directives, introspection, mutations. And a value that does not fit its
type (`UnfitError`), because it has the rules of what becomes null then, and of what to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLBoolean,
    GraphQLID,
    GraphQLLeafType,
    GraphQLObjectType,
    GraphQLOutputType,
    GraphQLSchema,
    GraphQLString,
    InlineFragmentNode,
    OperationDefinitionNode,
    OperationType,
    SelectionSetNode,
    is_leaf_type,
    is_list_type,
    is_non_null_type,
    is_object_type,
)

Pick: TypeAlias = Callable[[Any], Any]
"""A value as storage has it → as it is answered; None for none."""
Fragments: TypeAlias = Mapping[str, FragmentDefinitionNode]
_AS_THEY_ARE: Final[Mapping[Any, type]] = {
    GraphQLString: str,
    GraphQLID: str,
    GraphQLBoolean: bool,
}
_TYPE_NAME: Final = "__typename"


class UnfitError(Exception):
    """A value is not of its type."""


class _NotPlainError(Exception):
    """The document has something that is left to graphql-core."""


@dataclass(frozen=True)
class Cut:
    """A document without what is below its root fields, and what that was, by response key."""

    document: DocumentNode
    picks: Mapping[str, Pick]


def cut(schema: GraphQLSchema, document: DocumentNode, operation: str | None) -> Cut | None:
    """Of a valid document; None where it is not plain enough, or has no such operation."""
    found = [
        node
        for node in document.definitions
        if isinstance(node, OperationDefinitionNode)
        and (operation is None or (node.name and node.name.value == operation))
    ]
    if len(found) != 1 or found[0].operation is not OperationType.QUERY or found[0].directives:
        return None
    assert schema.query_type is not None
    try:
        return _Cutting(document).of(found[0], schema.query_type)
    except _NotPlainError:
        return None


class _Cutting:
    def __init__(self, document: DocumentNode) -> None:
        self._fragments: Fragments = {
            node.name.value: node
            for node in document.definitions
            if isinstance(node, FragmentDefinitionNode)
        }

    def of(self, operation: OperationDefinitionNode, root: GraphQLObjectType) -> Cut:
        picks, kept = dict[str, Pick](), list[FieldNode]()
        for key, nodes in self._fields([operation.selection_set]).items():
            name = nodes[0].name.value
            kept += [_without(node, "selection_set") for node in nodes]
            if name not in root.fields:
                raise _NotPlainError
            below = [node.selection_set for node in nodes if node.selection_set is not None]
            if below:
                picks[key] = self._pick(root.fields[name].type, below)
        selected = SelectionSetNode(selections=tuple(kept))
        only = _without(operation, "selection_set", selection_set=selected)
        return Cut(DocumentNode(definitions=(only,)), picks)

    def _fields(self, sets: Sequence[SelectionSetNode]) -> dict[str, list[FieldNode]]:
        """By response key, in the order in which they come first."""
        found: dict[str, list[FieldNode]] = {}
        for node in (node for one in sets for node in self._unfolded(one)):
            key = node.alias.value if node.alias else node.name.value
            found.setdefault(key, []).append(node)
        return found

    def _unfolded(self, selected: SelectionSetNode) -> Iterator[FieldNode]:
        """There are no interfaces and unions, so a fragment is always of the type it stands in."""
        for node in selected.selections:
            if node.directives:
                raise _NotPlainError
            if isinstance(node, FieldNode):
                yield node
            elif isinstance(node, InlineFragmentNode):
                yield from self._unfolded(node.selection_set)
            elif isinstance(node, FragmentSpreadNode):
                yield from self._unfolded(self._fragments[node.name.value].selection_set)

    def _pick(self, of: GraphQLOutputType, below: Sequence[SelectionSetNode]) -> Pick:
        if is_non_null_type(of):
            if is_leaf_type(of.of_type):
                return _leaf(of.of_type, optional=False)
            return _present(self._pick(of.of_type, below))
        if is_list_type(of):
            return _each(self._pick(of.of_type, below))
        if is_leaf_type(of):
            return _leaf(of)
        if not is_object_type(of):
            raise _NotPlainError
        return self._object(of, below)

    def _object(self, of: GraphQLObjectType, below: Sequence[SelectionSetNode]) -> Pick:
        return _fields(
            [
                (key, nodes[0].name.value, self._field(of, nodes))
                for key, nodes in self._fields(below).items()
            ]
        )

    def _field(self, of: GraphQLObjectType, nodes: Sequence[FieldNode]) -> Pick:
        name = nodes[0].name.value
        if name == _TYPE_NAME:
            return lambda _: of.name
        if of.fields[name].args:
            raise _NotPlainError
        deeper = [node.selection_set for node in nodes if node.selection_set is not None]
        return self._pick(of.fields[name].type, deeper)


def _without(node: Any, left_out: str, **other: object) -> Any:
    kept = {key: getattr(node, key) for key in node.keys if key != left_out}
    return type(node)(**kept, **other)


def _present(pick: Pick) -> Pick:
    def present(value: Any) -> Any:
        if (picked := pick(value)) is None:
            raise UnfitError
        return picked

    return present


def _each(pick: Pick) -> Pick:
    def each(value: Any) -> list[Any] | None:
        if value is None:
            return None
        if not isinstance(value, list | tuple):
            raise UnfitError
        return [pick(one) for one in value]

    return each


def _fields(fields: Sequence[tuple[str, str, Pick]]) -> Pick:
    def picked(value: Any) -> dict[str, Any] | None:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise UnfitError
        found = value.get
        return {key: pick(found(name)) for key, name, pick in fields}

    return picked


def _leaf(of: GraphQLLeafType, *, optional: bool = True) -> Pick:
    as_it_is, coerced = _AS_THEY_ARE.get(of), cast(Pick, of.coerce_output_value)

    def leaf(value: Any) -> Any:
        if type(value) is as_it_is or (value is None and optional):
            return value
        try:
            found = coerced(value)
        except Exception as error:
            raise UnfitError from error
        if found is None:
            raise UnfitError
        return found

    return leaf
