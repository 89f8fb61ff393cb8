"""Spans as the rows of a waterfall: a tree laid out in time, with its critical path.

The critical path is what the root's time was spent in: walked backwards from its end, always into
the child that ended last, and from that child's start on. A span on it, made faster, makes the
whole faster; others do not. Children that run on after their parent (messages) are cut at its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from skyfarer.ui.traces.model import Span

Key = tuple[str, int]


@dataclass(frozen=True)
class Row:
    """`offset` and `width` are shares of the whole trace's time, 0 to 1."""

    span: Span
    depth: int
    offset: float
    width: float
    self_ms: int
    critical: bool


@dataclass(frozen=True)
class Waterfall:
    rows: tuple[Row, ...]
    start_ms: int
    duration_ms: int


def laid_out(spans: Sequence[Span]) -> Waterfall:
    """Each span once, children below their parent by start; a cycle's spans are roots."""
    if not spans:
        return Waterfall((), 0, 0)
    roots, children = _tree(spans)
    start = min(span.start_ms for span in spans)
    whole = max(max(span.end_ms for span in spans) - start, 1)
    critical = _critical(max(roots, key=lambda span: span.duration_ms), children)
    rows = [
        Row(
            span,
            depth,
            (span.start_ms - start) / whole,
            span.duration_ms / whole,
            _self_ms(span, children.get(span.key, [])),
            span.key in critical,
        )
        for span, depth in _walked(roots, children)
    ]
    return Waterfall(tuple(rows), start, whole)


def _tree(spans: Sequence[Span]) -> tuple[list[Span], dict[Key, list[Span]]]:
    known = {span.key: span for span in spans}
    parent_of = {key: _parent(span, known) for key, span in known.items()}
    circling = in_circles(parent_of)
    roots, children = list[Span](), dict[Key, list[Span]]()
    for key, span in sorted(known.items(), key=lambda pair: (pair[1].start_ms, pair[0])):
        parent = parent_of[key]
        if parent is None or key in circling:
            roots.append(span)
        else:
            children.setdefault(parent, []).append(span)
    return roots, children


def _parent(span: Span, known: dict[Key, Span]) -> Key | None:
    return next((key for key in span.parents if key in known and key != span.key), None)


def in_circles(parent_of: Mapping[Key, Key | None]) -> set[Key]:
    """Those whose ancestors lead back to themselves: what agents send may be wrong. Each is looked
    at once, since a trace may be thousands of spans deep."""
    found, done = set[Key](), set[Key]()
    for key in parent_of:
        way, at = dict[Key, int](), key
        while at not in done:
            done.add(at)
            way[at] = len(way)
            above = parent_of[at]
            if above is None:
                break
            at = above
        if at in way and parent_of[at] is not None:
            found.update(list(way)[way[at] :])
    return found


def _walked(roots: list[Span], children: dict[Key, list[Span]]) -> Iterator[tuple[Span, int]]:
    waiting = [(span, 0) for span in reversed(roots)]
    while waiting:
        span, depth = waiting.pop()
        yield span, depth
        waiting += [(child, depth + 1) for child in reversed(children.get(span.key, []))]


def _self_ms(span: Span, children: list[Span]) -> int:
    """Its time less what its children cover of it; they may overlap."""
    covered, until = 0, span.start_ms
    for child in children:  # by start
        begin, end = max(child.start_ms, until), min(child.end_ms, span.end_ms)
        if end > begin:
            covered += end - begin
            until = end
    return span.duration_ms - covered


def _critical(root: Span, children: dict[Key, list[Span]]) -> set[Key]:
    found, waiting = {root.key}, [(root, root.end_ms)]
    while waiting:
        span, limit = waiting.pop()
        end = limit
        for child in sorted(children.get(span.key, []), key=lambda one: -one.end_ms):
            stop = min(child.end_ms, limit)
            if child.start_ms < stop <= end:
                found.add(child.key)
                waiting.append((child, stop))
                end = child.start_ms
    return found
