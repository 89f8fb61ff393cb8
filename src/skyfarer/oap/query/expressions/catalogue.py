"""Every metric that can be asked for, by its name: those of the plan, and records of slow
statements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from skyfarer.base.binding import nearest
from skyfarer.oap.core.entities import ENTITIES, Entity
from skyfarer.oap.core.slow import Slow
from skyfarer.oap.oal.plan import Metric, Plan
from skyfarer.oap.oal.values import HISTOGRAMS, TABLES
from skyfarer.oap.query.expressions import syntax
from skyfarer.oap.query.expressions.problems import NAME_CHARS_MAX, UnknownMetric


class MetricsType(Enum):
    """The protocol's."""

    UNKNOWN = "UNKNOWN"
    REGULAR_VALUE = "REGULAR_VALUE"
    LABELED_VALUE = "LABELED_VALUE"
    HEATMAP = "HEATMAP"
    SAMPLED_RECORD = "SAMPLED_RECORD"


CATALOGS: Final[Mapping[Entity, str]] = {
    Entity.SERVICE: "SERVICE",
    Entity.INSTANCE: "SERVICE_INSTANCE",
    Entity.ENDPOINT: "ENDPOINT",
    Entity.SERVICE_RELATION: "SERVICE_RELATION",
    Entity.INSTANCE_RELATION: "SERVICE_INSTANCE_RELATION",
    Entity.ENDPOINT_RELATION: "ENDPOINT_RELATION",
}
"""The protocol's word for what a metric is of."""


@dataclass(frozen=True)
class Derived:
    """A metric of the plan; its values are derived from rows of `source`."""

    metric: Metric
    source: str

    @property
    def name(self) -> str:
        return self.metric.name

    @property
    def kind(self) -> Entity:
        return ENTITIES[self.source]

    @property
    def labelled(self) -> bool:
        return self.metric.function in TABLES

    @property
    def type(self) -> MetricsType:
        if self.metric.function in HISTOGRAMS:
            return MetricsType.HEATMAP
        return MetricsType.LABELED_VALUE if self.labelled else MetricsType.REGULAR_VALUE


@dataclass(frozen=True)
class Sampled:
    """Records: of a service, the slowest statements of each minute."""

    slow: Slow
    kind: Entity = Entity.SERVICE
    type: MetricsType = MetricsType.SAMPLED_RECORD

    @property
    def name(self) -> str:
        return self.slow.value


class Catalogue:
    """Never changes. A stream that the plan disables is not in it."""

    def __init__(self, plan: Plan) -> None:
        every: list[Derived | Sampled] = [
            Derived(metric, of.source) for of in plan.sources for metric in of.metrics
        ]
        every += [Sampled(slow) for slow in Slow if slow.value not in plan.disabled]
        self._named = {one.name: one for one in every}

    def __iter__(self) -> Iterator[Derived | Sampled]:
        """By name."""
        return iter(self._named[name] for name in sorted(self._named))

    def find(self, name: str) -> Derived | Sampled | None:
        return self._named.get(name)

    def of(self, written: syntax.Metric) -> Derived | Sampled:
        """Raises UnknownMetric at its place."""
        found = self._named.get(written.name)
        if found is None:
            raise UnknownMetric(written.place, written.name)
        return found

    def hint(self, name: str) -> str:
        """What was perhaps meant. It takes milliseconds: only for what is shown."""
        near = nearest(name, self._named) if len(name) <= NAME_CHARS_MAX else ""
        return near if "did you mean" in near else "; listMetrics has the names of all"
