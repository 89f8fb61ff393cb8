"""The plan of metrics as one aggregation of Spark: partial, one exchange, final; no Python.

    emitted --group by source, minute, entity, keys of tables--> cells --folding--> deltas

Sources share whatever they read from the same columns: the calls of services, instances and
endpoints are counted by one `count(1)`, since the source is among the keys of the group. No
aggregate asks for its source; those that a source has no metric for are made and never read. The
bucket or label of a table is a key as well (`oal.tables`), so no aggregate holds more than a number
and whole-stage code generation covers all of it.

Numbers are as `oal.interpreter` has them, but for a sum that leaves 64 bits: there it is null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from skyfarer.oap.core.entities import ENTITY_COLUMNS
from skyfarer.oap.oal.plan import Accumulator, Condition, Field, Operation, Plan, SourcePlan
from skyfarer.oap.oal.sources import Type
from skyfarer.oap.oal.tables import Key, cell_of, key_columns, key_of, scalars_of, tables_of
from skyfarer.oap.pipeline.expressions import Expressions, all_of, any_of

Attribute: TypeAlias = Callable[[str, Field], Column]
"""Of a source: the column, or whatever else, that holds a field before any cast."""

GROUP = ("source", "minute", *ENTITY_COLUMNS)


def deltas(
    emitted: DataFrame, plan: Plan, attribute: Attribute, threshold_ms: Mapping[str, int] | None
) -> DataFrame:
    """A row per group of the batch, for `folding.folded`: GROUP, keys of tables, accumulators.

    `threshold_ms` is Apdex's T by the name of a service; "default", or 500, where it has none.
    A count that no row has reached is 0 until it is folded; any other accumulator is null. Rows of
    sources without a metric are made distinct, and no more. Nothing is executed here.
    """
    return lowered(plan, attribute, threshold_ms).of(emitted)


@dataclass(frozen=True)
class Lowered:
    """Expressions over the emitted rows of any batch. To build them takes thousands of small calls
    into the JVM, so whoever has many batches keeps them."""

    keys: tuple[Column, ...]
    columns: tuple[Column, ...]

    def of(self, emitted: DataFrame) -> DataFrame:
        return emitted.groupBy(*self.keys).agg(*self.columns)


def lowered(
    plan: Plan, attribute: Attribute, threshold_ms: Mapping[str, int] | None = None
) -> Lowered:
    physical = _Physical(attribute)
    held = _held(plan.sources, physical)
    expressions = Expressions(physical.columns, threshold_ms or {})
    keys = _keys(plan.sources, physical, expressions)
    columns = [_column(cells, expressions).alias(name) for name, cells in held.items()]
    return Lowered(
        (*map(F.col, GROUP), *(key.alias(name) for name, key in keys.items())),
        # Spark wants one aggregate at least.
        tuple(columns) or (F.count(F.lit(1)).alias("count"),),
    )


class _Physical:
    """Accumulators and keys with fields by what holds them: equal ones of two sources are one.

    How wide a whole number is matters to its sum alone, which cannot leave 64 bits if it is `int`.
    """

    def __init__(self, attribute: Attribute) -> None:
        self.columns: dict[Field, Column] = {}
        self._attribute = attribute

    def field(self, source: str, field: Field, *, exact: bool = False) -> Field:
        column = self._attribute(source, field)
        type_ = Type.LONG if field.type is Type.INT and not exact else field.type
        held = Field(str(column), type_, None, field.cast)
        self.columns.setdefault(held, column)
        return held

    def where(self, source: str, conditions: Iterable[Condition]) -> tuple[Condition, ...]:
        return tuple(replace(c, field=self.field(source, c.field)) for c in conditions)

    def accumulator(self, source: str, one: Accumulator) -> Accumulator:
        exact = one.operation is Operation.SUM
        inputs = tuple(self.field(source, field, exact=exact) for field in one.inputs)
        return replace(one, inputs=inputs, where=self.where(source, one.where))


Held: TypeAlias = dict[Accumulator, list[str]]
"""What holds a column, and in which sources."""


def _held(sources: Iterable[SourcePlan], physical: _Physical) -> dict[str, Held]:
    """By column. Accumulators that are equal in Spark's eyes are made once, whatever their name."""
    held: dict[str, Held] = {}
    for source in sources:
        for one in (*scalars_of(source), *map(cell_of, tables_of(source))):
            cell = physical.accumulator(source.source, one)
            held.setdefault(one.column, {}).setdefault(cell, []).append(source.source)
    return held


def _column(held: Held, expressions: Expressions) -> Column:
    """One whose name means the same in all its sources needs no choice."""
    (first, _), *others = held.items()
    column = expressions.aggregate(first)
    for cell, sources in others:
        column = F.when(_of(sources), expressions.aggregate(cell)).otherwise(column)
    return column


def _of(sources: Iterable[str]) -> Column:
    return F.col("source").isin(*sources)


def _keys(
    sources: Iterable[SourcePlan], physical: _Physical, expressions: Expressions
) -> dict[str, Column]:
    """Null for rows that no table takes: those of a source then stay one group."""
    users: dict[str, dict[tuple[Key, frozenset[tuple[Condition, ...]]], list[str]]] = {}
    for source in sources:
        name = source.source
        for key, column in key_columns(source).items():
            wheres = {t.where for t in tables_of(source) if key_of(t) == key}
            held = replace(key, field=physical.field(name, key.field))
            taken = frozenset(physical.where(name, w) for w in ([()] if () in wheres else wheres))
            users.setdefault(column, {}).setdefault((held, taken), []).append(name)
    return {
        column: _first(
            (_of(names) & _any(wheres, expressions), expressions.key(key))
            for (key, wheres), names in held.items()
        )
        for column, held in users.items()
    }


def _any(wheres: Iterable[tuple[Condition, ...]], expressions: Expressions) -> Column:
    ordered = sorted(wheres, key=lambda where: tuple(map(str, where)))
    return any_of(all_of(map(expressions.holds, where)) for where in ordered)


def _first(cases: Iterable[tuple[Column, Column]]) -> Column:
    (condition, value), *others = cases
    return reduce(lambda chain, case: chain.when(*case), others, F.when(condition, value))
