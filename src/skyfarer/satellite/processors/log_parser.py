"""Takes fields out of the body of a log and makes them tags, by which logs can be searched."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final

from skyfarer.satellite.contracts import OnFailure, Verdict
from skyfarer.satellite.processors.decoding import require_decoding
from skyfarer.satellite.processors.event import Context, Event
from skyfarer.satellite.processors.globs import Globs
from skyfarer.satellite.processors.lines import Format, LineReader
from skyfarer.satellite.processors.places import LOGS, body_text

TAGS_MAX: Final = 100


@dataclass(frozen=True)
class LogParserConfig:
    format: Format = "json"  # json, or regex with a pattern
    pattern: str = ""  # its named groups are the fields; a regular expression as RE2 has them
    fields: tuple[str, ...] = ("*",)  # those that become tags, with * and ?; ! before one leaves it
    rename: dict[str, str] = field(default_factory=dict)  # field: tag
    prefix: str = ""  # of every tag that is not renamed
    value_characters_max: int = 256  # a longer value is cut
    on_failure: OnFailure = "pass"  # what becomes of a log that is not of the format

    def __post_init__(self) -> None:
        if self.value_characters_max < 1:
            raise ValueError("value_characters_max must be above 0")


class LogParser:
    """A `Filter` of logs. A tag that is there already is left as it is."""

    config_type: ClassVar = LogParserConfig

    def __init__(self, config: LogParserConfig) -> None:
        require_decoding("log-parser")
        self.on_failure = config.on_failure
        self._lines = LineReader("log-parser", config.format, config.pattern)
        self._fields = Globs(config.fields)
        self._config = config

    def verdict(self, kind: int) -> Verdict:
        return Verdict.LOOK if kind in LOGS else Verdict.PASS

    def apply(self, event: Event, context: Context) -> bool:
        message, config = event.message, self._config
        fields = self._lines.read(body_text(message))
        tags = message.tags.data
        present = {tag.key for tag in tags}
        for name, value in fields.items():
            key = config.rename.get(name, config.prefix + name)
            if self._fields.match_name(name) and key not in present and len(present) < TAGS_MAX:
                tags.add(key=key, value=value[: config.value_characters_max])
                present.add(key)
                event.changed()
        return True
