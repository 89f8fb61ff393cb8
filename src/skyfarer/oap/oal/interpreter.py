"""The plan executed in plain Python, row by row: slow, obvious, and what others are compared with.

    rows --accumulate--> columns --merge--> columns of an hour or a day --values--> metrics

Columns have a value by accumulator, or none where no row has reached it. They belong to the caller
and are never changed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from skyfarer.oap.oal.plan import Accumulator, Operation, SourcePlan
from skyfarer.oap.oal.rows import Number, Row, holds, number, read
from skyfarer.oap.oal.tables import TABLES, cell_of
from skyfarer.oap.oal.values import Columns, Value, truncated, value_of

Threshold: TypeAlias = Callable[[str | None], int]
"""The name of a service → its T, in milliseconds."""

APDEX_THRESHOLD_MS: Final = 500
_MAX: Final = frozenset({Operation.MAX, Operation.MAX_DOUBLE})
_MIN: Final = frozenset({Operation.MIN, Operation.MIN_DOUBLE})
_DOUBLE: Final = frozenset({Operation.SUM_DOUBLE, Operation.MAX_DOUBLE, Operation.MIN_DOUBLE})
_STARTS: Final[Mapping[Operation, Number]] = {
    Operation.MIN: 2**63 - 1,
    Operation.MIN_DOUBLE: 1.7976931348623157e308,
}


def accumulate(
    plan: SourcePlan, rows: Iterable[Row], threshold: Threshold = lambda _: APDEX_THRESHOLD_MS
) -> Columns:
    """All rows are of one entity and one time bucket."""
    columns: dict[str, Value] = {}
    for row in rows:
        for accumulator in plan.accumulators:
            if all(holds(condition, row) for condition in accumulator.where):
                item = _item(accumulator, row, threshold)
                if item is not None:
                    _add(accumulator, columns, item)
    return merge(plan, {}, columns)


def merge(plan: SourcePlan, one: Columns, other: Columns) -> Columns:
    """As if the rows of `other` had come after those of `one`. Where a table has more labels than
    its bound, those of `one` stay, and of the others the first by text."""
    columns = dict(one)
    for accumulator in plan.accumulators:
        if (value := other.get(accumulator.column)) is not None:
            _add(accumulator, columns, value)
            _bound(accumulator, columns, one)
    return columns


def values(plan: SourcePlan, columns: Columns, minutes: int = 1) -> dict[str, Value]:
    """Metric → value, of those with an item. `minutes` of the bucket: 1, 60 or 1440."""
    found = ((metric.name, value_of(metric, columns, minutes)) for metric in plan.metrics)
    return {name: value for name, value in found if value is not None}


def _item(accumulator: Accumulator, row: Row, threshold: Threshold) -> Value | None:
    """What one row adds: for a table, a table of one key."""
    operation, inputs = accumulator.operation, accumulator.inputs
    if operation is Operation.COUNT:
        return 1
    if operation in (Operation.SATISFIED, Operation.TOLERATED):
        return _apdex(accumulator, row, threshold)
    if operation is Operation.BUCKETS:
        return {str(_bucket(int(number(inputs[0], row)), accumulator)): 1}
    if operation in TABLES:
        label = read(inputs[0], row)
        cell = 1 if operation is Operation.LABEL_COUNTS else int(number(inputs[1], row))
        return None if label is None else {str(label): cell}
    value = number(inputs[0], row)
    return float(value) if operation in _DOUBLE else value


def _apdex(accumulator: Accumulator, row: Row, threshold: Threshold) -> int | None:
    value, name, status = accumulator.inputs
    named = read(name, row)
    limit = threshold(None if named is None else str(named))
    latency = number(value, row)
    if not read(status, row) or latency > 4 * limit:
        return None
    return 1 if (latency > limit) is (accumulator.operation is Operation.TOLERATED) else None


def _bucket(value: int, accumulator: Accumulator) -> int:
    bucket = truncated(value, accumulator.width)
    return min(bucket, accumulator.bound) if accumulator.bound else bucket


def _add(accumulator: Accumulator, columns: dict[str, Value], item: Value) -> None:
    known = columns.get(accumulator.column)
    if isinstance(item, Mapping):
        table = known if isinstance(known, Mapping) else {}
        columns[accumulator.column] = _added(accumulator, table, item)
    elif not isinstance(known, Mapping):
        columns[accumulator.column] = _combined(accumulator.operation, known, item)


def _combined(operation: Operation, known: Number | None, item: Number) -> Number:
    start = _STARTS.get(operation, 0.0 if operation in _DOUBLE else 0) if known is None else known
    if operation in _MAX:
        return max(start, item)
    return min(start, item) if operation in _MIN else start + item


def _added(
    accumulator: Accumulator, table: Mapping[str, int], more: Mapping[str, int]
) -> Mapping[str, int]:
    operation = cell_of(accumulator).operation
    added = dict(table)
    for key, value in more.items():
        added[key] = int(_combined(operation, added.get(key), value))
    return added


def _bound(accumulator: Accumulator, columns: dict[str, Value], before: Columns) -> None:
    """Buckets are bounded by their last one already."""
    table, known = (some.get(accumulator.column) for some in (columns, before))
    if accumulator.operation is Operation.BUCKETS or not isinstance(table, Mapping):
        return
    stay = known if isinstance(known, Mapping) else {}
    first = sorted(table, key=lambda label: (label not in stay, label))[: accumulator.bound or None]
    columns[accumulator.column] = {label: table[label] for label in first}
