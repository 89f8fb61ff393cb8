"""`settings.list`, `settings.apply`, `profile.list` and `profile.create`: what agents are to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from skyfarer.base.clock import Clock
from skyfarer.base.errors import PermanentError
from skyfarer.oap.admin.door import Answers, Verb
from skyfarer.oap.core.tasks import AgentSettings, ProfileTask, TaskTables

SERVICES_MAX: Final = 10_000
KEYS_MAX: Final = 100
"""Of one service."""


class TaskDesk:
    """Any thread."""

    def __init__(self, tables: TaskTables, clock: Clock) -> None:
        self._tables = tables
        self._clock = clock

    @property
    def verbs(self) -> Mapping[str, Verb]:
        return {
            "settings.list": self.settings,
            "settings.apply": self.apply,
            "profile.list": self.profiles,
            "profile.create": self.create,
        }

    def settings(self, _question: Mapping[str, Any]) -> Answers:
        yield {"settings": self._tables.agent_settings()}

    def apply(self, question: Mapping[str, Any]) -> Answers:
        settings = _settings(question.get("settings"))
        self._tables.replace_agent_settings(settings)
        yield {"services": len(settings)}

    def profiles(self, question: Mapping[str, Any]) -> Answers:
        since_ms = 0 if question.get("all") else self._clock.now_ms()
        for task in self._tables.profile_tasks(since_ms):
            yield {"task": asdict(task)}

    def create(self, question: Mapping[str, Any]) -> Answers:
        now_ms = self._clock.now_ms()
        start_ms = _whole(question, "start_ms") or now_ms
        task = ProfileTask(
            id="",
            service=_text(question, "service"),
            endpoint=_text(question, "endpoint"),
            start_ms=start_ms,
            duration_min=_whole(question, "duration_min"),
            threshold_ms=_whole(question, "threshold_ms"),
            dump_period_ms=_whole(question, "dump_period_ms"),
            samples_max=_whole(question, "samples_max"),
            created_ms=now_ms,
        )
        problem = task.problem() or ("it would be over already" if task.end_ms <= now_ms else "")
        if problem:
            raise PermanentError(problem)
        yield {"task": asdict(self._tables.add_profile_task(task))}


def _settings(value: Any) -> AgentSettings:
    if not isinstance(value, dict) or len(value) > SERVICES_MAX:
        raise PermanentError(f"settings are of at most {SERVICES_MAX} services")
    for service, pairs in value.items():
        texts = isinstance(pairs, dict) and all(isinstance(one, str) for one in pairs.values())
        if not texts or not service or len(pairs) > KEYS_MAX:
            raise PermanentError(f"a service has at most {KEYS_MAX} settings, each a text")
    return value


def _text(question: Mapping[str, Any], key: str) -> str:
    value = question.get(key)
    if not isinstance(value, str):
        raise PermanentError(f'"{key}" must be text')
    return value


def _whole(question: Mapping[str, Any], key: str) -> int:
    value = question.get(key)
    if not isinstance(value, int) or not 0 <= value < 1 << 53:
        raise PermanentError(f'"{key}" must be a number')
    return value
