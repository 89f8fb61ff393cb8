"""Metric expressions: in this version a plain metric name, read over a duration.

Answers the protocol's ExpressionResult. What is wrong with the expression stands in `error` with
type UNKNOWN; an entity that lacks the names its metric needs gives an empty UNKNOWN result, as the
original does. A duration that cannot be read is the request's fault and raises QueryError.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo

from skyfarer.oap.core import ids
from skyfarer.oap.core.storage import Accumulators, Reader, Scope
from skyfarer.oap.query.durations import Duration, Point, bucket_of_minute, minutes_of
from skyfarer.oap.query.metrics import METRICS, Metric, total

# One read of storage spans at most a week of minutes, so 500 days never stand in memory at once.
MINUTES_PER_READ = 7 * 1440

_METRIC_NAME = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*")
_SHOWN_CHARS = 80


@dataclass(frozen=True)
class Value:
    id: str
    value: str | None


@dataclass(frozen=True)
class ExpressionResult:
    type: str
    series: tuple[Value, ...] | None = None
    error: str | None = None


class Expressions:
    """Any thread; blocks on storage."""

    def __init__(self, reader: Reader, zone: tzinfo) -> None:
        self._reader = reader
        self._zone = zone

    def evaluate(
        self, expression: str, entity: Mapping[str, object], duration: Duration
    ) -> ExpressionResult:
        name = _METRIC_NAME.fullmatch(expression)
        if name is None:
            shown = expression[:_SHOWN_CHARS]
            return _unknown(f"Only a plain metric name can be evaluated so far, not [{shown}].")
        metric = METRICS.get(name[1])
        if metric is None:
            return _unknown(f"Metric: [{name[1][:_SHOWN_CHARS]}] does not exist.")
        points = duration.points(self._zone)
        entity_id = _entity_id(metric.scope, entity)
        if entity_id is None:
            return ExpressionResult("UNKNOWN")
        values = self._values(metric, entity_id, points, duration)
        return ExpressionResult("TIME_SERIES_VALUES", tuple(values))

    def _values(
        self, metric: Metric, entity_id: str, points: Sequence[Point], duration: Duration
    ) -> Iterator[Value]:
        minutes = minutes_of(duration.step)
        for window in _windows(points, MINUTES_PER_READ // minutes):
            rows = self._reader.series(
                metric.scope, entity_id, window[0].first_minute, window[-1].last_minute
            )
            buckets: dict[int, list[Accumulators]] = defaultdict(list)
            for minute, row in rows.items():
                buckets[bucket_of_minute(minute, duration.step)].append(row)
            for point in window:
                found = buckets.get(point.bucket)
                derived = metric.derive(total(found), minutes) if found else None
                yield Value(str(point.epoch_ms), None if derived is None else str(derived))


def _unknown(error: str) -> ExpressionResult:
    return ExpressionResult("UNKNOWN", error=error)


def _windows(points: Sequence[Point], size: int) -> Iterator[Sequence[Point]]:
    for start in range(0, len(points), size):
        yield points[start : start + size]


def _entity_id(scope: Scope, entity: Mapping[str, object]) -> str | None:
    """The id the names make; None when one that the scope needs is missing."""
    service, normal = entity.get("serviceName"), entity.get("normal")
    if not isinstance(service, str) or not service or not isinstance(normal, bool):
        return None
    service_id = ids.service_id(service, normal)
    if scope is Scope.SERVICE:
        return service_id
    key = "serviceInstanceName" if scope is Scope.INSTANCE else "endpointName"
    name = entity.get(key)
    if not isinstance(name, str) or not name:
        return None
    make = ids.instance_id if scope is Scope.INSTANCE else ids.endpoint_id
    return make(service_id, name)
