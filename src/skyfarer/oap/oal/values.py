"""A metric's value from the columns of a wide row, with the original's arithmetic.

Its numbers are Java's: whole numbers are divided towards zero, `Math.round` is floor(x + 0.5), and
the rank of a percentile is reckoned in 32-bit floats.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import add
from typing import Final, TypeAlias

from skyfarer.oap.oal.plan import Metric
from skyfarer.oap.oal.series import shown

Value: TypeAlias = int | float | Mapping[str, int]
Columns: TypeAlias = Mapping[str, Value]
RANKS: Final = (50, 75, 90, 95, 99)
_NUMBER: Final = re.compile("-?[0-9]{1,19}", re.ASCII)
_RANK_LABELS: Final = tuple(f"{{p={rank}}}" for rank in RANKS)
HISTOGRAMS: Final = frozenset({"histogram", "sumHistogram", "avgHistogram"})
RANKED: Final = frozenset({"percentile2", "sumHistogramPercentile", "avgHistogramPercentile"})
"""Functions whose labels are RANKS."""
TABLES: Final = frozenset(
    {
        *HISTOGRAMS,
        *RANKED,
        *("percentile", "labelCount", "labelAvg"),
        *("labelIncrease", "labelTotal", "labelSum", "labelSumPerMin", "labelMax", "labelMin"),
    }
)
"""Functions whose value is a table, a number by label."""
TOTALS_REMEMBERED_MAX: Final = 4096
"""Of percentiles: most buckets of a service have about as many calls as others."""
GROWTHS: Final = frozenset({"increase", "labelIncrease"})
"""Functions whose value also depends on the bucket before."""
WHOLE: Final = 10_000
"""A hundred percent."""
NO_BEGINNING: Final = -(2**63)
"""In the place of the number at which a bucket begins."""
_WHOLE_ITEMS: Final = GROWTHS | {
    *("longAvg", "avg", "doubleAvg", "labelAvg", "labelTotal"),
    *("avgHistogram", "avgHistogramPercentile"),
}
"""Their items reach all parts at once: a count alone is of a time before the sum was asked for."""


def value_of(
    metric: Metric, columns: Columns, minutes: int, before: Columns | None = None
) -> Value | None:
    """None where the bucket has no item of this metric, or is older than it. `before` are the
    columns of the bucket before, which GROWTHS alone look at."""
    parts = _Parts(metric, columns, minutes)
    reached = parts.complete if metric.function in _WHOLE_ITEMS else parts.reached
    if not reached:
        return None
    if metric.function in GROWTHS:
        earlier = _Parts(metric, before or {}, minutes)
        return (_label_growth if metric.labels else _growth)(parts, earlier)
    return _VALUES[metric.function](parts)


def truncated(dividend: int, divisor: int) -> int:
    """Java's division: -7 / 2 is -3."""
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


class _Parts:
    """The columns of one metric by the original's names; a part no row has reached is 0."""

    __slots__ = ("_found", "complete", "labels", "minutes", "numbers", "reached")

    def __init__(self, metric: Metric, columns: Columns, minutes: int) -> None:
        found = {part: columns.get(column) for part, column in metric.columns}
        missing = list(found.values()).count(None)
        self.reached = missing < len(found)
        self.complete = not missing
        self._found = found
        self.numbers = metric.numbers
        self.labels = metric.labels
        self.minutes = minutes

    def number(self, part: str) -> int | float:
        value = self._found[part]
        return value if isinstance(value, int | float) else 0

    def whole(self, part: str) -> int:
        return int(self.number(part))

    def table(self, part: str) -> Mapping[str, int]:
        value = self._found[part]
        return value if isinstance(value, Mapping) else {}


def _grown(most: int, least: int, before: int | None) -> int:
    """Of a counter. One that is below what it was began anew, at 0."""
    if before is None:
        return most - least
    return most - before if before <= most else most


def _growth(parts: _Parts, before: _Parts) -> int:
    """A minute."""
    earlier = before.whole("most") if before.complete else None
    grown = _grown(parts.whole("most"), parts.whole("least"), earlier)
    return truncated(grown, parts.minutes)


def _label_growth(parts: _Parts, before: _Parts) -> Mapping[str, int]:
    """Each series by itself: one that began anew takes nothing from the others."""
    least, earlier = parts.table("least"), before.table("most")
    grown = {
        series: _grown(most, least[series], earlier.get(series))
        for series, most in parts.table("most").items()
    }
    added = _by_labels(grown, parts.labels)
    return {label: truncated(total, parts.minutes) for label, total in added.items()}


def _by_labels(
    numbers: Mapping[str, int], names: Sequence[str], both: Callable[[int, int], int] = add
) -> dict[str, int]:
    """Of series: those that differ in their instance, or in labels not named, are one."""
    found: dict[str, int] = {}
    for series, number in numbers.items():
        label = shown(series, names)
        found[label] = both(found[label], number) if label in found else number
    return found


def _percent(match: int, total: int) -> int:
    return truncated(match * WHOLE, total) if total else 0


def _apdex(parts: _Parts) -> int:
    satisfied, tolerated = parts.whole("s_num"), parts.whole("t_num")
    return (satisfied * WHOLE + tolerated * WHOLE // 2) // parts.whole("total_num")


def _single_precision(number: float) -> float:
    (rounded,) = struct.unpack("<f", struct.pack("<f", number))
    return float(rounded)


@lru_cache(TOTALS_REMEMBERED_MAX)
def _roofs(total: int) -> tuple[int, ...]:
    """Of RANKS: which of so many, in their order, is the one."""
    exact = (_single_precision(_single_precision(total * rank) / 100) for rank in RANKS)
    return tuple(math.floor(one + 0.5) for one in exact)


def percentiles(dataset: Mapping[str, int] | Mapping[int, int], precision: int) -> list[int]:
    """Of RANKS, from bucket → count, in one pass: a later rank has no lower roof."""
    roofs = _roofs(sum(dataset.values()))
    found, reached, roof = list[int](), 0, roofs[0]
    for bucket, count in sorted(zip(map(int, dataset), dataset.values(), strict=True)):
        reached += count
        while reached >= roof:
            found.append(bucket * precision)
            if len(found) == len(roofs):
                return found
            roof = roofs[len(found)]
    return found


def _percentile2(parts: _Parts) -> Mapping[str, int]:
    found = percentiles(parts.table("dataset"), parts.numbers[0])
    return dict(zip(_RANK_LABELS, found, strict=True))


def _percentile(parts: _Parts) -> Mapping[str, int]:
    found = percentiles(parts.table("dataset"), parts.numbers[0])
    return {str(index): value for index, value in enumerate(found)}


def _histogram(parts: _Parts) -> Mapping[str, int]:
    """Every step is there, those without an item too."""
    step, steps_max = parts.numbers
    table = {str(index * step): 0 for index in range(steps_max + 1)}
    counted = {str(int(key) * step): count for key, count in parts.table("dataset").items()}
    return table | counted


def _average(total: int, count: int) -> int:
    """Of meters: whatever is a little is 1."""
    return truncated(total, count) or (1 if total > 0 else 0)


def _averages(parts: _Parts) -> Mapping[str, int]:
    sums, counts = parts.table("summation"), parts.table("count")
    return {label: _average(total, counts[label]) for label, total in sums.items()}


def _buckets(table: Mapping[str, int]) -> dict[int, int]:
    """By where they begin; a text that is no number is no bucket."""
    return {int(text): number for text, number in table.items() if _NUMBER.fullmatch(text)}


def _as_histogram(table: Mapping[str, int]) -> Mapping[str, int]:
    return {str(bucket): number for bucket, number in _buckets(table).items()}


def _histogram_percentiles(table: Mapping[str, int]) -> Mapping[str, int]:
    """What has no beginning is counted with the first that has one: the original has no value
    then. Where nothing was counted all are 0."""
    buckets = _buckets(table)
    below = buckets.pop(NO_BEGINNING, 0)
    if buckets:
        buckets[min(buckets)] += below
    found = percentiles(buckets, 1) if sum(buckets.values()) > 0 else [0] * len(RANKS)
    return dict(zip(_RANK_LABELS, found, strict=True))


def _label_count(parts: _Parts) -> Mapping[str, int]:
    return {f"{{n={label}}}": count for label, count in parts.table("dataset").items()}


def _label_average(parts: _Parts) -> Mapping[str, int]:
    return {f"{{n={label}}}": average for label, average in _averages(parts).items()}


def _label_total(parts: _Parts) -> Mapping[str, int]:
    """The mean of each series, added up."""
    sums, counts = parts.table("summation"), parts.table("count")
    means = {series: truncated(total, counts[series]) for series, total in sums.items()}
    return _by_labels(means, parts.labels)


def _label_sum_per_minute(parts: _Parts) -> Mapping[str, int]:
    added = _by_labels(parts.table("total"), parts.labels)
    return {label: truncated(total, parts.minutes) for label, total in added.items()}


_VALUES: Final[Mapping[str, Callable[[_Parts], Value]]] = {
    "longAvg": lambda parts: truncated(parts.whole("summation"), parts.whole("count")),
    "avg": lambda parts: _average(parts.whole("summation"), parts.whole("count")),
    "doubleAvg": lambda parts: parts.number("summation") / parts.number("count"),
    "sum": lambda parts: parts.number("value"),
    "sumPerMin": lambda parts: truncated(parts.whole("total"), parts.minutes),
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
    "sumHistogram": lambda parts: _as_histogram(parts.table("dataset")),
    "sumHistogramPercentile": lambda parts: _histogram_percentiles(parts.table("summation")),
    "avgHistogram": lambda parts: _as_histogram(_averages(parts)),
    "avgHistogramPercentile": lambda parts: _histogram_percentiles(_averages(parts)),
    "labelCount": _label_count,
    "labelAvg": _label_average,
    "labelTotal": _label_total,
    "labelSum": lambda parts: _by_labels(parts.table("value"), parts.labels),
    "labelSumPerMin": _label_sum_per_minute,
    "labelMax": lambda parts: _by_labels(parts.table("value"), parts.labels, max),
    "labelMin": lambda parts: _by_labels(parts.table("value"), parts.labels, min),
}
