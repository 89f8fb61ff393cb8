"""A metric's value from the columns of a wide row, with the original's arithmetic.

Its numbers are Java's: whole numbers are divided towards zero, `Math.round` is floor(x + 0.5), and
the rank of a percentile is reckoned in 32-bit floats.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from skyfarer.oap.oal.plan import Metric

Value: TypeAlias = int | float | Mapping[str, int]
Columns: TypeAlias = Mapping[str, Value]
RANKS: Final = (50, 75, 90, 95, 99)
TABLES: Final = frozenset({"percentile2", "percentile", "histogram", "labelCount", "labelAvg"})
"""Functions whose value is a table, a number by label."""
GROWTH: Final = "increase"
"""The function whose value also depends on the bucket before."""
WHOLE: Final = 10_000
"""A hundred percent."""
_WHOLE_ITEMS: Final = frozenset({"longAvg", "doubleAvg", "labelAvg", GROWTH})
"""Their items reach all parts at once: a count alone is of a time before the sum was asked for."""


def value_of(
    metric: Metric, columns: Columns, minutes: int, before: Columns | None = None
) -> Value | None:
    """None where the bucket has no item of this metric, or is older than it. `before` are the
    columns of the bucket before, which GROWTH alone looks at."""
    parts = _Parts(metric, columns, minutes)
    reached = parts.complete if metric.function in _WHOLE_ITEMS else parts.reached
    if not reached:
        return None
    if metric.function == GROWTH:
        return _growth(parts, _Parts(metric, before or {}, minutes))
    return _VALUES[metric.function](parts)


def truncated(dividend: int, divisor: int) -> int:
    """Java's division: -7 / 2 is -3."""
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


class _Parts:
    """The columns of one metric by the original's names; a part no row has reached is 0."""

    def __init__(self, metric: Metric, columns: Columns, minutes: int) -> None:
        found = {part: columns.get(column) for part, column in metric.columns}
        self.reached = any(value is not None for value in found.values())
        self.complete = all(value is not None for value in found.values())
        self._found = found
        self.numbers = metric.numbers
        self.minutes = minutes

    def number(self, part: str) -> int | float:
        value = self._found[part]
        return 0 if value is None or isinstance(value, Mapping) else value

    def whole(self, part: str) -> int:
        return int(self.number(part))

    def table(self, part: str) -> Mapping[str, int]:
        value = self._found[part]
        return value if isinstance(value, Mapping) else {}


def _growth(parts: _Parts, before: _Parts) -> int:
    """Of a counter, a minute. One that is below what it was began anew, at 0."""
    most, least = parts.whole("most"), parts.whole("least")
    if before.complete:
        least = before.whole("most") if before.whole("most") <= most else 0
    return truncated(most - least, parts.minutes)


def _percent(match: int, total: int) -> int:
    return truncated(match * WHOLE, total) if total else 0


def _apdex(parts: _Parts) -> int:
    satisfied, tolerated = parts.whole("s_num"), parts.whole("t_num")
    return (satisfied * WHOLE + tolerated * WHOLE // 2) // parts.whole("total_num")


def _single_precision(number: float) -> float:
    (rounded,) = struct.unpack("<f", struct.pack("<f", number))
    return float(rounded)


def percentiles(dataset: Mapping[str, int], precision: int) -> list[int]:
    """Of RANKS, from bucket → count."""
    total = sum(dataset.values())
    found = []
    for rank in RANKS:
        exact = _single_precision(_single_precision(total * rank) / 100)
        roof = math.floor(exact + 0.5)
        reached = 0
        for bucket in sorted(map(int, dataset)):
            reached += dataset[str(bucket)]
            if reached >= roof:
                found.append(bucket * precision)
                break
    return found


def _percentile2(parts: _Parts) -> Mapping[str, int]:
    found = percentiles(parts.table("dataset"), parts.numbers[0])
    return {f"{{p={rank}}}": value for rank, value in zip(RANKS, found, strict=True)}


def _percentile(parts: _Parts) -> Mapping[str, int]:
    found = percentiles(parts.table("dataset"), parts.numbers[0])
    return {str(index): value for index, value in enumerate(found)}


def _histogram(parts: _Parts) -> Mapping[str, int]:
    """Every step is there, those without an item too."""
    step, steps_max = parts.numbers
    table = {str(index * step): 0 for index in range(steps_max + 1)}
    counted = {str(int(key) * step): count for key, count in parts.table("dataset").items()}
    return table | counted


def _label_count(parts: _Parts) -> Mapping[str, int]:
    return {f"{{n={label}}}": count for label, count in parts.table("dataset").items()}


def _label_average(parts: _Parts) -> Mapping[str, int]:
    sums, counts = parts.table("summation"), parts.table("count")
    return {
        f"{{n={label}}}": truncated(total, counts[label]) or (1 if total > 0 else 0)
        for label, total in sums.items()
    }


_VALUES: Final[Mapping[str, Callable[[_Parts], Value]]] = {
    "longAvg": lambda parts: truncated(parts.whole("summation"), parts.whole("count")),
    "doubleAvg": lambda parts: parts.number("summation") / parts.number("count"),
    "sum": lambda parts: parts.number("value"),
    "count": lambda parts: parts.number("value"),
    "cpm": lambda parts: parts.whole("total") // parts.minutes,
    "percent": lambda parts: _percent(parts.whole("match"), parts.whole("total")),
    "rate": lambda parts: _percent(parts.whole("numerator"), parts.whole("denominator")),
    "max": lambda parts: parts.number("value"),
    "min": lambda parts: parts.number("value"),
    "maxDouble": lambda parts: parts.number("value"),
    "minDouble": lambda parts: parts.number("value"),
    "apdex": _apdex,
    "percentile2": _percentile2,
    "percentile": _percentile,
    "histogram": _histogram,
    "labelCount": _label_count,
    "labelAvg": _label_average,
}
