"""What a condition may ask of a record, by kind; a record without such a thing has no values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from skyfarer.satellite.processors.places import (
    LEVEL,
    body_text,
    duration_ms,
    meters,
    tagged_texts,
)
from skyfarer.wire.rpc import Kind

_ENTRY: Final = 0  # of SpanType

Fact = Callable[[int, Any], list[str]]


def services(kind: int, message: Any) -> list[str]:
    return [one.service for one in _owners(kind, message) if hasattr(one, "service")]


def instances(kind: int, message: Any) -> list[str]:
    owners = _owners(kind, message)
    return [one.serviceInstance for one in owners if hasattr(one, "serviceInstance")]


def endpoints(kind: int, message: Any) -> list[str]:
    """Of a segment the operations it was entered by."""
    if kind == Kind.SEGMENT:
        return [span.operationName for span in message.spans if span.spanType == _ENTRY]
    if kind == Kind.BROWSER_PAGE or kind == Kind.BROWSER_ERROR:
        return [message.pagePath]
    return [one.endpoint for one in _owners(kind, message) if hasattr(one, "endpoint")]


def layers(kind: int, message: Any) -> list[str]:
    return [message.layer] if hasattr(message, "layer") else []


def levels(kind: int, message: Any) -> list[str]:
    return tag_values(kind, message, LEVEL) if kind == Kind.LOG else []


def texts(kind: int, message: Any) -> list[str]:
    """The body of a log, the message of an event."""
    if kind == Kind.LOG:
        return [body_text(message)]
    return [message.message] if kind in (Kind.EVENT, Kind.BROWSER_ERROR) else []


def tag_values(kind: int, message: Any, key: str) -> list[str]:
    found = tagged_texts(kind, message)
    return [getattr(holder, name) for tag, (holder, name) in found if tag == key]


def failed(kind: int, message: Any) -> bool | None:
    """None where there is no such thing as an error."""
    if kind == Kind.SEGMENT:
        return any(span.isError for span in message.spans)
    return bool(message.type) if kind == Kind.EVENT else None


def took_ms(kind: int, message: Any) -> int | None:
    return duration_ms(message.spans) if kind == Kind.SEGMENT and message.spans else None


def _owners(kind: int, message: Any) -> Any:
    if kind == Kind.EVENT:
        return (message.source,)
    return meters(kind, message)[:1] if kind == Kind.METER_COLLECTION else (message,)


FACTS: Final[Mapping[str, Fact]] = {
    "service": services,
    "instance": instances,
    "endpoint": endpoints,
    "layer": layers,
    "level": levels,
    "message": texts,
}
