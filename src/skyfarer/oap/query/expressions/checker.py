"""Whether an expression makes sense, before anything is read: metrics that exist, asked for as
their type allows, and operands that go together.

What only evaluation can tell is left to it: the type of `view_as_seq`, whose choices may differ,
and whether anything has labels.
"""

from __future__ import annotations

from skyfarer.oap.query.expressions import syntax
from skyfarer.oap.query.expressions.catalogue import Catalogue, Derived, MetricsType, Sampled
from skyfarer.oap.query.expressions.pairing import mismatch
from skyfarer.oap.query.expressions.problems import Mistake, UnknownMetric
from skyfarer.oap.query.expressions.results import ResultType, combined

_SERIES = ResultType.TIME_SERIES_VALUES
LAYER = "attr0"
"""The only attribute that a decorator fills: the name of the layer."""


class Checker:
    """Any thread."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    def type_of(self, node: syntax.Expression) -> ResultType:
        """UNKNOWN where evaluation will tell. Raises a Mistake."""
        match node:
            case syntax.Number():
                return ResultType.SINGLE_VALUE
            case syntax.Metric():
                self.derived(node)
                return _SERIES
            case syntax.Binary():
                return self._binary(node)
            case syntax.Aggregate():
                return self._aggregate(node)
            case syntax.Trend() | syntax.Baseline():
                return self.type_of(node.metric)
            case syntax.TopN():
                return self._top_n(node)
            case syntax.TopNOf():
                return self._top_n_of(node)
            case syntax.FirstPresent() | syntax.IsPresent():
                return self._present(node)
            case _:
                return self.type_of(node.of)

    def _binary(self, node: syntax.Binary) -> ResultType:
        left, right = self.type_of(node.left), self.type_of(node.right)
        if node.operator in syntax.LOGICAL:
            for operand in (node.left, node.right):
                _check_compared(operand, node)
        kind = combined(left, right)
        if kind is None:
            raise Mistake(node.place, mismatch(node.operator, left, right))
        return kind

    def _aggregate(self, node: syntax.Aggregate) -> ResultType:
        of = self.type_of(node.of)
        if node.function == "latest":
            check_over_time(of, node)
        return ResultType.SINGLE_VALUE

    def _top_n(self, node: syntax.TopN) -> ResultType:
        found = self._catalogue.of(node.metric)
        if found.type not in (MetricsType.REGULAR_VALUE, MetricsType.SAMPLED_RECORD):
            raise Mistake(
                node.metric.place,
                f"Metric: [{found.name}] has several values an entity, and top_n sorts by one",
            )
        for attribute in node.attributes:
            _check_attribute(attribute, found)
        if found.type is MetricsType.SAMPLED_RECORD:
            return ResultType.RECORD_LIST
        return ResultType.SORTED_LIST

    def _top_n_of(self, node: syntax.TopNOf) -> ResultType:
        types = {self._top_n(one) for one in node.lists}
        if len(types) > 1:
            kinds = " and ".join(sorted(kind.value for kind in types))
            raise Mistake(node.place, f"top_n_of cannot merge {kinds}; ask for each by itself")
        return types.pop()

    def _present(self, node: syntax.FirstPresent | syntax.IsPresent) -> ResultType:
        types = {self._perhaps(choice) for choice in node.choices} - {ResultType.UNKNOWN}
        if isinstance(node, syntax.IsPresent):
            return ResultType.SINGLE_VALUE
        return types.pop() if len(types) == 1 else ResultType.UNKNOWN

    def _perhaps(self, choice: syntax.Expression) -> ResultType:
        """A metric that is not there is what these are asked about."""
        try:
            return self.type_of(choice)
        except UnknownMetric:
            return ResultType.UNKNOWN

    def derived(self, node: syntax.Metric) -> Derived:
        found = self._catalogue.of(node)
        if isinstance(found, Sampled):
            raise Mistake(
                node.place,
                f"Metric: [{found.name}] has records; ask for top_n({found.name}, 10, des)",
            )
        return found


def check_over_time(kind: ResultType, node: syntax.Aggregate) -> None:
    """The latest of a list would be any."""
    if kind not in (_SERIES, ResultType.UNKNOWN):
        raise Mistake(node.place, f"latest takes a {_SERIES.value}, not a {kind.value}")


def _check_compared(operand: syntax.Expression, node: syntax.Binary) -> None:
    compared = (*syntax.COMPARISONS, *syntax.LOGICAL)
    if not isinstance(operand, syntax.Binary) or operand.operator not in compared:
        raise Mistake(
            operand.place,
            f"'{node.operator}' takes comparisons, as in a > 1 {node.operator} b > 1",
        )


def _check_attribute(attribute: syntax.Attribute, of: Derived | Sampled) -> None:
    decorated = isinstance(of, Derived) and of.metric.decorator is not None
    if not decorated:
        raise Mistake(
            attribute.place, f"Metric: [{of.name}] has no attributes: it has no decorator in OAL"
        )
    if attribute.name != LAYER:
        raise Mistake(
            attribute.place,
            f"Metric: [{of.name}] has no {attribute.name}: its decorator fills {LAYER} alone, "
            "with the name of the layer",
        )
