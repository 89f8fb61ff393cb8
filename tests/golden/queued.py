"""Random traffic as a queue has it: late, too late, ahead of its time, and some of it repeated.

Hypothesis makes it, in batches. A group of segments is of one batch and has an hour of its own, so
that nothing depends on which of two claims of one minute comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from golden.traffic import HOUR_MS, later
from skyfarer.testing.random_segments import groups
from skyfarer.wire.messages import SegmentObject

Group: TypeAlias = list[SegmentObject]

BATCHES = 3
HOURS = 150
"""Of the past that timely groups are of: some of each of seven days."""
STEP = 37
"""No hour is taken twice, as HOURS and this have no common divisor."""
EDGE_MS = 90_000
"""Half of a group is before the edge of what is taken, and half of it after."""


@dataclass(frozen=True)
class Window:
    """What is taken, in epoch ms, both ends included."""

    oldest_ms: int
    now_ms: int
    newest_ms: int

    def start_ms(self, number: int) -> int:
        """Of a group: the first are at the edges, and of eight one is too late and one too soon."""
        edges = (self.oldest_ms, self.newest_ms)
        if number < len(edges):
            return edges[number] - EDGE_MS
        if number % 8 == 0:
            return self.oldest_ms - (24 + number) * HOUR_MS
        if number % 8 == 1:
            return self.now_ms + (1 + number) * HOUR_MS
        return self.now_ms - (1 + number * STEP % HOURS) * HOUR_MS


def random_queue(count: int, window: Window) -> list[list[SegmentObject]]:
    """The same every time: the batches of `count` groups, at most HOURS."""
    batches: list[list[SegmentObject]] = [[] for _ in range(BATCHES)]
    again: list[list[SegmentObject]] = [[] for _ in range(BATCHES)]
    made = 0

    @settings(
        max_examples=count,
        deadline=None,
        phases=[Phase.generate],
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(groups(0), st.lists(st.integers(0, BATCHES - 1), max_size=2))
    def gather(group: Group, repeats: Sequence[int]) -> None:
        nonlocal made
        batch = made % BATCHES
        told = _named(later(group, window.start_ms(made)), made)
        batches[batch] += told
        for other in repeats:
            again[max(batch, other)].append(told[other % len(told)])
        made += 1

    gather()
    return [[*new, *old] for new, old in zip(batches, again, strict=True)]


def _named(group: Group, number: int) -> Group:
    """Each with an id of its own; one that comes again in the group has the same."""
    texts = [one.SerializeToString() for one in group]
    for one, text in zip(group, texts, strict=True):
        place = texts.index(text)
        one.traceSegmentId, one.traceId = f"s-{number}-{place}", f"trace-{number}-{place}"
    return group
