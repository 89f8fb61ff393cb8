"""Makes a meter of a number in a log line, beside the log: what a line says once can be drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from skyfarer.satellite.contracts import OnFailure, Unfit, Verdict
from skyfarer.satellite.processors.decoding import message_type, require_decoding
from skyfarer.satellite.processors.event import Context, Event
from skyfarer.satellite.processors.lines import Format, LineReader
from skyfarer.satellite.processors.places import LOGS, body_text
from skyfarer.wire.rpc import Kind

LABELS_MAX: Final = 10


@dataclass(frozen=True)
class MeterConverterConfig:
    name: str  # of the meter
    value: str  # the field whose number it has
    labels: tuple[str, ...] = ()  # fields that become its labels
    format: Format = "json"  # json, or regex with a pattern
    pattern: str = ""  # its named groups are the fields; a regular expression as RE2 has them
    on_failure: OnFailure = "pass"  # what becomes of a log that is not of the format

    def __post_init__(self) -> None:
        if not self.name or not self.value or len(self.labels) > LABELS_MAX:
            raise ValueError(f"name and value must be given, labels be at most {LABELS_MAX}")


class MeterConverter:
    """A `Filter` of logs, which it leaves as they are. A line without the field makes no meter."""

    config_type: ClassVar = MeterConverterConfig

    def __init__(self, config: MeterConverterConfig) -> None:
        require_decoding("meter-converter")
        self.on_failure = config.on_failure
        self._lines = LineReader("meter-converter", config.format, config.pattern)
        self._config = config

    def verdict(self, kind: int) -> Verdict:
        return Verdict.LOOK if kind in LOGS else Verdict.PASS

    def apply(self, event: Event, context: Context) -> bool:
        fields = self._lines.read(body_text(event.message))
        text = fields.get(self._config.value)
        if text is not None:
            context.emit(Kind.METER_COLLECTION, self._meter(event.message, fields, _number(text)))
        return True

    def _meter(self, log: Any, fields: dict[str, str], value: float) -> Any:
        collection = message_type(Kind.METER_COLLECTION)()
        meter = collection.meterData.add(
            service=log.service, serviceInstance=log.serviceInstance, timestamp=log.timestamp
        )
        meter.singleValue.name = self._config.name
        meter.singleValue.value = value
        for name in self._config.labels:
            meter.singleValue.labels.add(name=name, value=fields.get(name, ""))
        return collection


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError as error:
        raise Unfit("no_number", f"{text[:50]!r} is no number") from error
    if not math.isfinite(number):
        raise Unfit("no_number", f"{text[:50]!r} is no number to draw")
    return number
