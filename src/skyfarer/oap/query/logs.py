"""The root fields about logs, from the protocol's arguments to its shapes.

What a log says is read from its bytes when somebody asks. An agent's data never costs the answer:
bytes that cannot be read are a log without content.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf.message import DecodeError

from skyfarer.oap.core.logs import (
    LEVEL,
    LEVELS,
    NUMBERS_A_LEVEL,
    LogCondition,
    LogReader,
    StoredLog,
)
from skyfarer.oap.query import conditions, keywords, limits
from skyfarer.oap.query.durations import Duration
from skyfarer.oap.query.errors import QueryError
from skyfarer.oap.query.keywords import Keywords
from skyfarer.oap.query.mending import parsed
from skyfarer.oap.query.naming import part_name, service_name
from skyfarer.oap.query.traces import otlp
from skyfarer.oap.query.traces.span import Allowance, View, cut, text
from skyfarer.wire.messages import log as wire
from skyfarer.wire.messages import otlp_logs
from skyfarer.wire.rpc import Kind

log = logging.getLogger(__name__)

NONE: Final = "NONE"
_TYPES: Final = {"text": "TEXT", "json": "JSON", "yaml": "YAML"}
_TOO_LARGE: Final = "some of these logs are too large to be shown together: ask for fewer at a time"
_STOPPED: Final = (
    "only the first {} logs that could have these keywords were looked at:"
    " ask for a shorter time, one service or a tag"
)


@dataclass(frozen=True)
class _Told:
    """What the bytes of a log say."""

    type: str = NONE
    content: str = ""
    tags: tuple[tuple[str, str], ...] = ()


class Logs:
    """Any thread; blocks on storage."""

    def __init__(self, reader: LogReader) -> None:
        self._reader = reader

    def table(self) -> dict[str, Callable[..., object]]:
        return {
            "queryLogs": self.page,
            "queryLogsByName": self.page_by_name,
            "supportQueryLogsByKeywords": lambda: True,
            "queryLogTagAutocompleteKeys": self.tag_keys,
            "queryLogTagAutocompleteValues": self.tag_values,
        }

    def page(self, condition: Mapping[str, Any] | None = None, debug: bool | None = None) -> View:
        if condition is None:
            raise QueryError("the condition is missing")
        offset, limit = conditions.page(condition["paging"], "logs")
        words = Keywords.of(condition)
        asked, newest_first = _condition(condition, words), condition.get("queryOrder") != "ASC"

        def read(first: int, count: int) -> list[StoredLog]:
            return self._reader.logs(asked, newest_first, first, count, limits.LOGS_BYTES_MAX)

        if not limit:
            return _page_view(keywords.Page([]))
        if words:
            return _page_view(keywords.page(read, _fits(words), offset, limit))
        return _page_view(keywords.Page(read(offset, limit)))

    def page_by_name(
        self, condition: Mapping[str, Any] | None = None, debug: bool | None = None
    ) -> View:
        return self.page(
            None if condition is None else {**condition, **conditions.ids_of(condition)}
        )

    def tag_keys(self, duration: Mapping[str, str]) -> list[str]:
        return self._reader.log_tag_keys(Duration.of(duration).seconds, limits.TAGS_PROPOSED_MAX)

    def tag_values(self, tagKey: str, duration: Mapping[str, str]) -> list[str]:  # noqa: N803
        between = Duration.of(duration).seconds
        return self._reader.log_tag_values(tagKey, between, limits.TAGS_PROPOSED_MAX)


def _fits(words: Keywords) -> Callable[[StoredLog], bool]:
    """As far as a content is shown."""
    no_tags = Allowance(spans=0, entries=0)
    return lambda one: words.fit(_told(one, no_tags).content[: limits.LOG_CHARS_MAX])


def _page_view(page: keywords.Page) -> View:
    allowance, reason = Allowance(spans=0, entries=limits.LOG_TAGS_MAX), None
    if page.stopped_at is not None:
        reason = _STOPPED.format(page.stopped_at)
    elif any(one.data is None for one in page.logs):
        reason = _TOO_LARGE
    return {
        "errorReason": reason,
        "logs": [_view(one, _told(one, allowance)) for one in page.logs],
    }


def _condition(condition: Mapping[str, Any], words: Keywords) -> LogCondition:
    trace, duration = condition.get("relatedTrace") or {}, condition.get("queryDuration")
    trace_id = trace.get("traceId") or None
    if trace_id is None and duration is None:
        raise QueryError("the condition needs a relatedTrace or a queryDuration")
    return LogCondition(
        between=None if duration is None else Duration.of(duration).seconds,
        service_id=condition.get("serviceId") or None,
        instance_id=condition.get("serviceInstanceId") or None,
        endpoint_id=condition.get("endpointId") or None,
        trace_id=trace_id,
        segment_id=trace.get("segmentId") or None,
        span_id=trace.get("spanId"),
        tags=tuple(conditions.tags(condition.get("tags") or ())),
        words=words.wanted,
    )


def _told(stored: StoredLog, allowance: Allowance) -> _Told:
    read = _READ.get(stored.kind)
    if stored.data is None or read is None:
        return _Told()
    try:
        return read(stored.data, allowance)
    except DecodeError as error:
        log.warning("a log of %s cannot be decoded: %s", stored.service_id[:80], error)
        return _Told()


def _native(stored: bytes, allowance: Allowance) -> _Told:
    data = parsed(wire.LogData, stored)
    tags, which = allowance.pairs(data.tags.data), data.body.WhichOneof("content")
    if which is None:
        return _Told(tags=tags)
    content: str = getattr(getattr(data.body, which), which)  # the text of a TextLog is `text`
    return _Told(_TYPES[which], cut(content, limits.LOG_CHARS_MAX), tags)


def _opentelemetry(stored: bytes, allowance: Allowance) -> _Told:
    """One resource, one scope, one record. A body that is no text is shown as JSON."""
    whole = parsed(otlp_logs.ResourceLogs, stored)
    records = [record for scope in whole.scope_logs for record in scope.log_records]
    if not records:
        return _Told()
    record, level = records[0], _level(records[0])
    tags = (*(((LEVEL, level),) if level else ()), *otlp.pairs(record.attributes, allowance))
    if not record.HasField("body"):
        return _Told(tags=tags)
    kind = "TEXT" if record.body.WhichOneof("value") == "string_value" else "JSON"
    return _Told(kind, cut(otlp.shown(record.body), limits.LOG_CHARS_MAX), tags)


def _level(record: otlp_logs.LogRecord) -> str:
    """As it is written, else by its number."""
    number = (record.severity_number - 1) // NUMBERS_A_LEVEL
    by_number = LEVELS[number] if 0 <= number < len(LEVELS) else ""
    return text(record.severity_text) or by_number


_READ: Final[Mapping[int, Callable[[bytes, Allowance], _Told]]] = {
    Kind.LOG: _native,
    Kind.OTLP_LOGS: _opentelemetry,
}


def _view(stored: StoredLog, told: _Told) -> View:
    return {
        "serviceName": service_name(stored.service_id),
        "serviceId": stored.service_id,
        "serviceInstanceName": part_name(stored.instance_id) or None,
        "serviceInstanceId": stored.instance_id or None,
        "endpointName": part_name(stored.endpoint_id) or None,
        "endpointId": stored.endpoint_id or None,
        "traceId": stored.trace_id or None,
        "timestamp": stored.timestamp,
        "contentType": told.type,
        "content": told.content,
        "tags": [{"key": key, "value": value} for key, value in told.tags],
    }
