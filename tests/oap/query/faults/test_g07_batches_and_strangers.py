"""Ways in that nobody needs are shut: batches, GET, forms of other sites, endless introspection."""

from __future__ import annotations

import json

import pytest
from graphql import get_introspection_query

from oap.query.faults import asking

SAVE = """mutation { addTemplate(setting: {configuration: "{}"}) { status } }"""
DOOR = "/graphql"


def test_a_batch_is_no_request(oap):
    one = {"query": "{ version }"}
    for batch in ([one], [one] * 1_000, []):
        response = oap.http.post(DOOR, json=batch)
        assert response.status_code == 400
        assert "JSON object" in response.json()["errors"][0]["message"]


def test_nothing_is_asked_or_changed_by_get(oap):
    for query in ("{version}", SAVE):
        assert oap.http.get(DOOR, params={"query": query}).status_code == 405
    for method in ("HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"):
        assert oap.http.request(method, DOOR).status_code == 405


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b", ""],
)
def test_what_a_page_of_another_site_can_send_unasked_changes_nothing(shelf, content_type):
    """These are the types that a browser sends without asking us first."""
    before = templates(shelf)
    headers = {"Content-Type": content_type, "Origin": "https://elsewhere.example"}
    body = json.dumps({"query": SAVE})
    answer = shelf.http.post(DOOR, content=body, headers=headers).json()
    assert "application/json" in answer["errors"][0]["message"]
    assert templates(shelf) == before


def templates(shelf) -> int:
    return len(shelf.ask("{ getAllTemplates { id } }")["getAllTemplates"])


def test_no_other_site_is_let_in(oap):
    """Without such headers a browser keeps the answer from the page that asked."""
    headers = {"Origin": "https://elsewhere.example", "Access-Control-Request-Method": "POST"}
    for response in (
        oap.http.post(DOOR, json={"query": "{ version }"}, headers=headers),
        oap.http.options(DOOR, headers=headers),
    ):
        assert not [name for name in response.headers if name.startswith("access-control-")]


def test_the_schema_is_told_once_and_not_endlessly(oap):
    assert oap.ask(get_introspection_query())["__schema"]["types"]
    circle = "fields { type { " * 20 + "name" + " } }" * 20
    [message] = oap.errors(f"{{ __schema {{ types {{ {circle} }} }} }}")
    assert "levels deep" in message


@pytest.mark.parametrize("kind", ["query", "mutation"])
def test_every_root_field_takes_anything_of_its_type_without_an_unforeseen_failure(shelf, kind):
    root = asking.SCHEMA.query_type if kind == "query" else asking.SCHEMA.mutation_type
    for name, field in asking.fields(root).items():
        for text in ("", "x", "é😀" * 300, "_", ".1_", "-1", "[", "a.b_c.1"):
            given = asking.variables(field, text)
            answer = shelf.post(asking.document(name, field, kind), **given)
            for error in answer.get("errors", ()):
                assert "internal error" not in error["message"], (name, text)
        if not field.args:
            continue
        nothing = shelf.post(asking.document(name, field, kind))
        assert "internal error" not in str(nothing), name
