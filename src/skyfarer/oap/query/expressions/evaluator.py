"""A checked expression → its result, by walking the tree. Every part is evaluated once."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from skyfarer.base.errors import SkyfarerError
from skyfarer.oap.query.expressions import aggregation, pairing, syntax
from skyfarer.oap.query.expressions.arithmetic import changed, rank
from skyfarer.oap.query.expressions.checker import check_over_time
from skyfarer.oap.query.expressions.problems import Mistake, UnknownMetric
from skyfarer.oap.query.expressions.question import Question
from skyfarer.oap.query.expressions.results import (
    UNKNOWN,
    Result,
    ResultType,
    Series,
    Value,
    single,
)


class Evaluator:
    """Of one question: blocks on storage, in the caller's thread."""

    def __init__(self, question: Question) -> None:
        self._asked = question

    def evaluate(self, node: syntax.Expression) -> Result:
        """Raises a Mistake for what could not be seen before anything was read."""
        match node:
            case syntax.Number():
                return single(node.value)
            case syntax.Metric():
                return self._metric(node)
            case syntax.Binary():
                sides = self.evaluate(node.left), self.evaluate(node.right)
                return pairing.apply(node.operator, *sides, node.place)
            case syntax.Aggregate():
                return self._aggregate(node)
            case syntax.Mathematical():
                return self._mathematical(node)
            case syntax.Trend():
                return self._trend(node)
            case syntax.TopN():
                return self._top_n(node)
            case syntax.TopNOf():
                return self._top_n_of(node)
            case _:
                return self._of_choices(node)

    def _of_choices(self, node: syntax.Expression) -> Result:
        match node:
            case syntax.FirstPresent():
                return self._first_present(node)
            case syntax.IsPresent():
                return single(float(any(self._perhaps(one).present for one in node.choices)))
            case syntax.Baseline():
                return self._baseline(node)
            case _:
                return self._of_labels(node)

    def _of_labels(self, node: syntax.Expression) -> Result:
        match node:
            case syntax.Relabels():
                return self._relabels(node)
            case syntax.AggregateLabels():
                of = self._labelled(node.of, "aggregate_labels")
                return aggregation.labels_aggregated(of, node.function, node.names)
            case syntax.SortValues():
                of = self.evaluate(node.of)
                return aggregation.sorted_by_value(of, node.by, node.ascending, node.limit)
            case syntax.SortLabelValues():
                of = self.evaluate(node.of)
                return aggregation.sorted_by_labels(of, node.names, node.ascending)
            case _:
                raise AssertionError(f"{node} is no expression")

    def _metric(self, node: syntax.Metric, earlier: int = 0) -> Result:
        try:
            return self._asked.series(node, earlier)
        except SkyfarerError as refusal:
            raise Mistake(node.place, str(refusal)) from refusal

    def _aggregate(self, node: syntax.Aggregate) -> Result:
        of = self.evaluate(node.of)
        if node.function == "latest":
            check_over_time(of.type, node)
        return aggregation.aggregated(node.function, of)

    def _mathematical(self, node: syntax.Mathematical) -> Result:
        def change(value: Value) -> Value:
            if value.number is None:
                return value
            return value._replace(number=changed(node.function, value.number, node.places))

        of = self.evaluate(node.of)
        return of.each(lambda one: Series(one.labels, tuple(map(change, one.values))))

    def _trend(self, node: syntax.Trend) -> Result:
        """Of each point the difference to the value so many steps before it, empty where one of
        the two is. A rate is that by the second."""
        seconds = 60 * self._asked.minutes * node.steps if node.function == "rate" else 1

        def change(one: Series) -> Series:
            pairs = zip(one.values[node.steps :], one.values, strict=False)
            return Series(one.labels, tuple(_grown(now, then, seconds) for now, then in pairs))

        return self._metric(node.metric, node.steps).each(change)

    def _baseline(self, node: syntax.Baseline) -> Result:
        """Nothing predicts here, so it is what the original says without its prediction server:
        empty values, and of a metric with labels no series."""
        of = self._metric(node.metric)
        empty = of.each(
            lambda one: Series(one.labels, tuple(v._replace(number=None) for v in one.values))
        )
        return replace(of, series=()) if of.labelled else empty

    def _relabels(self, node: syntax.Relabels) -> Result:
        of = self._labelled(node.of, "relabels")
        if not node.target.values or not node.replacement.values:
            return of
        before, after = (
            tuple((label.key, value) for value in label.values)
            for label in (node.target, node.replacement)
        )
        return aggregation.relabelled(of, before, after)

    def _labelled(self, node: syntax.Expression, function: str) -> Result:
        of = self.evaluate(node)
        if not of.labelled and of.type is not ResultType.UNKNOWN:
            raise Mistake(node.place, f"{function} takes what has labels, and this has none")
        return of

    def _top_n(self, node: syntax.TopN) -> Result:
        try:
            return self._asked.top_n(node)
        except SkyfarerError as refusal:
            raise Mistake(node.metric.place, str(refusal)) from refusal

    def _top_n_of(self, node: syntax.TopNOf) -> Result:
        lists = [self._top_n(one) for one in node.lists]
        values = chain.from_iterable(one.series[0].values for one in lists)
        found = sorted(
            (value for value in values if value.number is not None),
            key=lambda value: rank(value.number or 0.0),
            reverse=not node.ascending,
        )
        return Result(lists[0].type, (Series((), tuple(found[: node.limit])),))

    def _first_present(self, node: syntax.FirstPresent) -> Result:
        """Without any the first, and what was wrong with it."""
        results = []
        for choice in node.choices:
            results.append(self._perhaps(choice))
            if results[-1].present:
                return results[-1]
        return results[0] if results[0].error is None else self.evaluate(node.choices[0])

    def _perhaps(self, choice: syntax.Expression) -> Result:
        try:
            return self.evaluate(choice)
        except UnknownMetric as unknown:
            return replace(UNKNOWN, error=str(unknown))


def _grown(now: Value, then: Value, seconds: int) -> Value:
    if now.number is None or then.number is None:
        return Value(None, now.id)
    return Value((now.number - then.number) / seconds, now.id)
