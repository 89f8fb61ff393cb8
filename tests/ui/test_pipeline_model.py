"""Rates and words of the page of the pipeline, from values alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skyfarer.ui.model import Ledger
from skyfarer.ui.pipeline.model import (
    LOOKS_MAX,
    Analysis,
    Look,
    Looks,
    Ttl,
    by_count,
    rate_text,
    seconds_text,
)
from skyfarer.ui.pipeline.panels import expiry


def look(time_ms: int, accepted: int, delivered: int = 0) -> Look:
    books = Ledger(accepted, delivered, accepted - delivered, 0, True)
    return Look(
        *(time_ms, None, books, {}, None, {}, 0, None, None),
        Analysis(None, 0, 0, None, None, {}, {}),
        Ttl(3, 7, {}, None, 0, {}, 0),
        *("", {}, (), (), ()),
    )


def test_a_rate_is_what_the_books_gained_by_the_nodes_own_clock():
    looks = Looks()
    looks.add(look(0, 100))
    assert looks.accepted_per_s() is None
    looks.add(look(2_000, 300, 100))
    assert (looks.accepted_per_s(), looks.delivered_per_s()) == (100.0, 50.0)
    looks.add(look(2_000, 300, 100))
    assert looks.rates("accepted") == [None, 100.0, 100.0]


def test_a_node_that_has_not_looked_for_what_expired_yet_says_so():
    told = Ttl(3, 7, {}, None, 0, {}, 0)
    assert ("last seen clean", "not yet") in expiry(told)
    assert ("last seen clean", "90 s ago") in expiry(replace(told, last_success_s=90.0))


def test_books_that_went_back_are_those_of_another_node():
    looks = Looks()
    looks.add(look(0, 100))
    looks.add(look(2_000, 7))
    assert looks.accepted_per_s() is None
    assert len(looks.kept) == 1


def test_no_more_looks_are_kept_than_the_bound():
    looks = Looks()
    for number in range(LOOKS_MAX + 50):
        looks.add(look(number * 2_000, number))
    assert len(looks.kept) == len(looks.rates("accepted")) == LOOKS_MAX


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((None, "–"), (0.0, "0.0 s"), (9.94, "9.9 s"), (75.4, "75 s"), (240, "4 min")),
        *((7_500, "2 h 5 min"), (183_600, "2 d 3 h")),
    ],
)
def test_a_time_is_told_in_the_unit_that_fits(seconds, text):
    assert seconds_text(seconds) == text


def test_rates_have_decimals_while_they_are_small_and_counts_stand_by_size():
    assert [rate_text(rate) for rate in (None, 0.0, 99.94, 12_345.6)] == [
        *("–", "0.0", "99.9", "12,346"),
    ]
    assert list(by_count({"a": 1, "none": 0, "c": 5, "b": 5})) == [("b", 5), ("c", 5), ("a", 1)]
