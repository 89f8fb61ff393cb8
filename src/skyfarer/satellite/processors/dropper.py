"""Drops records by condition.

    drop:
      - kind: [segment]
        endpoint: ["GET:/health*", "/actuator/*"]
        error: false
      - kind: [log]
        level: [debug, trace]

A record is dropped when one of the rules holds; a rule holds when each of its keys does; a key does
when one of its values fits: `*` is any text, `?` one character, and a value after `!` must not fit.
A key that asks for what a record does not have (the endpoint of a meter) does not hold. A rule with
`kind` alone is decided without a look into the record.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Final

from skyfarer.base.binding import nearest
from skyfarer.base.errors import ConfigError
from skyfarer.satellite.contracts import OnFailure, Verdict
from skyfarer.satellite.notation import seconds
from skyfarer.satellite.processors.decoding import DECODABLE, require_decoding
from skyfarer.satellite.processors.event import Context, Event
from skyfarer.satellite.processors.facts import FACTS, failed, tag_values, took_ms
from skyfarer.satellite.processors.globs import Globs
from skyfarer.wire.rpc import Kind

RULES_MAX: Final = 50
TAGS_MAX: Final = 20
KINDS: Final = {kind.name.lower(): kind for kind in Kind if kind is not Kind.NONE}


@dataclass(frozen=True)
class DropConfig:
    """All keys that are given must hold."""

    kind: tuple[str, ...] = ()  # segment, log, meter, …; empty is every kind
    service: tuple[str, ...] = ()
    instance: tuple[str, ...] = ()
    endpoint: tuple[str, ...] = ()  # of a segment the operations it was entered by
    layer: tuple[str, ...] = ()
    level: tuple[str, ...] = ()  # of a log: its tag `level`, in capitals or not
    message: tuple[str, ...] = ()  # the body of a log, the message of an event
    tags: dict[str, tuple[str, ...]] = field(default_factory=dict)  # key: values
    error: bool | None = None  # whether a span of the segment, or the event, is an error
    faster_than: str = ""  # segments that took less than this

    def __post_init__(self) -> None:
        for name in self.kind:
            if name not in KINDS:
                raise ValueError(f"kind is '{name}'{nearest(name, KINDS)}")
        if len(self.tags) > TAGS_MAX:
            raise ValueError(f"tags are at most {TAGS_MAX}")
        if self.faster_than:
            seconds(self.faster_than)
        if all(getattr(self, key.name) in ((), {}, "", None) for key in fields(self)):
            raise ValueError("a rule without a key would drop everything")


@dataclass(frozen=True)
class DropperConfig:
    drop: tuple[DropConfig, ...]  # a record that one of these fits is dropped
    on_failure: OnFailure = "pass"  # what becomes of a record that cannot be read

    def __post_init__(self) -> None:
        if not 1 <= len(self.drop) <= RULES_MAX:
            raise ValueError(f"drop must have from 1 to {RULES_MAX} rules")


class Dropper:
    """A `Filter`."""

    config_type: ClassVar = DropperConfig

    def __init__(self, config: DropperConfig) -> None:
        self.on_failure = config.on_failure
        try:
            self._rules = [Rule(one) for one in config.drop]
        except ValueError as error:
            raise ConfigError(f"dropper: {error}") from error
        if any(rule.looks for rule in self._rules):
            require_decoding("dropper")

    def verdict(self, kind: int) -> Verdict:
        rules = [rule for rule in self._rules if rule.concerns(kind)]
        if any(not rule.looks for rule in rules):
            return Verdict.DROP
        return Verdict.LOOK if rules else Verdict.PASS

    def apply(self, event: Event, context: Context) -> bool:
        message, kind = event.message, event.kind
        return not any(rule.concerns(kind) and rule.holds(kind, message) for rule in self._rules)


class Rule:
    """One rule at work; ValueError for values that are too many or too long."""

    def __init__(self, config: DropConfig) -> None:
        self._kinds = frozenset(KINDS[name] for name in config.kind)
        self._facts = [
            (fact, Globs(getattr(config, name), ignore_case=name == "level"))
            for name, fact in FACTS.items()
            if getattr(config, name)
        ]
        self._tags = [(key, Globs(values)) for key, values in config.tags.items()]
        self._error = config.error
        self._faster_ms = seconds(config.faster_than) * 1000 if config.faster_than else None
        others = self._error is not None or self._faster_ms is not None
        self.looks = bool(self._facts or self._tags) or others

    def concerns(self, kind: int) -> bool:
        wanted = not self._kinds or kind in self._kinds
        return wanted and (not self.looks or kind in DECODABLE)

    def holds(self, kind: int, message: Any) -> bool:
        if self._error is not None and failed(kind, message) is not self._error:
            return False
        if self._faster_ms is not None:
            took = took_ms(kind, message)
            if took is None or took >= self._faster_ms:
                return False
        return all(globs.match_any(fact(kind, message)) for fact, globs in self._facts) and all(
            globs.match_any(tag_values(kind, message, key)) for key, globs in self._tags
        )
