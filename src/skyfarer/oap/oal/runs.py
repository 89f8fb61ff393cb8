"""Values of a run of buckets at once: what `values.value_of` makes of each row by itself.

A chart has hundreds of points, and most metrics are a number or two divided: to look at the parts
of one row after the other costs more than the division. So the parts of all rows are laid side by
side, and where each is a whole number of the common sort they are reckoned with in one go. Anything
else (a part that is missing, a table, a number below zero) is left to `value_of`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import floordiv
from typing import Any, Final, TypeAlias

from skyfarer.oap.oal.plan import Metric
from skyfarer.oap.oal.values import WHOLE, Columns, Value, value_of

_Parts: TypeAlias = Mapping[str, list[Any]]
"""By the original's names: a number a row, none below zero."""
_Reckon: TypeAlias = Callable[[_Parts, int], list[Value | None]]


def values_of(metric: Metric, rows: Sequence[Columns], minutes: int) -> list[Value | None]:
    """In the order of the rows. Not of GROWTHS, which look at the bucket before as well."""
    if (reckon := _RECKONED.get(metric.function)) is not None:
        parts = {part: [row.get(column) for row in rows] for part, column in metric.columns}
        if all(map(_plain, parts.values())):
            return reckon(parts, minutes)
    return [value_of(metric, row, minutes) for row in rows]


def _plain(numbers: Sequence[Any]) -> bool:
    return set(map(type, numbers)) == {int} and min(numbers) >= 0


def _quotients(dividend: str, divisor: str) -> _Reckon:
    return lambda parts, _: list(map(floordiv, parts[dividend], parts[divisor]))


def _averages(parts: _Parts, _: int) -> list[Value | None]:
    pairs = zip(parts["summation"], parts["count"], strict=True)
    return [total // count or min(total, 1) for total, count in pairs]


def _percents(match: str, total: str) -> _Reckon:
    def reckon(parts: _Parts, _: int) -> list[Value | None]:
        pairs = zip(parts[match], parts[total], strict=True)
        return [some * WHOLE // every if every else 0 for some, every in pairs]

    return reckon


def _apdex(parts: _Parts, _: int) -> list[Value | None]:
    found = zip(parts["s_num"], parts["t_num"], parts["total_num"], strict=True)
    return [
        (satisfied * WHOLE + tolerated * WHOLE // 2) // total
        for satisfied, tolerated, total in found
    ]


_RECKONED: Final[Mapping[str, _Reckon]] = {
    "longAvg": _quotients("summation", "count"),
    "avg": _averages,
    "cpm": lambda parts, minutes: [total // minutes for total in parts["total"]],
    "sumPerMin": lambda parts, minutes: [total // minutes for total in parts["total"]],
    "percent": _percents("match", "total"),
    "rate": _percents("numerator", "denominator"),
    "apdex": _apdex,
    **dict.fromkeys(("sum", "count", "max", "min"), lambda parts, _: parts["value"]),
}
