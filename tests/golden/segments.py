"""Segments from their short form. ValueError says where it is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from golden.registered import NAMELESS
from skyfarer.wire.messages import (
    KeyStringValuePair,
    RefType,
    SegmentObject,
    SegmentReference,
    SpanLayer,
    SpanObject,
    SpanType,
)

NOON_MS = 12 * 3_600_000
TYPES: Mapping[str, Any] = {
    "entry": SpanType.Entry,
    "exit": SpanType.Exit,
    "local": SpanType.Local,
    "newer": 9,
}
"""The last is a type that only newer agents know."""
SEGMENT = ("segment", "spans", "times", "id", "trace")
SPAN = (
    *(*TYPES, "at", "took", "layer", "component", "error", "peer", "tags", "refs", "skip", "id"),
)
REF = ("by", "endpoint", "address", "thread")
UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
DURATION = re.compile(r"(-?\d+)(ms|s|m|h|d)")


def segments(written: Any, noon_ms: int, v2: bool = False) -> Iterator[SegmentObject]:
    """Of v2: what is meant by those that its agents send, whose ids are numbers."""
    for number, one in enumerate(_list("load", written)):
        where = f"load[{number}]"
        _known(where, one, SEGMENT)
        service, instance = _pair(one.get("segment", ""))
        spans: list[SpanObject] = []
        for n, span in enumerate(_list(f"{where}.spans", one.get("spans", []))):
            for single in _singles(f"{where}.spans[{n}]", span):
                spans.append(_span(f"{where}.spans[{n}]", single, len(spans), noon_ms))
        for again in range(one.get("times", 1)):
            own = f"{noon_ms}.{number}.{again}" if v2 else f"{noon_ms}-{number}-{again}"
            yield SegmentObject(
                traceId=str(one.get("trace", own if v2 else f"trace-{own}")),
                traceSegmentId=str(one.get("id", own if v2 else f"segment-{own}")),
                spans=[_named(span) for span in spans] if v2 else spans,
                service=service,
                serviceInstance=instance,
            )


def _named(span: SpanObject) -> SpanObject:
    if span.spanType == SpanType.Entry and not span.operationName:
        span.operationName = NAMELESS
    return span


def _singles(where: str, one: Any) -> list[Any]:
    """A list of durations stands for as many spans."""
    _known(where, one, SPAN)
    took = one.get("took", "0ms")
    return [{**one, "took": each} for each in took] if isinstance(took, list) else [one]


def _span(where: str, one: Any, number: int, noon_ms: int) -> SpanObject:
    types = [name for name in TYPES if name in one]
    if len(types) != 1:
        raise ValueError(f"{where} needs one of entry, exit and local, with its operation")
    start = noon_ms + duration_ms(f"{where}.at", one.get("at", "0ms"))
    return SpanObject(
        spanId=one.get("id", number),
        parentSpanId=one.get("id", number) - 1,
        startTime=start,
        endTime=start + duration_ms(f"{where}.took", one.get("took", "0ms")),
        refs=[_ref(f"{where}.refs[{n}]", ref) for n, ref in enumerate(one.get("refs", []))],
        operationName=one[types[0]] or "",
        peer=one.get("peer", ""),
        spanType=TYPES[types[0]],
        spanLayer=_layer(where, one.get("layer", "Unknown")),
        componentId=one.get("component", 0),
        isError=one.get("error", False),
        tags=list(_tags(one.get("tags", {}))),
        skipAnalysis=one.get("skip", False),
    )


def _ref(where: str, one: Any) -> SegmentReference:
    _known(where, one, REF)
    service, instance = _pair(one.get("by", ""))
    return SegmentReference(
        refType=RefType.CrossThread if one.get("thread") else RefType.CrossProcess,
        parentService=service,
        parentServiceInstance=instance,
        parentEndpoint=one.get("endpoint", ""),
        networkAddressUsedAtPeer=one.get("address", ""),
    )


def _tags(written: Any) -> Iterator[KeyStringValuePair]:
    """A mapping, or a list of mappings where a key comes twice."""
    for one in [written] if isinstance(written, Mapping) else written:
        for key, value in one.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            yield KeyStringValuePair(key=key, value=text)


def _layer(where: str, written: str | int) -> Any:
    """A number stands for a layer that only newer agents know."""
    names = SpanLayer.keys()
    if isinstance(written, str) and written not in names:
        raise ValueError(f"{where}.layer: '{written}' is none of {', '.join(names)}")
    return SpanLayer.Value(written) if isinstance(written, str) else written


def duration_ms(where: str, written: Any) -> int:
    found = DURATION.fullmatch(str(written))
    if found is None:
        raise ValueError(f"{where}: '{written}' needs a unit: 12ms, 3s, 1m, 1h or 1d")
    return int(found[1]) * UNITS_MS[found[2]]


def _pair(text: str) -> tuple[str, str]:
    service, _, instance = text.partition(" / ")
    return service, instance


def _list(where: str, written: Any) -> list[Any]:
    if not isinstance(written, list):
        raise ValueError(f"{where} must be a list, not {written!r}")
    return written


def _known(where: str, written: Any, keys: tuple[str, ...]) -> None:
    if not isinstance(written, dict):
        raise ValueError(f"{where} must be a mapping, not {written!r}")
    for key in written:
        if key not in keys:
            raise ValueError(f"{where} has no '{key}'; it has {', '.join(keys)}")
