"""What there may be for an agent to do: settings to take over, profiles to make.

TaskTables    where storage keeps it
TaskReader    what an agent is told of it (`oap.core.told`)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol


class TaskKind(Enum):
    CONFIGURATION = "configuration"
    PROFILE = "profile"
    ASYNC_PROFILER = "async-profiler"
    PPROF = "pprof"
    EBPF_PROFILING = "ebpf-profiling"
    CONTINUOUS_PROFILING = "continuous-profiling"


@dataclass(frozen=True)
class TaskQuery:
    """Who asks, and what it knows: tasks until `after_ms`, the settings whose digest is `digest`.

    What a protocol does not say is empty.
    """

    kind: TaskKind
    service: str = ""
    instance: str = ""
    after_ms: int = 0
    digest: str = ""


@dataclass(frozen=True)
class AgentCommand:
    """In SkyWalking's words: `ProfileTaskQuery` and its arguments in order."""

    name: str
    arguments: tuple[tuple[str, str], ...] = ()


class TaskReader(Protocol):
    """Any thread; may block on storage."""

    def commands(self, query: TaskQuery) -> Sequence[AgentCommand]:
        """What the agent has not been told yet; nothing for most, most of the time."""


DURATION_MIN_MAX = 15
DUMP_PERIOD_MS_MIN = 10
SAMPLES_MAX = 9
NAME_CHARACTERS_MAX = 512
"""SkyWalking's own bounds, the last one ours: agents refuse or cut what exceeds them."""


@dataclass(frozen=True)
class ProfileTask:
    """Stacks of the requests to an endpoint that take longer than `threshold_ms`, dumped every
    `dump_period_ms`, of at most `samples_max` requests in each instance."""

    id: str
    service: str
    endpoint: str
    start_ms: int
    duration_min: int
    threshold_ms: int
    dump_period_ms: int
    samples_max: int
    created_ms: int

    @property
    def end_ms(self) -> int:
        return self.start_ms + self.duration_min * 60_000

    def problem(self) -> str:
        """Why no agent could do it; empty if one can."""
        if not 0 < len(self.service) <= NAME_CHARACTERS_MAX:
            return f"a service has 1 to {NAME_CHARACTERS_MAX} characters"
        if not 0 < len(self.endpoint.strip()) <= NAME_CHARACTERS_MAX:
            return f"an endpoint has 1 to {NAME_CHARACTERS_MAX} characters"
        if not 0 < self.duration_min <= DURATION_MIN_MAX:
            return f"a task lasts 1 to {DURATION_MIN_MAX} minutes"
        if self.threshold_ms < 0:
            return "the threshold is 0 ms or more"
        if self.dump_period_ms < DUMP_PERIOD_MS_MIN:
            return f"stacks are dumped every {DUMP_PERIOD_MS_MIN} ms at most"
        if not 0 < self.samples_max <= SAMPLES_MAX:
            return f"1 to {SAMPLES_MAX} requests are profiled"
        return ""


AgentSettings = Mapping[str, Mapping[str, str]]
"""Service → key → value, in the agent's own words: `trace.ignore_path`."""


class TaskTables(Protocol):
    """Any thread; may block on storage. What is written is durable on return."""

    def agent_settings(self) -> AgentSettings:
        """Empty when nothing is configured."""

    def replace_agent_settings(self, settings: AgentSettings) -> None:
        """All of them, in one transaction: a service that is not among them has none."""

    def profile_tasks(self, ending_after_ms: int) -> list[ProfileTask]:
        """By creation."""

    def add_profile_task(self, task: ProfileTask) -> ProfileTask:
        """As it is stored: later created, if the service has one of the same millisecond, since an
        agent asks by that time. PermanentError when another one of the service is under way then:
        agents do one at a time."""
