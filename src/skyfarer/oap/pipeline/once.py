"""A query that Spark analyses and optimises once and is asked again of every batch.

To resolve the names and types of a query takes Spark as long as to plan it, and to optimise it
longer; and all batches of a stream have the same columns, with the same identities. So the plan of
the first batch holds for the next one, with that batch's own plan in the place of the first's.
Spark optimises it again and finds little to do. Spark has no public door for this: plans are taken
apart and put together through Py4J (ADR 006).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

_BEFORE = "$colon$colon"
"""Scala's `::`, as Java names it: the list with one element more, before all others."""
_OPAQUE = "LogicalRDD"
"""What a batch of a stream is to Spark: rows that it is told nothing of but their columns."""


class AnalysedOnce:
    """`make` builds the query: it may go on from the rows it is given in one line only, joined at
    most with what stays the same. Rows whose columns have other identities are analysed anew, as
    are all if Spark has made something else of the rows in the query."""

    def __init__(self, make: Callable[[DataFrame], DataFrame]) -> None:
        self._make = make
        self._columns: Any = None
        self._above: list[tuple[Any, Any]] | None = None
        """From the rows upwards: each operator, and a list of Scala's of what it has beside them.
        To put the rows before it is one call of the JVM, to make another list would be many."""

    def of(self, rows: DataFrame) -> DataFrame:
        """Nothing runs here."""
        plan = _analysed(rows)
        if self._above is None or not plan.output().equals(self._columns):
            whole = _analysed(self._make(rows))
            self._columns = plan.output()
            self._above = _optimised(rows, plan, whole) or _above(plan, whole)
            return _frame(rows, whole)
        for operator, beside in self._above:
            plan = operator.withNewChildren(getattr(beside, _BEFORE)(plan))
        plan.setAnalyzed()
        return _frame(rows, plan)


def _frame(rows: DataFrame, plan: Any) -> DataFrame:
    session = rows.sparkSession
    jvm: Any = session._jvm
    made = jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, plan)
    return ClassicDataFrame(made, session)


def _optimised(rows: DataFrame, plan: Any, query: Any) -> list[tuple[Any, Any]] | None:
    """`_above` of the query as Spark optimises it: only above rows that say nothing of what is in
    them, as a stream's. Of others Spark may conclude what does not hold for the next batch."""
    if plan.getClass().getSimpleName() != _OPAQUE or not plan.constraints().isEmpty():
        return None
    state = rows.sparkSession._jsparkSession.sessionState()
    return _above(plan, state.optimizer().execute(query))


def _analysed(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().analyzed()


def _above(rows: Any, query: Any) -> list[tuple[Any, Any]] | None:
    found = []
    while not query.equals(rows):
        children = query.children().toList()
        if children.isEmpty():
            return None
        found.append((query, children.tail()))
        query = children.head()
    return found[::-1]
