"""Replaces what matches a pattern: card numbers, tokens, addresses, in tags, logs and bodies.

A record is first searched as it is, bytes of the wire between its texts and all, by the pattern
without its edges: most match nothing, and then nothing was decoded. Next come all its texts at
once, on lines of their own, and only then each text by itself. A record of a kind that cannot be
looked into passes as it is, which is said once in the log.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from skyfarer.base.errors import ConfigError
from skyfarer.satellite.contracts import OnFailure, Verdict
from skyfarer.satellite.processors.decoding import require_decoding
from skyfarer.satellite.processors.event import Context, Event
from skyfarer.satellite.processors.globs import Globs
from skyfarer.satellite.processors.patterns import compile_pattern, line_by_line, without_edges
from skyfarer.satellite.processors.places import (
    OPAQUE,
    WITH_TEXTS,
    Text,
    Where,
    other_texts,
    tagged_texts,
)
from skyfarer.wire.rpc import Kind

log = logging.getLogger(__name__)

RULES_MAX: Final = 50


@dataclass(frozen=True)
class RedactionConfig:
    """One pattern, the text that takes the place of each match, and where it is looked for."""

    pattern: str  # a regular expression as RE2 has them
    replacement: str = "***"  # as it is: \1 means nothing here
    where: tuple[Where, ...] = ("tags", "logs", "body")  # and endpoint, peer
    tags: tuple[str, ...] = ("*",)  # the keys of the tags that are looked at, with * and ?


@dataclass(frozen=True)
class RedactorConfig:
    rules: tuple[RedactionConfig, ...]  # applied in this order
    on_failure: OnFailure = "drop"  # what becomes of a record that cannot be read

    def __post_init__(self) -> None:
        if not 1 <= len(self.rules) <= RULES_MAX:
            raise ValueError(f"rules must be from 1 to {RULES_MAX}")


class Redactor:
    """A `Filter`. A record in which nothing matches keeps its bytes."""

    config_type: ClassVar = RedactorConfig

    def __init__(self, config: RedactorConfig) -> None:
        require_decoding("redactor")
        self.on_failure = config.on_failure
        self._rules = [Redaction(rule) for rule in config.rules]

    def verdict(self, kind: int) -> Verdict:
        if kind in OPAQUE:
            log.warning("redactor: records of kind %s pass as they are", Kind(kind).name)
        return Verdict.LOOK if kind in WITH_TEXTS else Verdict.PASS

    def apply(self, event: Event, context: Context) -> bool:
        raw = bytes(event.encoded())
        changed = False
        for rule in self._rules:
            # A rule before it may have written what this one is looking for.
            if (changed or rule.may_match(raw)) and rule.redact(event.kind, event.message):
                event.changed()
                changed = True
        return True


class Redaction:
    """One rule at work."""

    def __init__(self, config: RedactionConfig) -> None:
        try:
            self._pattern = compile_pattern(config.pattern)
            self._in_bytes = without_edges(config.pattern)
            self._in_lines = line_by_line(config.pattern)
            self._tags = Globs(config.tags) if "tags" in config.where else None
        except ValueError as error:
            raise ConfigError(f"redactor: tags: {error}") from error
        if self._pattern.search("") is not None:
            raise ConfigError(f"redactor: pattern {config.pattern!r} matches where nothing is")
        self._replacement = config.replacement
        self._others = [where for where in config.where if where != "tags"]

    def may_match(self, raw: bytes) -> bool:
        return self._in_bytes is None or self._in_bytes.search(raw) is not None

    def redact(self, kind: int, message: Any) -> bool:
        """Whether anything was replaced."""
        places = list(self._places(kind, message))
        texts = [getattr(holder, name) for holder, name in places]
        if self._in_lines is not None and self._in_lines.search("\n".join(texts)) is None:
            return False
        found = False
        for (holder, name), text in zip(places, texts, strict=True):
            replaced, count = self._pattern.subn(lambda _: self._replacement, text)
            if count:
                setattr(holder, name, replaced)
                found = True
        return found

    def _places(self, kind: int, message: Any) -> Iterator[Text]:
        if self._tags is not None:
            for key, place in tagged_texts(kind, message):
                if self._tags.match_name(key):
                    yield place
        for where in self._others:
            yield from other_texts(kind, message, where)
