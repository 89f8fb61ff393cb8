"""A log line becomes a whole LogData: time, service, endpoint, trace and level from its fields.

A line that a fetcher read, or that came over HTTP, is a LogData whose body is all there is to it.
What its fields say takes the place of what was assumed about it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, Final

from skyfarer.satellite.contracts import OnFailure, Unfit, Verdict
from skyfarer.satellite.processors.decoding import require_decoding
from skyfarer.satellite.processors.event import Context, Event
from skyfarer.satellite.processors.lines import Format, LineReader
from skyfarer.satellite.processors.places import LEVEL, LOGS, body_text

# A number of seconds, milliseconds, microseconds or nanoseconds since 1970: by its size.
_MILLISECONDS_FROM: Final = 1e11
_MICROSECONDS_FROM: Final = 1e14
_NANOSECONDS_FROM: Final = 1e17


@dataclass(frozen=True)
class LogConverterConfig:
    """Of each name list the first field that the line has is taken; none leaves it as it was."""

    format: Format = "json"  # json, or regex with a pattern
    pattern: str = ""  # its named groups are the fields; a regular expression as RE2 has them
    timestamp: tuple[str, ...] = ("timestamp", "@timestamp", "time", "ts")
    timestamp_format: str = ""  # as of strptime; empty: ISO 8601, or a number since 1970
    service: tuple[str, ...] = ("service",)
    service_instance: tuple[str, ...] = ("service_instance", "instance")
    endpoint: tuple[str, ...] = ("endpoint",)
    layer: tuple[str, ...] = ("layer",)
    level: tuple[str, ...] = ("level", "severity")  # becomes the tag `level`
    trace_id: tuple[str, ...] = ("trace_id", "traceId")
    segment_id: tuple[str, ...] = ("segment_id", "traceSegmentId")
    span_id: tuple[str, ...] = ("span_id", "spanId")
    message: tuple[str, ...] = ()  # becomes the body, instead of the whole line
    on_failure: OnFailure = "pass"  # what becomes of a log that is not of the format


class LogConverter:
    """A `Filter` of logs."""

    config_type: ClassVar = LogConverterConfig

    def __init__(self, config: LogConverterConfig) -> None:
        require_decoding("log-converter")
        self.on_failure = config.on_failure
        self._lines = LineReader("log-converter", config.format, config.pattern)
        self._config = config

    def verdict(self, kind: int) -> Verdict:
        return Verdict.LOOK if kind in LOGS else Verdict.PASS

    def apply(self, event: Event, context: Context) -> bool:
        log, config = event.message, self._config
        line = body_text(log)
        fields = self._lines.read(line)
        time_text, span_id = _first(fields, config.timestamp), _first(fields, config.span_id)
        timestamp_ms = _milliseconds(time_text, config.timestamp_format) if time_text else 0
        span = _whole(span_id) if span_id else 0
        event.changed()
        log.timestamp = timestamp_ms or log.timestamp
        log.service = _first(fields, config.service) or log.service
        log.serviceInstance = _first(fields, config.service_instance) or log.serviceInstance
        log.endpoint = _first(fields, config.endpoint) or log.endpoint
        log.layer = _first(fields, config.layer) or log.layer
        self._set_trace(log, fields, span)
        self._set_level(log, fields)
        self._set_body(log, fields, line)
        return True

    def _set_trace(self, log: Any, fields: dict[str, str], span_id: int) -> None:
        trace_id = _first(fields, self._config.trace_id)
        if trace_id:
            log.traceContext.traceId = trace_id
            log.traceContext.traceSegmentId = _first(fields, self._config.segment_id)
            log.traceContext.spanId = span_id

    def _set_level(self, log: Any, fields: dict[str, str]) -> None:
        level = _first(fields, self._config.level)
        if not level:
            return
        for tag in log.tags.data:
            if tag.key == LEVEL:
                tag.value = level
                return
        log.tags.data.add(key=LEVEL, value=level)

    def _set_body(self, log: Any, fields: dict[str, str], line: str) -> None:
        """A JSON line is one to the OAP's analysers only if its body says so."""
        message = _first(fields, self._config.message)
        if message:
            log.body.text.text = message
        elif self._config.format == "json":
            log.body.json.json = line


def _first(fields: dict[str, str], names: tuple[str, ...]) -> str:
    return next((fields[name] for name in names if name in fields), "")


def _whole(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) >= 2**31:
        raise Unfit("span_id", f"{text[:50]!r} is no number of a span")
    return int(text)


def _milliseconds(text: str, form: str) -> int:
    """A time without a zone is taken for UTC."""
    try:
        number = None if form else float(text)
    except ValueError:
        number = None
    try:
        if number is not None:
            return _scaled(number)
        moment = datetime.strptime(text, form) if form else datetime.fromisoformat(text)
        in_zone = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        milliseconds = int(in_zone.timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise Unfit("timestamp", f"{text[:50]!r} is no time: {error}") from error
    return milliseconds


def _scaled(number: float) -> int:
    if not 0 < number < 1e20:
        raise ValueError("out of range")
    if number < _MILLISECONDS_FROM:
        return int(number * 1000)
    if number < _MICROSECONDS_FROM:
        return int(number)
    return int(number / 1000 if number < _NANOSECONDS_FROM else number / 1_000_000)
