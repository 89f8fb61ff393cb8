"""Every aggregate function: what it takes, and which accumulators it is made of, in one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from skyfarer.oap.oal.plan import Accumulator, Condition, Field, Operation
from skyfarer.oap.oal.sources import NUMBERS, WHOLE, Type

LABELS_MAX = 50
SERIES_MAX = 1_000


class Takes(Enum):
    """The kinds of an argument, as an error names them."""

    SIZE = "a whole number above 0"
    CONDITION = "a condition, as in status == true"
    TEXT = "a text attribute"
    FLAG = "an attribute that is true or false"
    NUMBER = "an attribute that is a whole number"
    LABELS = 'names of labels, as in "pipe, status"'


Labels: TypeAlias = tuple[str, ...]
Argument: TypeAlias = int | Condition | Field | Labels
Where: TypeAlias = tuple[Condition, ...]
Parts: TypeAlias = tuple[tuple[str, Accumulator], ...]


@dataclass(frozen=True)
class Use:
    """One call whose arguments were found to be what the function takes."""

    value: Field | None
    where: Where
    fields: tuple[Field, ...] = ()
    conditions: tuple[Condition, ...] = ()
    numbers: tuple[int, ...] = ()
    labels: Labels = ()

    def accumulator(
        self,
        operation: Operation,
        inputs: Sequence[Field | None] = (),
        also: Sequence[Condition] = (),
        width: int = 0,
        bound: int = 0,
    ) -> Accumulator:
        fields = tuple(field for field in inputs if field is not None)
        return Accumulator(operation, fields, canonical((*self.where, *also)), width, bound)

    def count(self, *also: Condition) -> Accumulator:
        return self.accumulator(Operation.COUNT, (), also)


def canonical(conditions: Sequence[Condition]) -> Where:
    """Conditions hold together or not at all, so one order stands for every order written."""
    return tuple(sorted(dict.fromkeys(conditions), key=str))


@dataclass(frozen=True)
class Function:
    """`values`: the types of `from(…)` it takes; none, and it does not look at the value. The last
    `optional` of `arguments` may be left out."""

    values: frozenset[Type]
    arguments: tuple[Takes, ...]
    parts: Callable[[Use], Parts]
    optional: int = 0


def _average(sum_: Operation) -> Callable[[Use], Parts]:
    return lambda use: (
        ("summation", use.accumulator(sum_, [use.value])),
        ("count", use.count()),
    )


def _single(operation: Operation) -> Callable[[Use], Parts]:
    return lambda use: (("value", use.accumulator(operation, [use.value])),)


def _sum_per_minute(use: Use) -> Parts:
    return (("total", use.accumulator(Operation.SUM, [use.value])),)


def _increase(use: Use) -> Parts:
    """Ours; the original has it in its language of meters."""
    return (
        ("most", use.accumulator(Operation.MAX, [use.value])),
        ("least", use.accumulator(Operation.MIN, [use.value])),
    )


def _percent(use: Use) -> Parts:
    return ("total", use.count()), ("match", use.count(use.conditions[0]))


def _rate(use: Use) -> Parts:
    """`total` is ours: it tells no item at all from items of neither kind."""
    numerator, denominator = use.conditions
    return (
        ("total", use.count()),
        ("numerator", use.count(numerator)),
        ("denominator", use.count(denominator)),
    )


def _apdex(use: Use) -> Parts:
    inputs = [use.value, *use.fields]
    return (
        ("total_num", use.count()),
        ("s_num", use.accumulator(Operation.SATISFIED, inputs)),
        ("t_num", use.accumulator(Operation.TOLERATED, inputs)),
    )


def _percentile(use: Use) -> Parts:
    dataset = use.accumulator(Operation.BUCKETS, [use.value], width=use.numbers[0])
    return (("dataset", dataset),)


def _histogram(use: Use) -> Parts:
    step, steps_max = use.numbers
    dataset = use.accumulator(Operation.BUCKETS, [use.value], width=step, bound=steps_max)
    return (("dataset", dataset),)


def _labels_max(use: Use, unless_told: int = LABELS_MAX) -> int:
    return use.numbers[0] if use.numbers else unless_told


def _label_count(use: Use) -> Parts:
    bound = _labels_max(use)
    return (("dataset", use.accumulator(Operation.LABEL_COUNTS, use.fields, bound=bound)),)


def _label_average(use: Use) -> Parts:
    bound = _labels_max(use)
    return (
        ("summation", use.accumulator(Operation.LABEL_SUMS, use.fields, bound=bound)),
        ("count", use.accumulator(Operation.LABEL_COUNTS, use.fields[:1], bound=bound)),
    )


def _label_increase(use: Use) -> Parts:
    """Ours, as `increase` is. The key is the text of a series (`oal.series`); its labels are read
    when its values are."""
    bound, inputs = _labels_max(use, SERIES_MAX), [*use.fields, use.value]
    return (
        ("most", use.accumulator(Operation.LABEL_MAX, inputs, bound=bound)),
        ("least", use.accumulator(Operation.LABEL_MIN, inputs, bound=bound)),
    )


def _label_total(use: Use) -> Parts:
    bound, inputs = _labels_max(use, SERIES_MAX), [*use.fields, use.value]
    return (
        ("summation", use.accumulator(Operation.LABEL_SUMS, inputs, bound=bound)),
        ("count", use.accumulator(Operation.LABEL_COUNTS, use.fields, bound=bound)),
    )


def _by_series(operation: Operation, part: str) -> Callable[[Use], Parts]:
    def parts(use: Use) -> Parts:
        bound, inputs = _labels_max(use, SERIES_MAX), [*use.fields, use.value]
        return ((part, use.accumulator(operation, inputs, bound=bound)),)

    return parts


def _count(part: str) -> Callable[[Use], Parts]:
    return lambda use: ((part, use.count()),)


_NONE: Final[frozenset[Type]] = frozenset()
_LABEL_AVERAGE: Final = (Takes.TEXT, Takes.NUMBER, Takes.SIZE)
_SERIES: Final = (Takes.TEXT, Takes.LABELS, Takes.SIZE)
_BUCKET: Final = (Takes.TEXT, Takes.SIZE)
"""Where a bucket begins, of a histogram that others have counted."""
FUNCTIONS: Final[Mapping[str, Function]] = {
    "longAvg": Function(WHOLE, (), _average(Operation.SUM)),
    "avg": Function(WHOLE, (), _average(Operation.SUM)),
    "doubleAvg": Function(NUMBERS, (), _average(Operation.SUM_DOUBLE)),
    "sum": Function(WHOLE, (), _single(Operation.SUM)),
    "sumPerMin": Function(WHOLE, (), _sum_per_minute),
    "count": Function(_NONE, (), _count("value")),
    "cpm": Function(_NONE, (), _count("total")),
    "percent": Function(_NONE, (Takes.CONDITION,), _percent),
    "rate": Function(_NONE, (Takes.CONDITION, Takes.CONDITION), _rate),
    "max": Function(WHOLE, (), _single(Operation.MAX)),
    "min": Function(WHOLE, (), _single(Operation.MIN)),
    "increase": Function(WHOLE, (), _increase),
    "maxDouble": Function(NUMBERS, (), _single(Operation.MAX_DOUBLE)),
    "minDouble": Function(NUMBERS, (), _single(Operation.MIN_DOUBLE)),
    "apdex": Function(WHOLE, (Takes.TEXT, Takes.FLAG), _apdex),
    "percentile2": Function(WHOLE, (Takes.SIZE,), _percentile),
    "percentile": Function(WHOLE, (Takes.SIZE,), _percentile),
    "histogram": Function(WHOLE, (Takes.SIZE, Takes.SIZE), _histogram),
    "labelCount": Function(_NONE, (Takes.TEXT, Takes.SIZE), _label_count, optional=1),
    "labelAvg": Function(_NONE, _LABEL_AVERAGE, _label_average, optional=1),
    "labelIncrease": Function(WHOLE, _SERIES, _label_increase, optional=1),
    "labelTotal": Function(WHOLE, _SERIES, _label_total, optional=1),
    "labelSum": Function(WHOLE, _SERIES, _by_series(Operation.LABEL_SUMS, "value"), optional=1),
    "labelSumPerMin": Function(
        WHOLE, _SERIES, _by_series(Operation.LABEL_SUMS, "total"), optional=1
    ),
    "labelMax": Function(WHOLE, _SERIES, _by_series(Operation.LABEL_MAX, "value"), optional=1),
    "labelMin": Function(WHOLE, _SERIES, _by_series(Operation.LABEL_MIN, "value"), optional=1),
    "sumHistogram": Function(
        WHOLE, _BUCKET, _by_series(Operation.LABEL_SUMS, "dataset"), optional=1
    ),
    "sumHistogramPercentile": Function(
        WHOLE, _BUCKET, _by_series(Operation.LABEL_SUMS, "summation"), optional=1
    ),
    "avgHistogram": Function(WHOLE, _BUCKET, _label_total, optional=1),
    "avgHistogramPercentile": Function(WHOLE, _BUCKET, _label_total, optional=1),
}
