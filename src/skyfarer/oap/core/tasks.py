"""What there may be for an agent to do: settings to take over, profiles to make."""

from __future__ import annotations

from collections.abc import Sequence
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


class NothingConfigured:
    """A `TaskReader` of an OAP in which no task can be made yet."""

    def commands(self, _query: TaskQuery) -> Sequence[AgentCommand]:
        return ()
