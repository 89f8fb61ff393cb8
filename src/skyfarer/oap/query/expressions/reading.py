"""Values of a metric of the plan, from the rows that storage has of its source.

A value is derived from the wide row of its bucket when it is read. Rows of hours and days are
stored, so that a bucket is added up first and divided once, and any range is one read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from skyfarer.oap.core.storage import Reader
from skyfarer.oap.oal.plan import Metric
from skyfarer.oap.oal.runs import values_of
from skyfarer.oap.oal.series import Labels
from skyfarer.oap.oal.values import GROWTHS, Columns, Value, value_of
from skyfarer.oap.query import limits
from skyfarer.oap.query.durations import Window
from skyfarer.oap.query.errors import QueryError
from skyfarer.oap.query.expressions.catalogue import Derived
from skyfarer.oap.query.expressions.results import Series
from skyfarer.oap.query.expressions.results import Value as Point
from skyfarer.oap.query.labels import in_order, labels_of

Values: TypeAlias = Mapping[int, Value]
"""By bucket."""
Takes: TypeAlias = Callable[[Labels], bool]


def values(reader: Reader, of: Derived, entity_id: str, window: Window) -> Values:
    """Of the buckets that have any. Blocks on storage."""
    rows = reader.series(of.source, entity_id, columns_of(of), *range_of(of, window))
    buckets = [bucket for bucket in window.buckets if bucket in rows]
    if of.metric.function in GROWTHS:
        derived = _growths(of.metric, rows, buckets, window)
    else:
        derived = values_of(of.metric, [rows[bucket] for bucket in buckets], window.minutes)
    pairs = zip(buckets, derived, strict=True)
    return {bucket: value for bucket, value in pairs if value is not None}


def _growths(
    metric: Metric, rows: Mapping[int, Columns], buckets: Sequence[int], window: Window
) -> list[Value | None]:
    before = window.predecessors
    return [
        value_of(metric, rows[bucket], window.minutes, rows.get(before[bucket]))
        for bucket in buckets
    ]


def columns_of(of: Derived) -> list[str]:
    return list(dict.fromkeys(column for _, column in of.metric.columns))


def range_of(of: Derived, window: Window) -> tuple[int, int]:
    """The buckets to read, both ends included."""
    growth = of.metric.function in GROWTHS
    return window.before if growth else window.points[0].bucket, window.points[-1].bucket


def series(
    of: Derived, found: Values, window: Window, takes: Takes = lambda _: True
) -> tuple[Series, ...]:
    """One, or one a label in their order; QueryError when they are too many to be shown."""
    if not of.labelled:
        return (_one((), found, window),)
    tables = {bucket: value for bucket, value in found.items() if isinstance(value, Mapping)}
    written = in_order({label for table in tables.values() for label in table})
    taken = [(label, labels) for label in written if takes(labels := labels_of(label))]
    check_few(of, len(taken), window)
    return tuple(
        _one(labels, {b: table[label] for b, table in tables.items() if label in table}, window)
        for label, labels in taken
    )


def check_few(of: Derived, labels: int, window: Window) -> None:
    """QueryError when they are too many to be shown."""
    if labels * len(window.points) > limits.EXPRESSION_VALUES_MAX:
        raise QueryError(
            f"{of.name} has {labels} labels at {len(window.points)} points, more than "
            f"{limits.EXPRESSION_VALUES_MAX} values; choose labels or ask for a shorter duration"
        )


def _one(labels: Labels, found: Values, window: Window) -> Series:
    numbers = map(_number, map(found.get, window.buckets))
    return Series(tuple(sorted(labels)), tuple(map(Point, numbers, window.moments)))


def _number(value: Value | None) -> float | None:
    return float(value) if isinstance(value, int | float) else None
