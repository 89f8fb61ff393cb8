"""Logic endpoints: what a tag of a span says to be one, though nobody can call it from outside."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from skyfarer.oap.core.layers import Layer
from skyfarer.testing.plain_analysis import spans
from skyfarer.testing.plain_analysis.rows import Row, row
from skyfarer.testing.plain_analysis.rules import Rules
from skyfarer.wire.messages import SegmentObject, SpanObject, SpanType

TAG: Final = "x-le"
TAGS_MAX: Final = 127
"""Of a span: later ones are not looked at."""
_DECIMAL: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_QUOTED: Final = re.compile(r"""(["'])(?:(?!\1)[^\\]|\\.)*\1""")
_MARK: Final = re.compile(r'\\.|"')


def rows_of(segment: SegmentObject, span: SpanObject, rules: Rules) -> Iterator[Row]:
    for tag in span.tags[:TAGS_MAX]:
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
        said, _ = _JSON.raw_decode(_QUOTED.sub(_in_double_quotes, text).lstrip(" \t\r\n"))
    except ValueError:
        return None
    words = {key: _word(value) for key, value in said.items()} if isinstance(said, dict) else {}
    return _read(span, words)


def _in_double_quotes(found: re.Match[str]) -> str:
    """Single ones are as good, though JSON has none."""
    text = found[0]
    if text.startswith('"'):
        return text
    return f'"{_MARK.sub(_marked, text[1:-1])}"'


def _marked(found: re.Match[str]) -> str:
    return {"\\'": "'", '"': '\\"'}.get(found[0], found[0])


def _read(span: SpanObject, words: Mapping[str, str | None]) -> tuple[str, int, bool] | None:
    if span.spanType == SpanType.Local and _true(words.get("logic-span")):
        return span.operationName, spans.latency(span), not span.isError
    name, latency, status = (words.get(key) for key in ("name", "latency", "status"))
    if name is None or latency is None or status is None or not _DECIMAL.fullmatch(latency):
        return None
    return name, spans.within(float(latency)), _true(status)


def _word(value: object) -> str | None:
    """A number or a flag may be written as a text, and a text as a number."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _first(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of a name that comes twice the first value holds, and null is none."""
    return dict(pair for pair in reversed(pairs) if pair[1] is not None)


def _refused(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


_JSON: Final = json.JSONDecoder(object_pairs_hook=_first, parse_constant=_refused)


def _true(word: str | None) -> bool:
    return word is not None and word.lower() == "true"
