"""Metric expressions: in this version any metric of the plan, by its name and labels, over a time.

Answers the protocol's ExpressionResult. What is wrong with the expression stands in `error` with
type UNKNOWN; an entity that lacks the names its metric needs gives an empty UNKNOWN result, as the
original does. A duration that cannot be read is the request's fault and raises QueryError.

A value is derived from the wide row of its bucket when it is read. Rows of hours and days are
stored, so that a bucket is added up first and divided once, and any range is one read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import TypeAlias

from skyfarer.oap.core.entities import ENTITIES
from skyfarer.oap.core.storage import Reader
from skyfarer.oap.oal.plan import Metric, Plan
from skyfarer.oap.oal.series import Labels
from skyfarer.oap.oal.values import GROWTHS, TABLES, Value, value_of
from skyfarer.oap.query.durations import Duration, Point, minutes_of
from skyfarer.oap.query.entities import KINDS, entity_id
from skyfarer.oap.query.labels import Selection, in_order, labels_of, selection

Values: TypeAlias = Mapping[int, Value]
"""By bucket."""

DECIMALS_MAX = 3
_SHOWN_CHARS = 80


@dataclass(frozen=True)
class Shown:
    """One point of a series; `id` is its first millisecond, a value that is absent is None."""

    id: str
    value: str | None


@dataclass(frozen=True)
class Series:
    labels: Labels
    values: tuple[Shown, ...]


@dataclass(frozen=True)
class ExpressionResult:
    type: str
    series: tuple[Series, ...] = ()
    error: str | None = None


class Expressions:
    """Any thread; blocks on storage."""

    def __init__(self, reader: Reader, plan: Plan, zone: tzinfo) -> None:
        self._reader = reader
        self._zone = zone
        self._metrics = {
            metric.name: (source.source, metric)
            for source in plan.sources
            for metric in source.metrics
        }

    def evaluate(
        self, expression: str, entity: Mapping[str, object], duration: Duration
    ) -> ExpressionResult:
        asked = selection(expression)
        if asked is None:
            shown = expression[:_SHOWN_CHARS]
            return _unknown(
                f"Only a metric, plain or with labels, can be evaluated, not [{shown}]."
            )
        if asked.metric not in self._metrics:
            return _unknown(f"Metric: [{asked.metric[:_SHOWN_CHARS]}] does not exist.")
        source, metric = self._metrics[asked.metric]
        points = duration.points(self._zone)
        identifier = entity_id(KINDS[source], entity)
        if identifier is None:
            return ExpressionResult("UNKNOWN")
        earlier = [duration.before(self._zone)] if metric.function in GROWTHS else []
        buckets = [*earlier, *(point.bucket for point in points)]
        values = self._values(source, metric, identifier, buckets, minutes_of(duration.step))
        return ExpressionResult("TIME_SERIES_VALUES", _series(metric, asked, values, points))

    def _values(
        self, source: str, metric: Metric, identifier: str, buckets: Sequence[int], minutes: int
    ) -> Values:
        if source not in ENTITIES:
            return {}  # nothing fills it yet, and storage knows no such source
        columns = list(dict.fromkeys(column for _, column in metric.columns))
        rows = self._reader.series(source, identifier, columns, buckets[0], buckets[-1])
        before = dict(zip(buckets[1:], buckets, strict=False))
        derived = (
            (bucket, value_of(metric, row, minutes, rows.get(before.get(bucket, 0))))
            for bucket, row in rows.items()
        )
        return {bucket: value for bucket, value in derived if value is not None}


def _series(
    metric: Metric, asked: Selection, values: Values, points: Sequence[Point]
) -> tuple[Series, ...]:
    if metric.function not in TABLES:
        return (_one((), values, points),)
    tables = {bucket: value for bucket, value in values.items() if isinstance(value, Mapping)}
    written = in_order({label for table in tables.values() for label in table})
    return tuple(
        _one(labels, {b: table[label] for b, table in tables.items() if label in table}, points)
        for label in written
        if asked.takes(labels := labels_of(label))
    )


def _one(labels: Labels, values: Values, points: Sequence[Point]) -> Series:
    shown = (Shown(str(point.epoch_ms), _text(values.get(point.bucket))) for point in points)
    return Series(labels, tuple(shown))


def _text(value: Value | None) -> str | None:
    """No grouping, and at most DECIMALS_MAX decimals."""
    if not isinstance(value, float):
        return None if value is None else str(value)
    shown = f"{value:.{DECIMALS_MAX}f}".rstrip("0").rstrip(".")
    return "0" if shown == "-0" else shown


def _unknown(error: str) -> ExpressionResult:
    return ExpressionResult("UNKNOWN", error=error)
