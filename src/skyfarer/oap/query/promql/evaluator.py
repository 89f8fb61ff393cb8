"""PromQL's tree → the result of metric expressions: each selector is a metric of an entity of its
own, and the rest is what expressions do with results, with Prometheus' comparisons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import tzinfo

from skyfarer.base.errors import PermanentError
from skyfarer.oap.core.storage import Reader
from skyfarer.oap.query.durations import Duration
from skyfarer.oap.query.expressions import aggregation, pairing
from skyfarer.oap.query.expressions import syntax as mqe
from skyfarer.oap.query.expressions.catalogue import Catalogue, Derived
from skyfarer.oap.query.expressions.checker import Checker
from skyfarer.oap.query.expressions.problems import Mistake
from skyfarer.oap.query.expressions.question import Question
from skyfarer.oap.query.expressions.results import Result, Series, single
from skyfarer.oap.query.expressions.syntax import COMPARISONS
from skyfarer.oap.query.promql import entities
from skyfarer.oap.query.promql.syntax import Aggregate, Binary, Node, Scalar, Selector


class Evaluator:
    """Over one duration; with `at_once` each series is its latest value. Blocks on storage."""

    def __init__(
        self,
        reader: Reader,
        catalogue: Catalogue,
        zone: tzinfo,
        duration: Duration,
        at_once: bool,
    ) -> None:
        self._ask: Callable[[dict[str, object]], Question] = lambda entity: Question(
            reader, catalogue, entity, duration, zone
        )
        self._checker = Checker(catalogue)
        self._at_once = at_once

    def evaluate(self, node: Node) -> Result:
        """Raises a Mistake."""
        match node:
            case Scalar():
                return single(node.value)
            case Selector():
                return self._selected(node)
            case Aggregate():
                return self._aggregate(node)
            case Binary():
                return self._binary(node)

    def _selected(self, node: Selector) -> Result:
        metric, labels = self._metric(node)
        question = self._ask(entities.entity(labels, node))
        try:
            found = question.series(metric)
        except PermanentError as refusal:
            raise Mistake(node.place, str(refusal)) from refusal
        if self._at_once:
            found = aggregation.aggregated("latest", found)
        of_entity = tuple(labels.items())
        named = found.each(lambda one: Series((*of_entity, *one.labels), one.values))
        return replace(named, labelled=True)

    def _metric(self, node: Selector) -> tuple[mqe.Metric, dict[str, str]]:
        of: Derived = self._checker.derived(mqe.Metric(node.name, (), node.place))
        labels = entities.general(node, of.kind)
        own = tuple(
            mqe.Label(one.key, tuple(filter(None, map(str.strip, one.value.split(",")))))
            for one in node.matchers
            if one.key not in labels
        )
        return mqe.Metric(node.name, own, node.place), labels

    def _aggregate(self, node: Aggregate) -> Result:
        of = self.evaluate(node.of)
        if not of.labelled:
            raise Mistake(node.place, f"{node.function} takes series, not a number")
        names = node.names
        if not node.by:
            every = dict.fromkeys(key for one in of.series for key, _ in one.labels)
            names = tuple(key for key in every if key not in node.names)
        merged = aggregation.labels_aggregated(of, node.function, names)
        return replace(merged, labelled=True)  # with no label at all it is a series still

    def _binary(self, node: Binary) -> Result:
        left, right = self.evaluate(node.left), self.evaluate(node.right)
        found = pairing.apply(node.operator, left, right, node.place)
        if node.operator not in COMPARISONS or node.as_bool:
            return found
        if not (left.labelled or right.labelled):
            raise Mistake(node.place, f"numbers are compared with '{node.operator} bool'")
        return _kept(found, left if left.labelled else right)


def _kept(compared: Result, of: Result) -> Result:
    """Of the series those values for which the comparison is true."""
    by_labels = {frozenset(one.labels): one for one in of.series}

    def keep(one: Series) -> Series:
        mine = by_labels[frozenset(one.labels)].values
        pairs = zip(mine, one.values, strict=True)
        return Series(
            one.labels,
            tuple(v if truth.number == 1 else v._replace(number=None) for v, truth in pairs),
        )

    return compared.each(keep)
