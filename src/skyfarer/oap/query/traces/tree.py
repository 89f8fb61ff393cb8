"""The order of a trace's spans: parents before children, as the page draws them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from skyfarer.oap.query.traces.span import Span


def in_tree_order(spans: Sequence[Span]) -> list[Span]:
    """Depth first from the roots; every span once.

    A root is a span whose parent is not there, and roots are sorted by their start; children stand
    as they came. Spans that are each other's ancestors have no root: they follow at the end, each
    such circle opened where it begins in time.
    """
    present = {span.key for span in spans}
    children: dict[tuple[str, int], list[Span]] = defaultdict(list)
    for span in spans:
        children[span.parent_key].append(span)
    roots = [span for span in spans if span.parent_key not in present]
    ordered: dict[int, Span] = {}
    for starts in (roots, spans):
        for root in sorted(starts, key=lambda span: span.start_ms):
            _walk(root, children, ordered)
    return list(ordered.values())


def _walk(
    root: Span, children: dict[tuple[str, int], list[Span]], ordered: dict[int, Span]
) -> None:
    waiting = [root]
    while waiting:
        span = waiting.pop()
        if id(span) not in ordered:
            ordered[id(span)] = span
            waiting += reversed(children.get(span.key, ()))
