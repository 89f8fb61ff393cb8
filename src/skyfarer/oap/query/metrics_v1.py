"""Root fields of the first metrics protocol: one metric, by the id of its entity."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from typing import Any, Final

from skyfarer.oap.core.entities import Entity
from skyfarer.oap.core.storage import Reader
from skyfarer.oap.query import limits
from skyfarer.oap.query.durations import Duration
from skyfarer.oap.query.errors import QueryError
from skyfarer.oap.query.expressions.catalogue import Catalogue
from skyfarer.oap.query.metrics_v2 import points_view
from skyfarer.oap.query.stored_lists import StoredLists, top
from skyfarer.oap.query.stored_values import StoredValues
from skyfarer.oap.query.traces.span import View

STEP_UNLESS_KNOWN: Final = 200
"""Of an axis that has fewer than two steps."""
_INT_MAX: Final = 2**31 - 1


class MetricsV1:
    """Any thread; blocks on storage."""

    def __init__(self, reader: Reader, catalogue: Catalogue, zone: tzinfo) -> None:
        self._values = StoredValues(reader, catalogue, zone)
        self._lists = StoredLists(reader, catalogue, zone)

    def table(self) -> dict[str, Callable[..., object]]:
        return {
            "getValues": self.values,
            "getLinearIntValues": self.line,
            "getMultipleLinearIntValues": self.lines,
            "getSubsetOfMultipleLinearIntValues": self.some_lines,
            "getThermodynamic": self.thermodynamic,
            "getServiceTopN": self._of_kind(Entity.SERVICE),
            "getAllServiceInstanceTopN": self._of_kind(Entity.INSTANCE),
            "getServiceInstanceTopN": self._of_kind(Entity.INSTANCE),
            "getAllEndpointTopN": self._of_kind(Entity.ENDPOINT),
            "getEndpointTopN": self._of_kind(Entity.ENDPOINT),
            "getTopNRecords": self.records,
        }

    def values(self, metric: Mapping[str, Any], duration: Mapping[str, str]) -> View:
        name, ids, span = metric["name"], metric["ids"], Duration.of(duration)
        if len(ids) > limits.IDS_MAX:
            raise QueryError(f"{len(ids)} ids are more than the {limits.IDS_MAX} allowed at once")
        found = [(one, self._values.average(name, one, span)) for one in ids]
        return {
            "values": [
                {"id": identifier, "value": value or 0, "isEmptyValue": value is None}
                for identifier, value in found
            ]
        }

    def line(self, metric: Mapping[str, Any], duration: Mapping[str, str]) -> View:
        line = self._values.line(metric["name"], metric.get("id"), Duration.of(duration))
        return {"values": points_view(line)}

    def lines(
        self,
        metric: Mapping[str, Any],
        numOfLinear: int,  # noqa: N803
        duration: Mapping[str, str],
    ) -> list[View]:
        return self.some_lines(metric, range(numOfLinear), duration)

    def some_lines(
        self,
        metric: Mapping[str, Any],
        linearIndex: Sequence[int],  # noqa: N803
        duration: Mapping[str, str],
    ) -> list[View]:
        """In the order in which they are asked for; one that is not there is left out."""
        if len(linearIndex) > limits.LINES_MAX:
            raise QueryError(f"{len(linearIndex)} lines are more than {limits.LINES_MAX}")
        labels = [str(index) for index in linearIndex]
        span, identifier = Duration.of(duration), metric.get("id")
        lines = self._values.lines(metric["name"], identifier, labels, span) if labels else []
        by_label = {line.label: line for line in lines}
        return [{"values": points_view(by_label[label])} for label in labels if label in by_label]

    def thermodynamic(self, metric: Mapping[str, Any], duration: Mapping[str, str]) -> View:
        steps = self._values.steps(metric["name"], metric.get("id"), Duration.of(duration))
        known = len(steps.edges) > 1
        return {
            "nodes": [
                (point, step, min(count, _INT_MAX))
                for point, counts in enumerate(steps.counts)
                for step, count in enumerate(counts)
            ],
            "axisYStep": min(steps.edges[1] - steps.edges[0], _INT_MAX)
            if known
            else STEP_UNLESS_KNOWN,
        }

    def _of_kind(self, kind: Entity) -> Callable[..., list[View]]:
        def resolve(
            name: str,
            topN: int,  # noqa: N803
            duration: Mapping[str, str],
            order: str,
            serviceId: str | None = None,  # noqa: N803
        ) -> list[View]:
            asked, span = top({"topN": topN, "order": order}), Duration.of(duration)
            found = self._lists.parts(name, serviceId, asked, span, kind)
            return [{"id": one.id, "name": one.name, "value": one.value} for one in found]

        return resolve

    def records(self, condition: Mapping[str, Any]) -> list[View]:
        asked, span = top(condition), Duration.of(condition["duration"])
        service_id = condition["serviceId"]
        found = self._lists.records(condition["metricName"], service_id, asked, span)
        return [
            {"statement": one.statement, "latency": one.latency, "traceId": one.trace_id or None}
            for one in found
        ]
