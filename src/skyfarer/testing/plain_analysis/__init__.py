"""Trace analysis in plain Python, span by span: slow, obvious, and what Spark is compared with.

    segments --plain_rows--> rows --oal_row--> what oal.interpreter reads

Written from SkyWalking's rules alone, never from the pipeline's code, so that a mistake is not
made twice. A row is a dict: `source`, `minute`, the columns of `core.entities.ENTITY_COLUMNS`, the
attributes that the source has, `tag` (the last value of each key) and `tags` (`key:value`), and
`source_instance`, `dest_instance`, `dest_endpoint`: the ends of a call, of which the entity itself
may be less.

Where the original has a defect it is mended, and the rule says so.

Pure functions; rows belong to the caller. Must never import the pipeline.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from skyfarer.testing.plain_analysis import calls, virtual
from skyfarer.testing.plain_analysis.rows import Row, entity_id, oal_row
from skyfarer.testing.plain_analysis.rules import Rules
from skyfarer.wire.messages import SegmentObject, SpanType

__all__ = ["Row", "Rules", "entity_id", "oal_row", "plain_rows"]

_NAMED = frozenset({SpanType.Entry, SpanType.Exit, SpanType.Local})


def plain_rows(segments: Iterable[SegmentObject], rules: Rules | None = None) -> list[Row]:
    """What the segments emit, in the order of their spans. A repeated segment counts again: telling
    it from a new one is not analysis."""
    return [row for segment in segments for row in _of(segment, rules or Rules())]


def _of(segment: SegmentObject, rules: Rules) -> Iterator[Row]:
    for span in segment.spans:
        if span.spanType not in _NAMED:
            continue
        if rules.trace_analysis:
            yield from calls.rows_of(segment, span, rules)
        yield from virtual.rows_of(segment, span, rules)
