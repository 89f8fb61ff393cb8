"""Spans laid out: depth, place in time, what a span did itself, and the critical path."""

from __future__ import annotations

import random

from skyfarer.ui.traces.model import Span
from skyfarer.ui.traces.waterfall import Waterfall, laid_out


def span(name: str, start: int, end: int, *parents: str) -> Span:
    return Span(
        key=(name, 0),
        parents=tuple((parent, 0) for parent in parents),
        service="s",
        instance="i",
        name=name,
        kind="Local",
        peer="",
        component="",
        layer="",
        start_ms=start,
        end_ms=end,
        is_error=False,
        tags=(),
        logs=(),
    )


def depths(waterfall: Waterfall) -> list[tuple[str, int]]:
    return [(row.span.name, row.depth) for row in waterfall.rows]


def critical(waterfall: Waterfall) -> set[str]:
    return {row.span.name for row in waterfall.rows if row.critical}


def itself(waterfall: Waterfall) -> dict[str, int]:
    return {row.span.name: row.self_ms for row in waterfall.rows}


def test_no_spans_are_no_rows():
    assert laid_out([]) == Waterfall((), 0, 0)


def test_children_stand_below_their_parent_by_start_whatever_the_order_they_came_in():
    spans = [span("a", 0, 9), span("b", 1, 3, "a"), span("c", 2, 3, "b"), span("d", 4, 9, "a")]
    for seed in range(20):
        random.Random(seed).shuffle(spans)
        assert depths(laid_out(spans)) == [("a", 0), ("b", 1), ("c", 2), ("d", 1)]


def test_places_are_shares_of_the_whole_trace():
    rows = laid_out([span("a", 100, 300), span("b", 150, 200, "a")]).rows
    assert [(row.offset, row.width) for row in rows] == [(0.0, 1.0), (0.25, 0.25)]


def test_a_parent_that_is_not_there_makes_a_root_and_the_next_reference_counts():
    found = laid_out([span("a", 0, 9), span("b", 1, 2, "gone"), span("c", 3, 4, "gone", "a")])
    assert depths(found) == [("a", 0), ("c", 1), ("b", 0)]


def test_spans_that_are_their_own_ancestors_are_shown_once_each():
    found = laid_out([span("a", 0, 9, "b"), span("b", 1, 8, "a"), span("c", 2, 3, "b")])
    assert depths(found) == [("a", 0), ("b", 0), ("c", 1)]
    assert depths(laid_out([span("me", 0, 1, "me")])) == [("me", 0)]


def test_what_a_span_did_itself_leaves_out_what_its_children_cover_even_when_they_overlap():
    found = laid_out(
        [span("a", 0, 100), span("b", 10, 50, "a"), span("c", 30, 60, "a"), span("d", 90, 150, "a")]
    )
    assert itself(found) == {"a": 40, "b": 40, "c": 30, "d": 60}


def test_the_critical_path_follows_the_child_that_ended_last_and_leaves_out_what_it_overlaps():
    found = laid_out(
        [
            span("root", 0, 100),
            span("first", 0, 40, "root"),
            span("beside", 20, 60, "root"),
            span("last", 50, 95, "root"),
            span("inner", 60, 90, "last"),
        ]
    )
    assert critical(found) == {"root", "first", "last", "inner"}


def test_a_message_handled_after_its_sender_ended_counts_up_to_that_end():
    found = laid_out(
        [span("root", 0, 50), span("late", 40, 400, "root"), span("x", 45, 48, "late")]
    )
    assert critical(found) == {"root", "late", "x"}
    assert critical(laid_out([span("root", 0, 50), span("after", 60, 90, "root")])) == {"root"}


def test_a_span_that_ends_before_it_starts_has_no_width():
    (row,) = laid_out([span("odd", 10, 5)]).rows
    assert (row.width, row.self_ms) == (0.0, 0)
