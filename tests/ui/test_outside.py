"""Text from outside, as it is shown."""

from __future__ import annotations

import pytest

from skyfarer.ui.outside import shown


def test_a_usual_text_is_shown_as_it_is() -> None:
    assert shown("GET:/orders/{id} ☕ שלום\n\tline") == "GET:/orders/{id} ☕ שלום\n\tline"


def test_a_long_text_is_cut_and_says_by_how_much() -> None:
    assert shown("x" * 1_500, 10) == "xxxxxxxxxx… (1,490 characters more)"
    assert shown("x" * 10, 10) == "x" * 10


@pytest.mark.parametrize(
    ("hidden", "spelt"),
    [
        ("a\x00b", "a␀b"),
        ("a\x1bb", "a␛b"),
        ("a\x7fb", "a<U+007F>b"),
        ("a\u202eb", "a<U+202E>b"),
        ("a\u2067b", "a<U+2067>b"),
    ],
)
def test_what_would_not_be_seen_or_turn_the_text_around_is_spelt(hidden: str, spelt: str) -> None:
    assert shown(hidden) == spelt
