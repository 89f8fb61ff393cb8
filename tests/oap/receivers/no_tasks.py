"""An OAP in which nobody has asked an agent for anything."""

from __future__ import annotations

from collections.abc import Sequence

from skyfarer.oap.core.tasks import AgentCommand, TaskQuery


class NothingConfigured:
    """A `TaskReader`."""

    def commands(self, _query: TaskQuery) -> Sequence[AgentCommand]:
        return ()
