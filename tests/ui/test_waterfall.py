"""Spans laid out: depth, place in time, what a span did itself, and the critical path."""

from __future__ import annotations

import random

from skyfarer.ui.traces.model import Span
from skyfarer.ui.traces.waterfall import Waterfall, in_circles, laid_out


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


class Counted(dict[tuple[str, int], tuple[str, int] | None]):
    """Counts how often somebody's parent was asked for."""

    asked = 0

    def __getitem__(self, key: tuple[str, int]) -> tuple[str, int] | None:
        self.asked += 1
        return super().__getitem__(key)


def test_circles_are_found_by_looking_at_each_span_a_fixed_number_of_times():
    deep = Counted({("s", n): ("s", n - 1) if n else None for n in range(10_000)})
    for order in (1, -1):
        spans = Counted(list(deep.items())[::order])
        assert in_circles(spans) == set()
        assert spans.asked <= 2 * len(deep)


def test_only_those_in_a_circle_are_told_and_not_those_that_hang_on_it():
    links = {"a": "b", "b": "c", "c": "a", "d": "a", "e": "d", "f": "f", "g": None, "h": "g"}
    for seed in range(20):
        order = random.Random(seed).sample(sorted(links), len(links))
        parents = {(one, 0): (links[one], 0) if links[one] else None for one in order}
        assert in_circles(parents) == {(one, 0) for one in "abcf"}


def test_a_trace_of_ten_thousand_spans_in_each_other_is_laid_out():
    spans = [span(str(n), n, 20_000 - n, *([str(n - 1)] if n else [])) for n in range(10_000)]
    found = laid_out(spans)
    assert [row.depth for row in found.rows] == list(range(10_000))
    assert all(row.critical for row in found.rows)


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
