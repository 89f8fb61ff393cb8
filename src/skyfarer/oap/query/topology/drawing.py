"""A map in the making: calls by their id, in the order in which they are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from skyfarer.oap.core.entities import DetectPoint

View = dict[str, object]


@dataclass
class Call:
    id: str
    source: str
    target: str
    detect_points: list[str] = field(default_factory=list)
    source_components: list[str] = field(default_factory=list)
    target_components: list[str] = field(default_factory=list)

    def seen_at(self, point: DetectPoint, components: Sequence[str] = ()) -> None:
        """Twice is once, of the point and of each component."""
        mine = self.source_components if point is DetectPoint.CLIENT else self.target_components
        _add(self.detect_points, [point.value])
        _add(mine, components)

    def view(self) -> View:
        return {
            "id": self.id,
            "source": self.source,
            "sourceComponents": self.source_components,
            "target": self.target,
            "targetComponents": self.target_components,
            "detectPoints": self.detect_points,
        }


class Calls(dict[str, Call]):
    """By id, first come first."""

    def between(self, identifier: str, source: str, target: str) -> Call:
        return self.setdefault(identifier, Call(identifier, source, target))

    def views(self) -> list[View]:
        return [call.view() for call in self.values()]


def _add(to: list[str], more: Sequence[str]) -> None:
    to.extend(one for one in more if one not in to)
