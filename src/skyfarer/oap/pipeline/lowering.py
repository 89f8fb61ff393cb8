"""The plan of metrics as one aggregation of Spark: partial, one exchange, final; no Python.

    emitted --group by source, minute, entity, keys of tables--> cells --folding--> deltas

Sources share whatever they read from the same columns: the calls of services, instances and
endpoints are counted by one `count(1)`, since the source is among the keys of the group. No
aggregate asks for its source; those that a source has no metric for are made and never read. The
bucket or label of a table is a key as well (`oal.tables`), so no aggregate holds more than a number
and whole-stage code generation covers all of it.

A group costs what its row is wide, in the map, in the exchange and in the result. So a condition on
a key is asked of the group, not of its rows: what clients saw of a relation is `count(1)` where
the group is of clients. An enumeration that many accumulators ask for is a key for that. And in the
result sources take turns in the same columns.

Numbers are as `oal.interpreter` has them, but for a sum that leaves 64 bits: there it is null.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from itertools import count
from typing import Final, TypeAlias

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from skyfarer.oap.core.entities import ENTITY_COLUMNS
from skyfarer.oap.oal.plan import Accumulator, Condition, Field, Operation, Plan, SourcePlan
from skyfarer.oap.oal.sources import WHOLE, Type
from skyfarer.oap.oal.tables import Key, cell_of, key_columns, key_of, scalars_of, tables_of
from skyfarer.oap.pipeline.expressions import DOUBLE, UNSAID, Expressions, all_of, any_of, unsaid

Attribute: TypeAlias = Callable[[str, Field], Column | None]
"""Of a source: the column, or whatever else, that holds a field before any cast. None if no row of
the source says anything of it: it is 0, false or null."""

GROUP: Final = ("source", "minute", *ENTITY_COLUMNS)
INTS: Final = ("latency", "http_code", "component")
"""Of emitted rows: 32 bits, also where the source has a number of 64."""
ASKED_MIN: Final = 4
"""An enumeration that so many accumulators ask for is a key: fewer are narrower than it."""


@dataclass(frozen=True)
class Lowered:
    """Expressions over the emitted rows of any batch. To build them takes thousands of small calls
    into the JVM, so whoever has many batches keeps them."""

    keys: tuple[Column, ...]
    columns: tuple[Column, ...]
    places: Mapping[str, str]
    """The column of an accumulator → the column of the result that has it."""

    def of(self, emitted: DataFrame) -> DataFrame:
        """A row per group of the batch: GROUP, keys of tables, accumulators in their places.

        Rows of sources without a metric are made distinct, and no more. Nothing is executed here.
        """
        return emitted.groupBy(*self.keys).agg(*self.columns)

    def named(self, collected: pa.Table) -> pa.Table:
        """That result for `folding.folded`, its columns by the names of accumulators. What a source
        has no accumulator of that name for is of another one, and is not to be read."""
        held = {*self.places.values()}
        keys = {name: collected[name] for name in collected.column_names if name not in held}
        return pa.table(keys | {name: collected[place] for name, place in self.places.items()})


def lowered(
    plan: Plan, attribute: Attribute, threshold_ms: Mapping[str, int] | None = None
) -> Lowered:
    """`threshold_ms` is Apdex's T by the name of a service; "default", or 500, where it has none.

    A count that no row has reached is 0 until it is folded; any other accumulator is null.
    """
    physical = _Physical(attribute)
    held = _held(plan.sources, physical)
    asked = _asked(held, physical)
    of_group = {*physical.group, *(field.path for field in asked.values())}
    expressions = Expressions(physical.columns, threshold_ms or {}, of_group)
    keys = {name: physical.columns[field] for name, field in asked.items()}
    keys |= _keys(plan.sources, physical, expressions)
    places = _places(held)
    columns = [_column(cells, expressions).alias(place) for place, cells in _by(places, held)]
    return Lowered(
        (*map(F.col, GROUP), *(key.alias(name) for name, key in keys.items())),
        # Spark wants one aggregate at least.
        tuple(columns) or (F.count(F.lit(1)).alias("count"),),
        places,
    )


class _Physical:
    """Accumulators and keys with fields by what holds them: equal ones of two sources are one.

    How wide a whole number is matters to its sum alone, which cannot leave 64 bits if it is `int`.
    The column says so, and not the field's type: reports of all sources share columns of 64 bits.
    """

    def __init__(self, attribute: Attribute) -> None:
        self.columns: dict[Field, Column] = {}
        self.group = {str(F.col(name)) for name in GROUP}
        self._ints = {str(F.col(name)) for name in INTS}
        self._attribute = attribute

    def field(self, source: str, field: Field, *, exact: bool = False) -> Field:
        column = self._attribute(source, field)
        path = UNSAID if column is None else str(column)
        held = Field(path, self._type(path, field.type, exact), None, field.cast)
        self.columns.setdefault(held, unsaid(held.type) if column is None else column)
        return held

    def _type(self, path: str, type_: Type, exact: bool) -> Type:
        if type_ not in WHOLE:
            return type_
        return Type.INT if exact and path in self._ints else Type.LONG

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


def _asked(held: Mapping[str, Held], physical: _Physical) -> dict[str, Field]:
    """By the name of its key: each enumeration that is worth one."""
    cells = {cell for one in held.values() for cell in one}
    asked = Counter(field for cell in cells for field in {c.field for c in cell.where})
    names = [
        field
        for field, number in asked.items()
        if field.type is Type.ENUM and field.path not in physical.group and number >= ASKED_MIN
    ]
    return {f"name_{n}": field for n, field in enumerate(sorted(names, key=str))}


def _places(held: Mapping[str, Held]) -> dict[str, str]:
    """Accumulators that no source has both of take one place: a row is as wide as what is said of
    one source, not of all."""
    taken: dict[str, set[str]] = {}
    places = {}
    for name, cells in held.items():
        sources = {source for those in cells.values() for source in those}
        kind = "double" if any(cell.operation in DOUBLE for cell in cells) else "whole"
        names = (f"{kind}_{n}" for n in count())
        places[name] = next(one for one in names if taken.get(one, set()).isdisjoint(sources))
        taken.setdefault(places[name], set()).update(sources)
    return places


def _by(places: Mapping[str, str], held: Mapping[str, Held]) -> Iterable[tuple[str, Held]]:
    """What holds each place, and in which sources."""
    found: dict[str, Held] = {}
    for name, place in places.items():
        for cell, sources in held[name].items():
            found.setdefault(place, {}).setdefault(cell, []).extend(sources)
    return found.items()


def _column(held: Held, expressions: Expressions) -> Column:
    """One that means the same in all its sources needs no choice."""
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
