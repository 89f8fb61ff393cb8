"""Where tags and texts stand in each kind of message.

Tags are lists of pairs; a meter's are its labels, whose keys are called names. A text is a holder
and the name of its field, so that it can be read and written the same way wherever it is.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any, Final, Literal

from skyfarer.wire.rpc import Kind

Where = Literal["tags", "logs", "body", "endpoint", "peer"]
WHERES: Final[tuple[Where, ...]] = ("tags", "logs", "body", "endpoint", "peer")

SPANS: Final = frozenset({Kind.SEGMENT, Kind.SPAN_ATTACHED_EVENT})
LOGS: Final = frozenset({Kind.LOG})
METERS: Final = frozenset({Kind.METER, Kind.METER_COLLECTION})
PROPERTIES: Final = frozenset({Kind.INSTANCE_PROPERTIES})
TAGGED: Final = SPANS | LOGS | METERS | PROPERTIES
WITH_TEXTS: Final = TAGGED | {Kind.EVENT, Kind.BROWSER_ERROR}
# Full of texts, and not decoded here.
OPAQUE: Final = frozenset(
    {
        Kind.V2_SEGMENT,
        Kind.OTLP_TRACES,
        Kind.OTLP_METRICS,
        Kind.OTLP_LOGS,
        Kind.ENVOY_ACCESS_LOG,
        Kind.EBPF_ACCESS_LOG,
        Kind.MESH_METRICS,
        Kind.PROFILE_SNAPSHOT,
    }
)

LEVEL: Final = "level"  # the tag of a log that says how bad it is

Text = tuple[Any, str]


class _Parameter:
    """An entry of a map as if it were a pair."""

    __slots__ = ("_key", "_values")

    def __init__(self, values: MutableMapping[str, str], key: str) -> None:
        self._values = values
        self._key = key

    @property
    def value(self) -> str:
        return self._values[self._key]

    @value.setter
    def value(self, value: str) -> None:
        self._values[self._key] = value


def tag_lists(kind: int, message: Any) -> Iterator[tuple[Any, str]]:
    """Each list of tags with the name of their key's field; the value's is always `value`."""
    if kind == Kind.SEGMENT:
        for span in message.spans:
            yield span.tags, "key"
    elif kind == Kind.SPAN_ATTACHED_EVENT:
        yield message.tags, "key"
    elif kind == Kind.LOG:
        yield message.tags.data, "key"
    elif kind == Kind.INSTANCE_PROPERTIES:
        yield message.properties, "key"
    elif kind in METERS:
        for meter in meters(kind, message):
            metric = meter.WhichOneof("metric")
            if metric is not None:
                yield getattr(meter, metric).labels, "name"


def meters(kind: int, message: Any) -> Any:
    return message.meterData if kind == Kind.METER_COLLECTION else (message,)


def tagged_texts(kind: int, message: Any) -> Iterator[tuple[str, Text]]:
    """The values of all tags, each with its key; an event's are its parameters."""
    if kind == Kind.EVENT:
        for name in list(message.parameters):
            yield name, (_Parameter(message.parameters, name), "value")
    for tags, key in tag_lists(kind, message):
        for tag in tags:
            yield getattr(tag, key), (tag, "value")


def other_texts(kind: int, message: Any, where: Where) -> Iterator[Text]:
    """The texts of that sort, which is any but `tags`."""
    if kind == Kind.SEGMENT:
        for span in message.spans:
            yield from _of_span(span, where)
    elif kind == Kind.LOG:
        if where == "endpoint":
            yield message, "endpoint"
        elif where == "body" and (content := message.body.WhichOneof("content")) is not None:
            yield getattr(message.body, content), content
    elif kind == Kind.EVENT:
        if where == "endpoint":
            yield message.source, "endpoint"
        elif where == "body":
            yield message, "message"
    elif kind == Kind.BROWSER_ERROR and where == "body":
        yield message, "message"
        yield message, "stack"


def _of_span(span: Any, where: Where) -> Iterator[Text]:
    if where == "logs":
        for entry in span.logs:
            for pair in entry.data:
                yield pair, "value"
    elif where == "endpoint":
        yield span, "operationName"
    elif where == "peer":
        yield span, "peer"


def duration_ms(spans: Sequence[Any]) -> int:
    """From the first start to the last end, of one span at least."""
    return int(max([span.endTime for span in spans]) - min([span.startTime for span in spans]))


def body_text(message: Any) -> str:
    """The body of a LogData, whatever it claims to be; empty when it has none."""
    content = message.body.WhichOneof("content")
    return str(getattr(getattr(message.body, content), content)) if content is not None else ""
