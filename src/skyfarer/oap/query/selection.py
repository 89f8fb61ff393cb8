"""What a document selects of an answer, compiled: one function a root field.

graphql-core takes 5 µs for every field of every object, and a chart of five lines has thousands:
more than storage takes to find them. Here only root fields have resolvers and arguments, and what
they give is plain: dicts, lists, texts and numbers. So a document is cut off below its root fields,
which graphql-core runs, and what was below becomes functions that pick what is selected.

Left to graphql-core whole: directives, introspection, mutations. And a value that does not fit its
type (`picks.UnfitError`), because it has the rules of what becomes null then, and of what to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLObjectType,
    GraphQLOutputType,
    GraphQLSchema,
    InlineFragmentNode,
    OperationDefinitionNode,
    OperationType,
    SelectionSetNode,
    get_nullable_type,
    is_leaf_type,
    is_list_type,
    is_non_null_type,
    is_object_type,
)

from skyfarer.oap.query import picks
from skyfarer.oap.query.picks import Pick

Fragments: TypeAlias = Mapping[str, FragmentDefinitionNode]
_TYPE_NAME: Final = "__typename"


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
                return picks.leaf(of.of_type, optional=False)
            return picks.present(self._pick(of.of_type, below))
        if is_list_type(of):
            return self._list(of.of_type, below)
        if is_leaf_type(of):
            return picks.leaf(of)
        if not is_object_type(of):
            raise _NotPlainError
        return picks.fields(self._selected(of, below))

    def _list(self, of: GraphQLOutputType, below: Sequence[SelectionSetNode]) -> Pick:
        inner = get_nullable_type(of)
        if not is_object_type(inner):
            return picks.each(self._pick(of, below))
        selected = self._selected(inner, below)
        pick = picks.fields(selected)
        return picks.each_row(selected, picks.each(pick if inner is of else picks.present(pick)))

    def _selected(
        self, of: GraphQLObjectType, below: Sequence[SelectionSetNode]
    ) -> list[picks.Field]:
        return [self._field(of, key, nodes) for key, nodes in self._fields(below).items()]

    def _field(self, of: GraphQLObjectType, key: str, nodes: Sequence[FieldNode]) -> picks.Field:
        name = nodes[0].name.value
        if name == _TYPE_NAME:
            return picks.Field(key, name, lambda _: of.name, frozenset())
        if of.fields[name].args:
            raise _NotPlainError
        deeper = [node.selection_set for node in nodes if node.selection_set is not None]
        of_type = of.fields[name].type
        return picks.Field(key, name, self._pick(of_type, deeper), picks.as_they_are(of_type))


def _without(node: Any, left_out: str, **other: object) -> Any:
    kept = {key: getattr(node, key) for key in node.keys if key != left_out}
    return type(node)(**kept, **other)
