"""The map as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from skyfarer.ui.kinds import UNDEFINED
from skyfarer.ui.model import FAILING_BELOW_SLA, SLOW_FROM_MS


class State(Enum):
    """By its word, which stands at the node: colours are not seen by everybody."""

    GOOD = "good"
    SLOW = "slow"
    FAILING = "failing"


@dataclass(frozen=True)
class Vital:
    """Of the last full minute (hour, day) of the time; None where nothing was counted."""

    cpm: int | None = None
    resp_time_ms: int | None = None
    sla: int | None = None

    @property
    def failing(self) -> bool:
        return self.sla is not None and self.sla < FAILING_BELOW_SLA

    @property
    def slow(self) -> bool:
        return (self.resp_time_ms or 0) >= SLOW_FROM_MS

    @property
    def state(self) -> State:
        return State.FAILING if self.failing else State.SLOW if self.slow else State.GOOD


@dataclass(frozen=True)
class Node:
    id: str
    name: str
    type: str
    is_real: bool
    vital: Vital | None = Vital()
    """None of what nobody measures."""
    layers: tuple[str, ...] = ()

    @property
    def has_agent(self) -> bool:
        """An address that nobody answered for is taken for real, and has no layer."""
        return self.is_real and UNDEFINED not in self.layers

    @property
    def state(self) -> State:
        return State.GOOD if self.vital is None else self.vital.state


@dataclass(frozen=True)
class Call:
    id: str
    source: str
    target: str
    at_server: bool
    vital: Vital = Vital()


@dataclass(frozen=True)
class Map:
    """`hidden` nodes are more than can be drawn, and their calls are left out too; so are the
    `hidden_calls` of the others. Figures are of the last full `step`. `nobody`: whether no service
    has ever reported."""

    nodes: tuple[Node, ...]
    calls: tuple[Call, ...]
    hidden: int = 0
    hidden_calls: int = 0
    step: str = "minute"
    nobody: bool = False
