"""Random traffic in bulk: hypothesis makes it, and all of it is analysed at once.

A Spark job an example would take minutes, so the examples are gathered first. Each group of
segments has an hour of its own, by which a difference finds back to the segments that made it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, given, settings

from golden.scripts import FIRST_DAY
from skyfarer.testing.random_segments import groups
from skyfarer.wire.messages import SegmentObject

FIRST_HOUR = (FIRST_DAY + 1_000) * 24
HOUR_MINUTES = 60
HOUR_MS = HOUR_MINUTES * 60_000


@dataclass(frozen=True)
class Traffic:
    groups: Sequence[Sequence[SegmentObject]]

    @property
    def segments(self) -> list[SegmentObject]:
        return [segment for group in self.groups for segment in group]

    def of(self, minute: int) -> Sequence[SegmentObject]:
        """The group that has this minute; none of ours, none."""
        number = minute // HOUR_MINUTES - FIRST_HOUR
        return self.groups[number] if 0 <= number < len(self.groups) else ()


def random_traffic(count: int) -> Traffic:
    """The same every time: `count` groups."""
    found: list[list[SegmentObject]] = []

    @settings(
        max_examples=count,
        deadline=None,
        phases=[Phase.generate],
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(groups(FIRST_HOUR * HOUR_MS))
    def gather(group: list[SegmentObject]) -> None:
        found.append(later(group, len(found) * HOUR_MS))

    gather()
    return Traffic(found)


def later(group: list[SegmentObject], by_ms: int) -> list[SegmentObject]:
    moved = []
    for one in group:
        copy = SegmentObject()
        copy.CopyFrom(one)
        for span in copy.spans:
            span.startTime += by_ms
            span.endTime += by_ms
        moved.append(copy)
    return moved
