"""What the metrics must come to: totals of entry spans, kept while the spans are handed out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from skyfarer.wire.messages import SegmentObject, SpanType

MINUTE_MS = 60_000


@dataclass(frozen=True)
class Entity:
    """What a total speaks of: `instance` and `endpoint` are empty where the scope has none."""

    scope: str
    service: str
    instance: str = ""
    endpoint: str = ""


@dataclass
class Totals:
    calls: int = 0
    latency_sum: int = 0
    errors: int = 0


class Expected:
    """Totals of entry spans per entity and epoch minute, by the analysis rules of the OAP."""

    def __init__(self) -> None:
        self.totals: dict[tuple[Entity, int], Totals] = {}

    def observe(self, segment: SegmentObject) -> None:
        for span in segment.spans:
            if span.spanType != SpanType.Entry or span.skipAnalysis:
                continue
            # One traffic per reference: a consumer that took two messages counts two calls.
            weight = max(1, len(span.refs))
            for entity in _entities(segment, span.operationName):
                key = (entity, span.startTime // MINUTE_MS)
                total = self.totals.setdefault(key, Totals())
                total.calls += weight
                total.latency_sum += weight * (span.endTime - span.startTime)
                total.errors += weight * span.isError

    def entities(self, scope: str) -> list[Entity]:
        found = {entity for entity, _ in self.totals if entity.scope == scope}
        return sorted(found, key=lambda e: (e.service, e.instance, e.endpoint))

    def series(self, entity: Entity) -> dict[int, Totals]:
        """Epoch minute → totals of one entity, in the order of time."""
        rows = {minute: total for (one, minute), total in self.totals.items() if one == entity}
        return dict(sorted(rows.items()))

    @property
    def minutes(self) -> tuple[int, int]:
        """The first and the last epoch minute that saw a call."""
        minutes = [minute for _, minute in self.totals]
        return min(minutes), max(minutes)


def _entities(segment: SegmentObject, endpoint: str) -> Iterable[Entity]:
    yield Entity("service", segment.service)
    yield Entity("service_instance", segment.service, instance=segment.serviceInstance)
    yield Entity("endpoint", segment.service, endpoint=endpoint)
