"""Stacks of one or several requests as trees: one a first frame, as SkyWalking draws them.

An element lasts from the first to the last of a request's dumps that have it without a gap, all
such runs together; one that was seen in a single dump lasts 0 ms. (The original also measures from
a dump of one request to the next of another.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from skyfarer.oap.query.traces.span import View, name, whole

NO_PARENT = 0


@dataclass(frozen=True, order=True)
class Stack:
    """One dump of a request: its segment, its number, its time, and its frames from the outermost
    on."""

    segment_id: str
    sequence: int
    time_ms: int
    frames: tuple[str, ...] = field(compare=False)


@dataclass
class _Element:
    frame: str
    dumps: list[Stack] = field(default_factory=list)
    children: dict[str, _Element] = field(default_factory=dict)

    def child(self, frame: str) -> _Element:
        return self.children.setdefault(frame, _Element(frame))

    def duration_ms(self) -> int:
        dumps, total = sorted(self.dumps), 0
        for before, after in pairwise(dumps):
            follows = before.sequence + 1 == after.sequence
            if follows and before.segment_id == after.segment_id:
                total += after.time_ms - before.time_ms
        return whole(total)


def trees(stacks: Iterable[Stack]) -> list[View]:
    """By the first dump that has their first frame."""
    root = _Element("")
    for stack in stacks:
        element = root
        for frame in stack.frames:
            element = element.child(frame)
            element.dumps.append(stack)
    return [{"elements": _elements(tree)} for tree in root.children.values()]


def _elements(tree: _Element) -> Sequence[View]:
    """Level by level, numbered from 1."""
    shown, waiting = list[View](), deque([(tree, NO_PARENT)])
    while waiting:
        element, parent = waiting.popleft()
        number, spent_ms = len(shown) + 1, element.duration_ms()
        of_children_ms = sum(child.duration_ms() for child in element.children.values())
        shown.append(
            {
                "id": str(number),
                "parentId": str(parent),
                "codeSignature": name(element.frame),
                "duration": spent_ms,
                "durationChildExcluded": whole(spent_ms - of_children_ms),
                "count": len(element.dumps),
            }
        )
        waiting.extend((child, number) for child in element.children.values())
    return shown
