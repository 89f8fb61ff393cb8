"""One field a hundred thousand times under other names is refused by its tokens, not worked on."""

from __future__ import annotations

from skyfarer.oap.query import limits

ALIASES = 100_000


def aliased(aliases: int, field: str) -> str:
    return "{" + " ".join(f"a{n:x}:{field}" for n in range(aliases)) + "}"


def test_a_hundred_thousand_aliases_are_refused_by_their_tokens(oap):
    document = aliased(ALIASES, "v")
    assert 800_000 < len(document) < limits.BODY_BYTES_MAX
    [message] = oap.errors(document)
    assert f"{limits.TOKENS_MAX} tokens" in message
    assert oap.ask("{ version }")["version"]


def test_more_than_a_body_may_have_is_not_even_read(oap):
    document = aliased(3 * ALIASES, "version")
    assert len(document) > limits.BODY_BYTES_MAX
    response = oap.http.post("/graphql", json={"query": document})
    assert response.status_code == 413


def test_a_few_aliases_of_what_costs_much_are_refused_before_any_is_read(oap):
    oap.reader.failure = AssertionError("storage was asked")
    document = aliased(100, 'queryTrace(traceId: "t") { spans { traceId } }')
    assert document.count("queryTrace") == 100
    [message] = oap.errors(document)
    fields = 100 * (limits.WEIGHTS["queryTrace"] + 2)
    assert message == f"the document selects {fields} fields, more than {limits.FIELDS_MAX}"


def test_a_bomb_of_fragments_counts_as_what_it_unfolds_to(oap):
    """Twenty fragments, each of which spreads the next one twice: a million fields."""
    spreads = "".join(f"fragment f{n} on Query {{ ...f{n + 1} ...f{n + 1} }} " for n in range(20))
    document = "{ ...f0 } " + spreads + "fragment f20 on Query { version }"
    assert len(document) < 2_000
    [message] = oap.errors(document)
    assert f"more than {limits.FIELDS_MAX}" in message
