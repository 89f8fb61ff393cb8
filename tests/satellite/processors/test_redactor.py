from __future__ import annotations

import importlib.util
import logging
import sys
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from satellite.processors.passes import Pass, made
from skyfarer.base.errors import ConfigError
from skyfarer.satellite.contracts import Verdict
from skyfarer.satellite.processors.patterns import compile_pattern, line_by_line, without_edges
from skyfarer.satellite.processors.redactor import Redactor
from skyfarer.testing.traces import database, segment
from skyfarer.wire.messages import KeyStringValuePair, event, log
from skyfarer.wire.rpc import Kind

CARD = r"\b[0-9]{16}\b"
NUMBER = "4111111111111111"


def redactor(pattern: str = CARD, **more: object) -> Any:
    return made(Redactor, rules=[{"pattern": pattern, **more}])


def logged(text: str = "", endpoint: str = "", **tags: str) -> Any:
    data = [KeyStringValuePair(key=key, value=value) for key, value in tags.items()]
    body = log.LogDataBody(text=log.TextLog(text=text))
    return log.LogData(service="s", body=body, endpoint=endpoint, tags=log.LogTags(data=data))


def test_tags_and_span_logs_of_segments_are_redacted() -> None:
    one = segment(
        "order",
        "i",
        f"GET:/pay/{NUMBER}",
        1,
        2,
        error=True,
        exits=[database("db:1", f"WHERE card = '{NUMBER}'", 0, 1)],
    )

    exit_span, root = Pass(redactor()).one(Kind.SEGMENT, one).spans

    statement = next(tag.value for tag in exit_span.tags if tag.key == "db.statement")
    assert statement == "WHERE card = '***'"
    assert NUMBER not in str(root.logs)
    assert NUMBER in root.operationName


def test_endpoints_and_peers_are_redacted_when_asked_for() -> None:
    one = segment("order", "i", f"GET:/{NUMBER}", 1, 2, exits=[database(f"{NUMBER}:1", "", 0, 1)])

    edited = Pass(redactor(where=["endpoint", "peer"])).one(Kind.SEGMENT, one)

    assert NUMBER not in str([(span.operationName, span.peer) for span in edited.spans])


@pytest.mark.parametrize("content", ["text", "json", "yaml"])
def test_a_log_body_of_any_sort_is_redacted(content: str) -> None:
    body = log.LogDataBody()
    setattr(getattr(body, content), content, f"paid with {NUMBER}, {NUMBER}")

    edited = Pass(redactor(replacement="[card]")).one(Kind.LOG, log.LogData(body=body)).body

    assert getattr(getattr(edited, content), content) == "paid with [card], [card]"


def test_an_event_is_redacted_in_its_message_and_its_parameters() -> None:
    one = event.Event(message=NUMBER, parameters={"card": NUMBER, "other": "x"})

    edited = Pass(redactor()).one(Kind.EVENT, one)

    assert (edited.message, dict(edited.parameters)) == ("***", {"card": "***", "other": "x"})


def test_only_the_tags_that_are_named_are_looked_at() -> None:
    one = Pass(redactor(tags=["card*", "!card.kind"])).one(
        Kind.LOG, logged(**{"card.no": NUMBER, "card.kind": NUMBER, "id": NUMBER})
    )

    assert [tag.value for tag in one.tags.data] == ["***", NUMBER, NUMBER]


def test_rules_are_applied_in_order_each_to_what_the_one_before_left() -> None:
    rules = [
        {"pattern": "secret", "replacement": "public"},
        {"pattern": "public", "replacement": "-"},
    ]

    assert (
        Pass(made(Redactor, rules=rules)).one(Kind.LOG, logged("a secret")).body.text.text == "a -"
    )


def test_a_replacement_is_taken_as_it_is() -> None:
    edited = Pass(redactor(replacement=r"\1 é \n")).one(Kind.LOG, logged(NUMBER))

    assert edited.body.text.text == r"\1 é \n"


def test_a_record_in_which_nothing_matches_keeps_its_bytes() -> None:
    same = logged("nothing to hide").SerializeToString()

    assert Pass(redactor()).of(Kind.LOG, [same]).outgoing[0].payloads[0] is same


@pytest.mark.parametrize(
    "pattern", ["^abc$", r"\Aabc\z", "(?i)ABC", r"\babc\b", "(?s)a.c", "[^x]bc"]
)
def test_edges_of_a_pattern_are_the_edges_of_each_text(pattern: str) -> None:
    edited = Pass(redactor(pattern)).one(Kind.LOG, logged("xyz", one="abc", two="zz"))

    assert [tag.value for tag in edited.tags.data] == ["***", "zz"]
    assert edited.body.text.text == "xyz"


TEXTS = st.lists(st.text("ab] -\n", max_size=6), min_size=1, max_size=4)
PIECES = [
    *("a", "b", ".", "^", "$", "-", " ", "]", "(a|b)", "[^a]", "[]a]", r"[\]^$]", "[[:alpha:]]"),
    *(r"\b", r"\B", r"\A", r"\z", r"\s", r"\x61", "*", "?", "{2}", "(?:^a|b$)", "(?i)A"),
]
PATTERNS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join)


@given(pattern=PATTERNS, texts=TEXTS)
@settings(max_examples=500, deadline=None)
def test_the_searches_in_a_record_as_a_whole_miss_nothing(pattern: str, texts: list[str]) -> None:
    try:
        matches = any(compile_pattern(pattern).search(text) for text in texts)
    except ConfigError:
        return
    raw = logged(**{f"k{n}": text for n, text in enumerate(texts)}).SerializeToString()
    in_bytes, in_lines = without_edges(pattern), line_by_line(pattern)

    assert not matches or in_bytes is None or in_bytes.search(raw) is not None
    assert not matches or in_lines is None or in_lines.search("\n".join(texts)) is not None


@pytest.mark.parametrize("pattern", [CARD, "^a$", r"a\b{2}", r"[$^\]]x", r"(?i)\bpassword=\S+"])
def test_most_patterns_can_be_searched_for_in_a_record_as_a_whole(pattern: str) -> None:
    assert without_edges(pattern) is not None
    assert line_by_line(pattern) is not None


def test_repetitions_of_an_edge_do_not_become_those_of_a_character() -> None:
    weaker = without_edges(r"a\b{2}")

    assert weaker is not None
    assert weaker.search(b"one a") is not None


def test_a_record_in_which_nothing_can_match_is_not_even_decoded() -> None:
    garbage = b"\x0a\xff"

    assert Pass(redactor()).of(Kind.LOG, [garbage]).outgoing[0].payloads == (garbage,)


def test_a_pattern_made_to_take_for_ever_does_not() -> None:
    evil = redactor("(a+)+$", replacement="")
    began = time.monotonic()

    Pass(evil).one(Kind.LOG, logged("a" * 100_000 + "!"))

    # Python's own engine would not be back in the lifetime of the sun.
    assert time.monotonic() - began < 600


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("(unclosed", "missing"),
        ("(?=ahead)", "perl operator"),
        ("((a{100}){100}){100}", "cannot be used"),
        ("x" * 1001, "1 to 1000 characters"),
        ("", "1 to 1000 characters"),
        ("a*", "matches where nothing is"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_refused_at_start(pattern: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        redactor(pattern)


def test_a_record_that_cannot_be_read_is_dropped_unless_told_otherwise() -> None:
    done = Pass(redactor()).of(Kind.LOG, [b"\x0a\xff" + NUMBER.encode()])

    assert done.outgoing == ()
    assert [loss.reason for loss in done.losses] == ["filter:f0"]


def test_kinds_it_cannot_look_into_are_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert redactor().verdict(Kind.OTLP_LOGS) is Verdict.PASS
        assert redactor().verdict(Kind.INSTANCE_PING) is Verdict.PASS

    assert [record.getMessage() for record in caplog.records] == [
        "redactor: records of kind OTLP_LOGS pass as they are"
    ]


def test_without_the_library_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)

    with pytest.raises(ConfigError, match=r"pip install 'skyfarer\[filters\]'"):
        redactor()


def test_the_library_is_there_for_these_tests() -> None:
    assert importlib.util.find_spec("re2") is not None
