"""Every operation of the schema: its document, its row in the guide, its cost."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from graphql import FieldNode, OperationDefinitionNode, build_schema, parse, validate

from golden.documents import documents
from skyfarer.oap.query import limits, schema, unkept
from skyfarer.oap.query.dashboards.resolver import CLOSED

SCHEMA = build_schema(schema.text())
assert SCHEMA.query_type is not None and SCHEMA.mutation_type is not None
QUERIES, CHANGES = set(SCHEMA.query_type.fields), set(SCHEMA.mutation_type.fields) - {"version"}
GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "query.md"
ROW = re.compile(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|$", re.M)
SENTENCES = {unkept.NO_LAL, unkept.NO_PODS, unkept.NO_PROFILER}


def table() -> list[tuple[str, ...]]:
    """Operation, who asks for it, what it gets here."""
    _, _, section = GUIDE.read_text().partition("## Every operation\n")
    return ROW.findall(section)


def test_every_operation_of_the_schema_has_a_document() -> None:
    assert documents().keys() == QUERIES | CHANGES
    assert {name for name, one in documents().items() if one.changes} == CHANGES


@pytest.mark.parametrize("operation", documents())
def test_the_schema_accepts_the_document_of_a_client(operation: str) -> None:
    document = parse(documents()[operation].text)
    assert validate(SCHEMA, document) == []
    limits.check_size(document)
    (definition,) = document.definitions
    assert isinstance(definition, OperationDefinitionNode)
    (field,) = definition.selection_set.selections
    assert isinstance(field, FieldNode) and field.name.value == operation


def test_the_guide_has_every_operation_once_and_who_asks_for_it() -> None:
    rows = table()
    assert len({operation for operation, _, _ in rows}) == len(rows)
    askers = {operation: asker for operation, asker, _ in rows}
    assert askers == {name: one.askers for name, one in documents().items()}


def test_the_guide_says_what_is_not_answered_in_the_words_of_the_answer() -> None:
    here = {operation: text for operation, _, text in table()}
    refused = {
        name: text.removeprefix("refused: ")
        for name, text in here.items()
        if text.startswith("refused: ")
    }
    empty = {name for name, text in here.items() if text.startswith("empty: ")}
    answered = {name for name, text in here.items() if text.startswith("answered")}
    assert refused.keys() | empty | answered == here.keys()
    assert set(refused.values()) == SENTENCES
    told = (unkept.table().keys() | unkept.changes().keys()) - {"listLayerLevels"}
    processes = {name for name in QUERIES if "Process" in name}
    assert refused.keys() | empty == told | processes
    assert "SW_ENABLE_UPDATE_UI_TEMPLATE" in CLOSED


def test_only_operations_have_a_weight() -> None:
    assert limits.WEIGHTS.keys() <= QUERIES
