"""A document that nests deeper than anybody needs is refused before it costs anything."""

from __future__ import annotations

import pytest

from skyfarer.oap.query import limits

LEVELS = 5


def chain(depth: int) -> str:
    """Of the schema about itself: the one thing that is valid at any depth."""
    below = depth - LEVELS
    types = "ofType { " * below + "name" + " }" * below
    return f"{{ __schema {{ types {{ fields {{ type {{ {types} }} }} }} }} }}"


def nested(kind: str, depth: int) -> str:
    if kind == "arguments":
        return "{ listMetrics(regex: " + "[" * depth + "]" * depth + ") { name } }"
    opened = {"fields": "a { ", "fragments": "... { "}[kind]
    return "{ " + opened * depth + "version" + " }" * depth + " }"


def test_a_document_may_be_as_deep_as_the_limit_and_no_deeper(oap):
    assert oap.ask(chain(limits.DEPTH_MAX))["__schema"]["types"]
    deeper = limits.DEPTH_MAX + 1
    assert oap.errors(chain(deeper)) == [
        f"the document nests {deeper} levels deep, more than {limits.DEPTH_MAX}"
    ]


@pytest.mark.parametrize("depth", [500, 5_000, 20_000])
@pytest.mark.parametrize("kind", ["fields", "fragments", "arguments"])
def test_depth_of_any_kind_is_one_sentence_and_no_stack_runs_out(oap, kind, depth):
    document = nested(kind, depth)
    assert max(document.count("{"), document.count("[")) >= depth
    [message] = oap.errors(document)
    assert "internal error" not in message
    assert any(word in message for word in ("nest", "token", "deep", "cannot represent")), message
    assert oap.ask("{ version }")["version"]
    assert 'query_requests_total{operation="none",outcome="refused"} 1' in oap.registry.render()
