"""Accumulators that are tables, as rows: a key tells the rows of one entity and bucket apart, and a
cell is added up for each of them.

So whatever executes a plan only ever groups and adds: `buckets(latency, 10)` is `count()` of the
rows grouped by `latency / 10`, and a column that some other metric counts already. Accumulators of
a source with equal keys share one. A cell that is a MAX or MIN is compared where others are added.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from skyfarer.oap.oal.plan import Accumulator, Field, Operation, SourcePlan

_CELLS: Final[Mapping[Operation, Operation]] = {
    Operation.BUCKETS: Operation.COUNT,
    Operation.LABEL_COUNTS: Operation.COUNT,
    Operation.LABEL_SUMS: Operation.SUM,
    Operation.LABEL_MAX: Operation.MAX,
    Operation.LABEL_MIN: Operation.MIN,
}
TABLES: Final = frozenset(_CELLS)


@dataclass(frozen=True)
class Key:
    """With a width the bucket of a number, as BUCKETS says; without one a text, the label."""

    field: Field
    width: int = 0
    bound: int = 0

    def __str__(self) -> str:
        if not self.width:
            return str(self.field)
        bucket = f"{self.field} / {self.width}"
        return f"least({bucket}, {self.bound})" if self.bound else bucket


def key_of(table: Accumulator) -> Key:
    if table.operation is Operation.BUCKETS:
        return Key(table.inputs[0], table.width, table.bound)
    return Key(table.inputs[0])


def cell_of(table: Accumulator) -> Accumulator:
    operation = _CELLS[table.operation]
    inputs = () if operation is Operation.COUNT else table.inputs[1:]
    return Accumulator(operation, inputs, table.where)


def tables_of(source: SourcePlan) -> tuple[Accumulator, ...]:
    return tuple(a for a in source.accumulators if a.operation in TABLES)


def scalars_of(source: SourcePlan) -> tuple[Accumulator, ...]:
    return tuple(a for a in source.accumulators if a.operation not in TABLES)


def key_columns(source: SourcePlan) -> Mapping[Key, str]:
    """`bucket_0`, `bucket_1`, … are numbers and `label_0`, … texts, in the order of first need."""
    names: dict[Key, str] = {}
    for key in dict.fromkeys(map(key_of, tables_of(source))):
        kind = "bucket" if key.width else "label"
        names[key] = f"{kind}_{sum(name.startswith(kind) for name in names.values())}"
    return names
