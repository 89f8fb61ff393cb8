"""Values of many rows at once: what `oal.values` makes of one row, of a whole table.

A ranking of endpoints looks at hundreds of thousands of rows; one by one they would take seconds. A
row that no item of the metric has reached has no value, and is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyfarer.oap.oal.plan import Metric
from skyfarer.oap.oal.values import GROWTHS, WHOLE, value_of
from skyfarer.oap.query.durations import Window
from skyfarer.oap.query.expressions.catalogue import Derived

Numbers: TypeAlias = npt.NDArray[Any]
_COMPLETE: Final = frozenset({"longAvg", "avg", "doubleAvg"})
"""Need all of their parts; the others have a value when any is there."""
_DOUBLES_EXACT: Final = 2**53
"""Whole numbers below it divide as doubles to the same whole number, in a third of the time."""


def values(of: Derived, rows: pa.Table, window: Window) -> tuple[pa.ChunkedArray, Numbers]:
    """Entity ids, and of each a value; an id comes as often as it has buckets with one. The ids are
    the largest part of the rows, and are not copied where all have a value."""
    if of.metric.function in GROWTHS:
        return _one_by_one(of.metric, rows, window)
    parts = {part: _part(rows, column) for part, column in of.metric.columns}
    there = [present for _, present in parts.values()]
    reached = np.logical_and.reduce(there) if of.metric.function in _COMPLETE else np.any(there, 0)
    numbers = {part: found for part, (found, _) in parts.items()}
    entities = rows["entity_id"]
    if not reached.all():
        numbers = {part: found[reached] for part, found in numbers.items()}
        entities = entities.filter(pa.array(reached))
    return entities, _VALUES[of.metric.function](numbers, window.minutes)


def _part(rows: pa.Table, column: str) -> tuple[Numbers, Numbers]:
    """Numbers with 0 for none, and which of them are there."""
    if column not in rows.column_names:
        return np.zeros(rows.num_rows, np.int64), np.zeros(rows.num_rows, np.bool_)
    found = rows[column]
    if not found.null_count:
        return found.to_numpy(), np.ones(rows.num_rows, np.bool_)
    return pc.fill_null(found, 0).to_numpy(), pc.is_valid(found).to_numpy()


def _truncated(dividend: Numbers, divisor: Numbers | int) -> Numbers:
    least = min(dividend.min(initial=0), np.min(divisor, initial=0))
    if least >= 0:
        divisor = divisor if np.min(divisor, initial=1) > 0 else np.maximum(divisor, 1)
        if dividend.max(initial=0) >= _DOUBLES_EXACT:
            return dividend // divisor
        quotients: Numbers = dividend / divisor
        return np.floor(quotients, out=quotients)
    quotient = np.abs(dividend) // np.maximum(np.abs(divisor), 1)
    found: Numbers = np.where((dividend < 0) == (np.asarray(divisor) < 0), quotient, -quotient)
    return found


def _average(parts: Mapping[str, Numbers]) -> Numbers:
    mean = _truncated(parts["summation"], parts["count"])
    return np.where((mean == 0) & (parts["summation"] > 0), 1, mean)


def _percent(match: Numbers, total: Numbers) -> Numbers:
    return np.where(total == 0, 0, _truncated(match * WHOLE, total))


def _apdex(parts: Mapping[str, Numbers]) -> Numbers:
    satisfied, tolerated = parts["s_num"] * WHOLE, parts["t_num"] * WHOLE // 2
    found: Numbers = (satisfied + tolerated) // np.maximum(parts["total_num"], 1)
    return found


_VALUES: Final[Mapping[str, Callable[[Mapping[str, Numbers], int], Numbers]]] = {
    "longAvg": lambda parts, _: _truncated(parts["summation"], parts["count"]),
    "avg": lambda parts, _: _average(parts),
    "doubleAvg": lambda parts, _: parts["summation"] / parts["count"],
    "cpm": lambda parts, minutes: parts["total"] // minutes,
    "sumPerMin": lambda parts, minutes: _truncated(parts["total"], minutes),
    "percent": lambda parts, _: _percent(parts["match"], parts["total"]),
    "rate": lambda parts, _: _percent(parts["numerator"], parts["denominator"]),
    "apdex": lambda parts, _: _apdex(parts),
    **dict.fromkeys(
        ("sum", "count", "max", "min", "maxDouble", "minDouble"), lambda parts, _: parts["value"]
    ),
}


def _one_by_one(metric: Metric, rows: pa.Table, window: Window) -> tuple[pa.ChunkedArray, Numbers]:
    """A growth is against the bucket before; what has one are meters, and they are few."""
    found = list(_growths(metric, rows.to_pylist(), window))
    entities = pa.chunked_array([[entity for entity, _ in found]], pa.string())
    return entities, np.array([number for _, number in found], np.float64)


def _growths(
    metric: Metric, rows: list[dict[str, Any]], window: Window
) -> Iterator[tuple[str, float]]:
    known = {(row["entity_id"], row["time_bucket"]): row for row in rows}
    before = window.predecessors
    for (entity, bucket), row in known.items():
        if bucket in before:
            earlier = known.get((entity, before[bucket]))
            value = value_of(metric, row, window.minutes, earlier)
            if value is not None and not isinstance(value, Mapping):
                yield entity, float(value)
