from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfarer.base.placeholders import DEPTH_MAX, PlaceholderError, substitute


@pytest.mark.parametrize(
    ("text", "environ", "expected"),
    [
        ("plain", {}, "plain"),
        ("${A:x}", {}, "x"),
        ("${A:x}", {"A": "y"}, "y"),
        ("${A}", {"A": "y"}, "y"),
        ("${A:}", {}, ""),
        ("${A:x}", {"A": ""}, ""),
        ("${A:${B:x}}", {}, "x"),
        ("${A:${B:x}}", {"B": "b"}, "b"),
        ("${A:${B:x}}", {"A": "a", "B": "b"}, "a"),
        ("http://${H:h}:${P:1}/", {}, "http://h:1/"),
        ("http://${H:h}:${P:1}/", {"H": "host", "P": "80"}, "http://host:80/"),
        ("${A:localhost:2181}", {}, "localhost:2181"),
        ("${A:-}", {}, "-"),
        ("${A:-1}", {}, "-1"),
        ('${A:""}', {}, ""),
        ("${A:''}", {}, ""),
        ('${A:"two words"}', {}, "two words"),
        ('${A:"${B:x}"}', {"B": 'q"q'}, 'q"q'),
        ('${A:"{\\"analyzer\\":{\\"type\\":\\"stop\\"}}"}', {}, '{"analyzer":{"type":"stop"}}'),
        ("${A:{}}", {}, "{}"),
        ("$A {A} $$", {"A": "no"}, "$A {A} $$"),
        ("a}b", {}, "a}b"),
    ],
)
def test_placeholders_are_filled_in(text: str, environ: dict[str, str], expected: str) -> None:
    assert substitute(text, environ) == expected


def test_what_the_environment_gives_is_taken_exactly() -> None:
    secret = '"${B:x}" {} \\n'

    assert substitute("${A:x}", {"A": secret, "B": "no"}) == secret


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("${A", "closing brace: '${A'"),
        ("x ${A:${B:1}", "closing brace: '${A:${B:1}'"),
        ("${A}", "environment variable A, which is not set"),
        ("${A:${B}}", "environment variable B, which is not set"),
        ("${}", "without a variable's name"),
        ("${A B:x}", "without a variable's name"),
        ("${:x}", "without a variable's name"),
        ('${A:"a" or "b"}', "not one quoted text"),
    ],
)
def test_a_malformed_placeholder_is_named(text: str, complaint: str) -> None:
    with pytest.raises(PlaceholderError) as refused:
        substitute(text, {})

    assert complaint in str(refused.value)


def test_nesting_has_a_bound() -> None:
    text = "${A:" * (DEPTH_MAX + 2) + "x" + "}" * (DEPTH_MAX + 2)

    with pytest.raises(PlaceholderError, match="deep"):
        substitute(text, {})


@dataclass(frozen=True)
class Filled:
    """A text with placeholders, and what it must become."""

    text: str
    value: str


_PLAIN = st.text(alphabet="abc019 :/.-$#", max_size=6)
_NAMES = st.sampled_from(["UNSET_A", "UNSET_B", "SET_A", "SET_B"])
_ENVIRON = {"SET_A": "value of ${UNSET_A:a}", "SET_B": ""}


def _placeholder(name: str, default: Filled) -> Filled:
    return Filled(f"${{{name}:{default.text}}}", _ENVIRON.get(name, default.value))


def _joined(parts: list[Filled]) -> Filled:
    return Filled("".join(p.text for p in parts), "".join(p.value for p in parts))


_FILLED = st.recursive(
    _PLAIN.map(lambda text: Filled(text, text)),
    lambda inner: st.one_of(
        st.builds(_placeholder, _NAMES, inner), st.lists(inner, max_size=4).map(_joined)
    ),
    max_leaves=12,
).filter(lambda filled: "$${" not in filled.text)


@given(_FILLED)
def test_any_nesting_becomes_what_its_parts_become(filled: Filled) -> None:
    assert substitute(filled.text, _ENVIRON) == filled.value


@given(st.text(alphabet="${}A:x\"'", max_size=30))
def test_any_text_is_filled_in_or_refused(text: str) -> None:
    try:
        substitute(text, {"A": "v"})
    except PlaceholderError as refused:
        assert str(refused)
