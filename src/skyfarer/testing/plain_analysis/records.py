"""What is stored of segments as records: themselves, the tags to find them by, slow statements.

A record is a dict. Of a segment: `id`, `trace`, `service_id`, `instance_id`, `endpoint_id`, `start`
(epoch ms), `second` (the time bucket), `latency`, `error`, `tags` (`key=value`) and `data`, its
bytes. Of a slow statement: `what` (the name of its table), `id`, `entity_id`, `statement`,
`latency`, `trace`, `start` and `second`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from skyfarer.testing.plain_analysis import spans
from skyfarer.testing.plain_analysis.keeping import RATE_MAX, Keeping
from skyfarer.testing.plain_analysis.rows import encoded
from skyfarer.testing.plain_analysis.rules import Rules
from skyfarer.wire.messages import SegmentObject, SpanLayer, SpanObject, SpanType

Record: TypeAlias = dict[str, Any]

TAG_CHARS_MAX: Final = 256
STATEMENT_CHARS_MAX: Final = 2_000
SLOWEST_MAX: Final = 50
"""Of one entity in one minute."""


@dataclass(frozen=True)
class Records:
    """`tags` are proposals: a day and `key=value`."""

    segments: list[Record]
    slow: list[Record]
    tags: set[tuple[int, str]]


def plain_records(segments: Iterable[SegmentObject], rules: Rules, keeping: Keeping) -> Records:
    """Slow statements are kept of segments that are not sampled too."""
    given = list(segments)
    stored = [one for one in (_stored(each, rules, keeping) for each in given) if one]
    slow = [one for each in given for one in _slow(each, rules, keeping)]
    tags = {(one["second"] // 10**6, tag) for one in stored for tag in one["tags"]}
    return Records(stored, _slowest(slow), tags)


def _stored(segment: SegmentObject, rules: Rules, keeping: Keeping) -> Record | None:
    start = min(span.startTime for span in segment.spans)
    latency = spans.within(max(span.endTime for span in segment.spans) - start)
    failed = any(_fails(span, keeping.failed_by) for span in segment.spans)
    if not _sampled(segment, latency, failed, rules, keeping):
        return None
    service_id = f"{encoded(rules.service(segment.service))}.1"
    return {
        "id": segment.traceSegmentId,
        "trace": segment.traceId,
        "service_id": service_id,
        "instance_id": f"{service_id}_{encoded(rules.instance(segment.serviceInstance))}",
        "endpoint_id": f"{service_id}_{encoded(rules.endpoint(_endpoint(segment)))}",
        "start": start,
        "second": second(start),
        "latency": latency,
        "error": failed,
        "tags": _searchable(segment, keeping),
        "data": bytes(segment.SerializeToString()),
    }


def _fails(span: SpanObject, strategy: str) -> bool:
    decides = {
        "FROM_SPAN_STATUS": True,
        "FROM_ENTRY_SPAN": span.spanType == SpanType.Entry,
        "FROM_FIRST_SPAN": span.spanId == 0,
    }
    return span.isError and decides[strategy]


def _endpoint(segment: SegmentObject) -> str:
    """Without either span the original loses all ids of the segment; here it has no endpoint."""
    name = ""
    for span in segment.spans:
        if span.spanId == 0 or span.spanType == SpanType.Entry:
            name = span.operationName
    return name


def _sampled(
    segment: SegmentObject, latency: int, failed: bool, rules: Rules, keeping: Keeping
) -> bool:
    service = rules.service(segment.service)
    longest = keeping.duration_ms(service)
    if longest > -1 and latency >= longest:
        return True
    if abs(java_hash(segment.traceId)) % RATE_MAX < keeping.rate(service):
        return True
    return failed and keeping.errors


def java_hash(text: str) -> int:
    number = 0
    units = text.encode("utf-16-be")
    for at in range(0, len(units), 2):
        number = (31 * number + int.from_bytes(units[at : at + 2])) % 2**32
    return number - 2**32 if number >= 2**31 else number


def _searchable(segment: SegmentObject, keeping: Keeping) -> list[str]:
    found: list[str] = []
    for span in segment.spans:
        for tag in span.tags:
            text = f"{tag.key}={tag.value}"
            fits = len(text) <= TAG_CHARS_MAX
            if tag.key in keeping.searchable and fits and text not in found:
                found.append(text)
    return found


def _slow(segment: SegmentObject, rules: Rules, keeping: Keeping) -> Iterator[Record]:
    caller = f"{encoded(rules.service(segment.service))}.1"
    for span in segment.spans:
        if span.spanType not in (SpanType.Entry, SpanType.Exit, SpanType.Local):
            continue
        for what, entity_id, statement in _too_long(span, caller, rules, keeping):
            yield {
                "what": what,
                "id": f"{segment.traceSegmentId}-{span.spanId}",
                "entity_id": entity_id,
                "statement": statement[:STATEMENT_CHARS_MAX],
                "latency": spans.latency(span),
                "trace": segment.traceId,
                "start": span.startTime,
                "second": second(span.startTime),
            }


def _too_long(
    span: SpanObject, caller: str, rules: Rules, keeping: Keeping
) -> Iterator[tuple[str, str, str]]:
    """Table, entity and text. A tag that is there several times has its last value."""
    tags, taken = spans.tag_map(span), spans.latency(span)
    if span.spanLayer == SpanLayer.Database:
        statement = tags.get("db.statement", "")
        if not spans.blank(statement) and _over(taken, tags.get("db.type"), keeping.database_ms):
            asked = f"{encoded(rules.service(span.peer))}.0"
            yield "top_n_database_statement", asked, statement
            yield "top_n_service_database_statement", caller, statement
    kind, operation = tags.get("cache.type", ""), tags.get("cache.op")
    if span.spanLayer == SpanLayer.Cache and not spans.blank(kind):
        limits = {"read": keeping.cache_read_ms, "write": keeping.cache_write_ms}
        if operation in limits and _over(taken, kind, limits[operation]):
            name = f"{kind}-local" if spans.blank(span.peer) else span.peer
            words = [tags[key] for key in ("cache.cmd", "cache.key") if key in tags]
            cache = f"{encoded(rules.service(name))}.0"
            yield f"top_n_cache_{operation}_command", cache, " ".join(words)


def _over(taken_ms: int, kind: str | None, limits_ms: Mapping[str, int]) -> bool:
    if kind is None:
        return False
    limit = limits_ms.get(kind.lower(), limits_ms.get("default"))
    return limit is not None and taken_ms > limit


def _slowest(records: Iterable[Record]) -> list[Record]:
    kept: dict[tuple[str, str, int], list[Record]] = {}
    for one in sorted(records, key=lambda one: (-one["latency"], one["id"])):
        same = kept.setdefault((one["what"], one["entity_id"], one["start"] // 60_000), [])
        if len(same) < SLOWEST_MAX:
            same.append(one)
    return [one for some in kept.values() for one in some]


def second(epoch_ms: int) -> int:
    """The bucket of a second, in UTC."""
    return int(datetime.fromtimestamp(epoch_ms // 1000, UTC).strftime("%Y%m%d%H%M%S"))
