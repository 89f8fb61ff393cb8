"""Metric expressions (MQE): text → tokens → tree → result, over what storage has of the metrics.

    lexer → parser → checker → evaluator
                        │          └ question: series of an entity (reading), lists (ranking)
                        └ catalogue: the metrics there are

Contract: what is wrong with an expression stands in the result's `error`, with type UNKNOWN and the
place in the text, because a GraphQL error would take the other widgets of the same request down
with it; a failure of storage stands there too. A duration that cannot be read is the request's
fault and raises QueryError. Everything is found that can be before storage is asked. What an
expression may cost is bounded (`query.limits`).

Must never: know of GraphQL, or keep anything between two expressions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import tzinfo

from skyfarer.oap.core.storage import Reader
from skyfarer.oap.query.durations import Duration
from skyfarer.oap.query.expressions.catalogue import Catalogue
from skyfarer.oap.query.expressions.checker import Checker
from skyfarer.oap.query.expressions.evaluator import Evaluator
from skyfarer.oap.query.expressions.parser import parsed
from skyfarer.oap.query.expressions.problems import Mistake, UnknownMetric
from skyfarer.oap.query.expressions.question import Question
from skyfarer.oap.query.expressions.results import UNKNOWN, Result, ResultType

__all__ = ["Expressions"]


class Expressions:
    """Any thread; blocks on storage."""

    def __init__(self, reader: Reader, catalogue: Catalogue, zone: tzinfo) -> None:
        self._reader = reader
        self._catalogue = catalogue
        self._zone = zone

    def evaluate(self, expression: str, entity: Mapping[str, object], duration: Duration) -> Result:
        duration.window(self._zone)
        question = Question(self._reader, self._catalogue, entity, duration, self._zone)
        try:
            tree = parsed(expression)
            Checker(self._catalogue).type_of(tree)
            return Evaluator(question).evaluate(tree)
        except UnknownMetric as unknown:
            return replace(UNKNOWN, error=f"{unknown}{self._catalogue.hint(unknown.name)}")
        except Mistake as mistake:
            return replace(UNKNOWN, error=str(mistake))

    def type_of(self, expression: str) -> ResultType:
        """As far as it can be told without reading; UNKNOWN for what is no expression."""
        try:
            return Checker(self._catalogue).type_of(parsed(expression))
        except Mistake:
            return ResultType.UNKNOWN
