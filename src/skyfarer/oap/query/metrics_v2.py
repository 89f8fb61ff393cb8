"""Root fields of the second metrics protocol: one metric, by the names of its entity."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from typing import Any

from skyfarer.oap.core.entities import Entity
from skyfarer.oap.core.storage import Reader
from skyfarer.oap.oal.values import NO_BEGINNING
from skyfarer.oap.query.durations import Duration
from skyfarer.oap.query.entities import entity_id
from skyfarer.oap.query.expressions.catalogue import Catalogue
from skyfarer.oap.query.rows import Rows
from skyfarer.oap.query.stored_lists import StoredLists, top
from skyfarer.oap.query.stored_values import Line, Steps, StoredValues
from skyfarer.oap.query.traces.span import View

BEGINLESS, ENDLESS = "infinite-", "infinite+"


class MetricsV2:
    """Any thread; blocks on storage."""

    def __init__(self, reader: Reader, catalogue: Catalogue, zone: tzinfo) -> None:
        self._values = StoredValues(reader, catalogue, zone)
        self._lists = StoredLists(reader, catalogue, zone)

    def table(self) -> dict[str, Callable[..., object]]:
        return {
            "readMetricsValue": self.value,
            "readNullableMetricsValue": self.nullable_value,
            "readMetricsValues": self.values,
            "readLabeledMetricsValues": self.labelled_values,
            "sortMetrics": self.sorted,
            "readHeatMap": self.heat_map,
            "readSampledRecords": self.sampled,
            "readRecords": self.records,
        }

    def value(self, condition: Mapping[str, Any], duration: Mapping[str, str]) -> int:
        name, identifier = self._of(condition)
        return self._values.average(name, identifier, Duration.of(duration)) or 0

    def nullable_value(self, condition: Mapping[str, Any], duration: Mapping[str, str]) -> View:
        name, identifier = self._of(condition)
        found = self._values.average(name, identifier, Duration.of(duration))
        return {"value": found or 0, "isEmptyValue": found is None}

    def values(self, condition: Mapping[str, Any], duration: Mapping[str, str]) -> View:
        name, identifier = self._of(condition)
        return line_view(self._values.line(name, identifier, Duration.of(duration)))

    def labelled_values(
        self, condition: Mapping[str, Any], labels: Sequence[str], duration: Mapping[str, str]
    ) -> list[View]:
        name, identifier = self._of(condition)
        lines = self._values.lines(name, identifier, labels, Duration.of(duration))
        return [line_view(line) for line in lines]

    def sorted(self, condition: Mapping[str, Any], duration: Mapping[str, str]) -> list[View]:
        found = self._lists.entities(
            condition["name"],
            condition.get("parentService") or None,
            condition.get("normal"),
            top(condition),
            Duration.of(duration),
        )
        return [
            {"id": one.id, "name": one.name, "value": str(one.value), "refId": None}
            for one in found
        ]

    def heat_map(self, condition: Mapping[str, Any], duration: Mapping[str, str]) -> View:
        name, identifier = self._of(condition)
        return _heat_map(self._values.steps(name, identifier, Duration.of(duration)))

    def sampled(self, condition: Mapping[str, Any], duration: Mapping[str, str]) -> list[View]:
        parent = {"serviceName": condition.get("parentService"), "normal": condition.get("normal")}
        return self.records({**condition, "parentEntity": parent}, duration)

    def records(self, condition: Mapping[str, Any], duration: Mapping[str, str]) -> list[View]:
        service_id = entity_id(Entity.SERVICE, condition["parentEntity"])
        span = Duration.of(duration)
        found = self._lists.records(condition["name"], service_id, top(condition), span)
        return [
            {
                "name": one.statement,
                "id": one.id,
                "value": str(one.latency),
                "refId": one.trace_id or None,
            }
            for one in found
        ]

    def _of(self, condition: Mapping[str, Any]) -> tuple[str, str | None]:
        name, found = condition["name"], self._values.find(condition["name"])
        return name, None if found is None else entity_id(found.kind, condition["entity"])


def line_view(line: Line) -> View:
    return {"label": line.label, "values": {"values": points_view(line)}}


def points_view(line: Line) -> Rows:
    return Rows(
        {
            "id": line.ids,
            "value": [value or 0 for value in line.values],
            "isEmptyValue": [value is None for value in line.values],
        }
    )


def _heat_map(steps: Steps) -> View:
    ends = [*map(str, steps.edges[1:]), ENDLESS]
    columns = zip(steps.ids, steps.counts, strict=True)
    begins = [BEGINLESS if edge == NO_BEGINNING else str(edge) for edge in steps.edges]
    buckets = zip(begins, ends, strict=False)
    return {
        "values": [{"id": identifier, "values": counts} for identifier, counts in columns],
        "buckets": [{"min": begin, "max": end} for begin, end in buckets],
    }
