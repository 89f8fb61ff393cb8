"""Structured logs on standard error: one event, one line, whatever the message holds.

    time=2026-11-15T12:00:00.123Z level=INFO program=oap logger=skyfarer.wire.server message="…"

or the same keys as a JSON object. A call may add its own: `log.info("…", extra={"fields": {…}})`.
Line ends and control characters are escaped, tracebacks included, so that nothing an agent sends
can forge an event.
"""

from __future__ import annotations

import json as json_text
import logging
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, TextIO

from skyfarer.base.binding import nearest
from skyfarer.base.errors import ConfigError

LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")

_BARE = re.compile(r"[A-Za-z0-9_.:/+-]+\Z")


def configure(
    program: str, level: str = "INFO", json: bool = False, stream: TextIO | None = None
) -> None:
    """Takes over the root logger; called again, it replaces what it did before."""
    if level.upper() not in LEVELS:
        raise ConfigError(f"there is no log level '{level}'{nearest(level, LEVELS)}")
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_Lines(program, json))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


class _Lines(logging.Formatter):
    def __init__(self, program: str, json: bool) -> None:
        super().__init__()
        self._program = program
        self._json = json

    def format(self, record: logging.LogRecord) -> str:
        event = self._event(record)
        if self._json:
            return json_text.dumps(event, default=str)
        return " ".join(f"{key}={_value(value)}" for key, value in event.items())

    def _event(self, record: logging.LogRecord) -> dict[str, object]:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        event: dict[str, object] = {
            "time": moment.replace("+00:00", "Z"),
            "level": record.levelname,
            "program": self._program,
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields = getattr(record, "fields", None)
        if isinstance(fields, Mapping):
            event.update({key: value for key, value in fields.items() if key not in event})
        if record.exc_info:
            event["exception"] = self.formatException(record.exc_info)
        return event


def _value(value: object) -> str:
    text = str(value)
    return text if _BARE.match(text) else json_text.dumps(text)
