"""What an agent is told of the tasks in storage, in SkyWalking's words.

Agents ask every few seconds, each of them, and most of the time nothing has changed: so storage is
read at most every REFRESH_S, whoever asks, and what was written shows at every node by then.

An agent says which settings it has by their digest. It is told new ones with theirs, and when there
are none any more, that there are none: then it goes back to its own. Who never had any is told
nothing. A profile task is told to whoever was told of none so late, until it is over.
"""

from __future__ import annotations

import hashlib
import json
import threading
import uuid
from collections.abc import Mapping, Sequence
from typing import Final

from skyfarer.base.clock import Clock
from skyfarer.oap.core.tasks import (
    AgentCommand,
    AgentSettings,
    ProfileTask,
    TaskKind,
    TaskQuery,
    TaskTables,
)

REFRESH_S: Final = 3.0


class StoredTasks:
    """A `TaskReader`. Any thread; blocks on storage, one at a time."""

    def __init__(self, tables: TaskTables, clock: Clock) -> None:
        self._tables = tables
        self._clock = clock
        self._lock = threading.Lock()
        self._read_s: float | None = None
        self._settings: AgentSettings = {}
        self._profiles: Mapping[str, Sequence[ProfileTask]] = {}

    def commands(self, query: TaskQuery) -> Sequence[AgentCommand]:
        self._refresh()
        if query.kind is TaskKind.CONFIGURATION:
            return _settings(self._settings.get(query.service, {}), query.digest)
        if query.kind is TaskKind.PROFILE:
            now_ms, known_ms = self._clock.now_ms(), query.after_ms
            return [
                _profile(task)
                for task in self._profiles.get(query.service, ())
                if task.created_ms > known_ms and task.end_ms > now_ms
            ]
        return ()

    def _refresh(self) -> None:
        with self._lock:
            now_s = self._clock.monotonic_s()
            if self._read_s is not None and now_s - self._read_s < REFRESH_S:
                return
            profiles: dict[str, list[ProfileTask]] = {}
            for task in self._tables.profile_tasks(self._clock.now_ms()):
                profiles.setdefault(task.service, []).append(task)
            self._settings, self._profiles = self._tables.agent_settings(), profiles
            self._read_s = now_s


def digest(settings: Mapping[str, str]) -> str:
    """The same for the same settings on every node and in every version: agents compare it."""
    text = json.dumps(sorted(settings.items()), separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _settings(settings: Mapping[str, str], known: str) -> Sequence[AgentCommand]:
    current = digest(settings)
    if known == current or not (settings or known):
        return ()
    pairs = sorted(settings.items())
    return [AgentCommand("ConfigurationDiscoveryCommand", (_serial(), ("UUID", current), *pairs))]


def _profile(task: ProfileTask) -> AgentCommand:
    return AgentCommand(
        "ProfileTaskQuery",
        (
            _serial(),
            ("TaskId", task.id),
            ("EndpointName", task.endpoint),
            ("Duration", str(task.duration_min)),
            ("MinDurationThreshold", str(task.threshold_ms)),
            ("DumpPeriod", str(task.dump_period_ms)),
            ("MaxSamplingCount", str(task.samples_max)),
            ("StartTime", str(task.start_ms)),
            ("CreateTime", str(task.created_ms)),
        ),
    )


def _serial() -> tuple[str, str]:
    return "SerialNumber", str(uuid.uuid4())
