"""Logic endpoints: what a tag of a span says to be one, though nobody can call it from outside."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from skyfarer.oap.core.layers import Layer
from skyfarer.testing.plain_analysis import spans
from skyfarer.testing.plain_analysis.rows import Row, row
from skyfarer.testing.plain_analysis.rules import Rules
from skyfarer.wire.messages import SegmentObject, SpanObject, SpanType

TAG: Final = "x-le"


def rows_of(segment: SegmentObject, span: SpanObject, rules: Rules) -> Iterator[Row]:
    for tag in span.tags:
        told = _told(span, tag.value) if tag.key == TAG else None
        if told is not None:
            name, latency, status = told
            yield row(
                "Endpoint",
                span,
                service=rules.service(segment.service),
                layer=Layer.GENERAL,
                endpoint=rules.endpoint(name),
                latency=latency,
                status=status,
                type="LOGIC",
                dest_instance=rules.instance(segment.serviceInstance),
            )


def _told(span: SpanObject, text: str) -> tuple[str, int, bool] | None:
    """A text that is not what it should be stops the original; here it says nothing."""
    try:
        said = json.loads(text)
        words = {key: _word(value) for key, value in said.items()} if isinstance(said, dict) else {}
        return _read(span, words)
    except (ValueError, OverflowError):
        return None


def _read(span: SpanObject, words: Mapping[str, str | None]) -> tuple[str, int, bool] | None:
    if span.spanType == SpanType.Local and _true(words.get("logic-span")):
        return span.operationName, spans.latency(span), not span.isError
    name, latency, status = (words.get(key) for key in ("name", "latency", "status"))
    if name is None or latency is None or status is None:
        return None
    return name, int(float(latency)), _true(status)


def _word(value: object) -> str | None:
    """A number or a flag may be written as a text, and a text as a number."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)


def _true(word: str | None) -> bool:
    return word is not None and word.lower() == "true"
